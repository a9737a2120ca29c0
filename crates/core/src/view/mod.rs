//! Views: pure functions of records.
//!
//! | view | what it is | where |
//! |---|---|---|
//! | [`JournalView`] | everything below, folded from records | `fold` |
//! | [`Lineage`] | which records are visible, on which branch | `lineage` |
//! | a [`Session`](crate::session::Session) | typed slices | [`JournalView::session`] |
//! | [`Transcript`] | all visible messages, in order | `transcript` |
//! | [`Transition`] | messages grouped by decision cycle | `transcript` |
//! | [`ConversationState`] | the transcript grouped by turn | `conversation` |
//! | [`Evaluation`], [`SessionStatus`] | evaluations, and the status of the session | `evaluation` |
//! | [`Request`] | requests of an evaluation with their attempts | `evaluation` |
//! | the last stop | why the session is not driven | `summary` |
//! | the isolation | the copy of a project that it works in, and what of it was applied | `isolation` |
//! | [`SessionSummary`](crate::journal::SessionSummary) | what lists and queries need | `summary` |
//! | [`Call`], [`Checkpoint`] | calls with derived status, and their boundaries | `call` |
//! | [`Ledger`] | amounts spent and reserved | `ledger` |
//! | a snapshot | a view as bytes, for opening a session without folding its whole journal | `snapshot` |

mod adopted;
mod call;
mod conversation;
mod error;
mod evaluation;
mod fold;
mod foreign;
mod isolation;
mod ledger;
mod lineage;
mod query;
mod reconstruct;
mod recorded;
mod snapshot;
mod summary;
mod transcript;
mod visible;

pub use call::{Boundary, Call, CallStatus, Checkpoint};
pub use conversation::{ConversationMessage, ConversationState, ConversationTurn};
pub use error::{FoldError, FoldProblem};
pub use evaluation::{DriverPresence, Evaluation, Request, SessionStatus};
pub use fold::JournalView;
pub use ledger::Ledger;
pub use lineage::Lineage;
pub use recorded::JournalEntry;
pub use snapshot::ViewSnapshotError;
pub use transcript::{ToolCallRecord, Transcript, Transition};
