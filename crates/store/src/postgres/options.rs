//! Limits of a store.

use std::time::Duration;

/// Options of a [`PostgresStore`](super::PostgresStore).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The most connections that are open at a time, without the one that renews the lease.
    pub connections: usize,
    /// Time after which a program that no longer renews its lease holds nothing.
    pub lease: Duration,
    /// The longest time that a statement of a session may take. The connection is closed then: a cancelled statement might still commit.
    pub deadline: Duration,
    /// The same for a statement that looks after the store.
    pub long_deadline: Duration,
    /// The most bytes that a transaction writes.
    pub transaction_bytes: u64,
    /// Time for which an object stays that nothing refers to yet: a program may be about to.
    pub garbage_age: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections: 8,
            lease: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            long_deadline: Duration::from_secs(300),
            transaction_bytes: 8 << 20,
            garbage_age: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl PostgresOptions {
    /// Sets the time after which a program that no longer renews its lease holds nothing.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the time for which an object stays that nothing refers to.
    #[must_use]
    pub fn with_garbage_age(self, garbage_age: Duration) -> Self {
        Self { garbage_age, ..self }
    }

    /// Sets the most connections that are open at a time.
    #[must_use]
    pub fn with_connections(self, connections: usize) -> Self {
        Self { connections: connections.max(1), ..self }
    }

    /// Sets the longest time that a statement of a session may take.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }
}
