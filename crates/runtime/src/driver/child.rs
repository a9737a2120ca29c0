//! Driving of a sub-agent's session, for the tool runner.

use std::sync::Arc;

use backstitch_core::ports::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Driver, DriverParts};
use crate::agent::{Agent, Mission, ResumeOptions};
use crate::error::Result;
use crate::live::LiveSession;
use crate::outcome::DriveOutcome;
use crate::runner::ChildDriver;

/// Returns a driver of a sub-agent's session.
pub(super) fn drive_child(
    live: Arc<LiveSession>,
    agent: Agent,
    stop: CancellationToken,
) -> Box<dyn ChildDriver> {
    Box::new(Driver::with_parts(live, agent, DriverParts { stop, ..DriverParts::default() }))
}

impl ChildDriver for Driver {
    fn start(&self, mission: Mission) -> BoxFuture<'_, Result<DriveOutcome>> {
        Box::pin(async { self.and_start_over(self.start(mission).await?).await })
    }

    fn resume(&self, options: ResumeOptions) -> BoxFuture<'_, Result<DriveOutcome>> {
        Box::pin(async { self.and_start_over(self.resume(options).await?).await })
    }

    fn cancel(&self) {
        self.cancel();
    }
}

impl Driver {
    /// Drives the evaluations that replace a superseded one. Expansions are limited, so this terminates.
    async fn and_start_over(&self, mut ended: DriveOutcome) -> Result<DriveOutcome> {
        while let DriveOutcome::Superseded { evaluation, .. } = ended {
            ended = self.start_over(evaluation).await?;
        }
        Ok(ended)
    }
}
