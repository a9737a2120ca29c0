//! Operations that show sessions and stores. They change nothing but the index, which is a cache.
//!
//! A session is shown by its [view](backstitch_runtime::Runtime::view), which takes long to load in a long session; so these
//! operations are given the view at its head, and one view serves several of them.

mod call;
mod call_span;
mod files;
mod list;
mod log;
mod point;
mod query;
mod request;
mod session;
mod stats;
mod turns;
mod waiting;

pub use list::SessionIndex;
pub use log::{LogEntry, LogFilter, SessionLog, cost, is_failure, money};
pub use session::SessionAt;
pub use turns::{EvaluationTurns, OpenProgram};
pub use waiting::pending_decisions;
