//! Values about people: their decisions, and what they send to a session.

pub use backstitch_runtime::{ApprovalOutcome, DecidedCall, DecisionReport, ResolutionReport, SentItem};
