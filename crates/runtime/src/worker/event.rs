//! What workers report.

use std::time::Duration;

use backstitch_core::id::SessionId;

use crate::run::Rest;

/// What a worker does, for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// A session was taken, and is driven now.
    Taken {
        /// The session.
        session: SessionId,
        /// Its agent.
        agent: String,
        /// How many attempts failed before.
        attempts: u32,
    },
    /// A session was given back, because it waits or has ended.
    Rested {
        /// The session.
        session: SessionId,
        /// Why.
        rest: Rest,
    },
    /// An error stopped a session, and it is tried again.
    Retried {
        /// The session.
        session: SessionId,
        /// The error.
        error: String,
        /// Time until the next attempt.
        after: Duration,
    },
    /// An error stopped a session, and it left the queue as failed.
    GaveUp {
        /// The session.
        session: SessionId,
        /// The error.
        error: String,
    },
    /// A session cannot be driven now, because its directory or the session itself is in use. It is tried again, and reported once
    /// until then.
    Busy {
        /// The session.
        session: SessionId,
        /// What is in use.
        error: String,
    },
    /// Another worker has a session now.
    Lost {
        /// The session.
        session: SessionId,
    },
    /// Sessions of an agent wait that this worker does not know. They are left alone.
    UnknownAgent {
        /// The agent.
        agent: String,
    },
    /// Sessions of workers that have ended are ready again.
    Recovered {
        /// Their number.
        sessions: u64,
    },
    /// A session of a schedule was enqueued.
    Scheduled {
        /// The schedule.
        schedule: String,
        /// The session.
        session: SessionId,
    },
    /// The time of a schedule was left out, because its last session has not ended.
    ScheduleSkipped {
        /// The schedule.
        schedule: String,
        /// The session that has not ended.
        session: SessionId,
    },
    /// A schedule could not be applied. It is tried again.
    ScheduleFailed {
        /// The schedule.
        schedule: String,
        /// The error.
        error: String,
    },
    /// The queue cannot be used now. It is tried again.
    QueueFailed {
        /// The error.
        error: String,
    },
}
