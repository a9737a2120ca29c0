//! What a redaction concerns: a [`Plan`] made from what the store holds.

mod candidates;
mod plan;

pub(crate) use candidates::Candidates;
pub(crate) use plan::Plan;
