//! Commands about sessions that wait for workers, and the worker that drives them.

mod agents;
pub(crate) mod enqueue;
pub(crate) mod list;
pub(crate) mod schedule;
pub(crate) mod signal;
pub(crate) mod worker;
