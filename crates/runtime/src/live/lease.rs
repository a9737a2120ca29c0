//! The lease of a session, by the clock of this process.
//!
//! A process that was stopped, or that cannot reach its store, does not hear that another one has its session. So it looks at its own
//! clock right before it acts where no store checks the claim: outside, and on files. Once the lease may have been over, everything
//! of the session is stopped and its processes are killed, and that stays so even if the lease is renewed later.

use backstitch_core::ports::StoreError;
use tokio_util::sync::CancellationToken;

use super::LiveSession;
use crate::error::{Result, RuntimeError};

impl LiveSession {
    /// Fails if this process may not act on the session any more. The first time, running calls are stopped.
    pub(crate) fn check_lease(&self) -> Result<()> {
        if !self.store.is_within_lease(self.id, self.claim.fence) {
            self.lease_over.cancel();
        }
        if !self.lease_over.is_cancelled() {
            return Ok(());
        }
        Err(RuntimeError::ClaimLost { session: self.id, source: StoreError::LeaseOver { session: self.id } })
    }

    /// Cancelled once the lease may be over.
    pub(crate) fn lease_over(&self) -> &CancellationToken {
        &self.lease_over
    }
}
