//! Snapshotable resources around a call.
//!
//! They are part of the transaction: the first guard that changes one captures what a rollback restores, and a call that succeeds
//! records what it has left. What a sub-agent changes is changed by the calls of its own session; for the call that it works for,
//! all that it was lent may have changed.

use backstitch_core::tool::ResourceUse;
use backstitch_core::tool::Tool;

use super::{Attempt, ToolRunner};
use crate::agent::SubAgent;
use crate::error::RuntimeError;
use crate::live::CapturedResource;

impl ToolRunner {
    /// How a tool uses snapshotable resources, where there are any.
    pub(super) fn resource_use(&self, tool: &Tool) -> ResourceUse {
        match self.live.resources().registered().next() {
            Some(_) => tool.spec.resources,
            None => ResourceUse::None,
        }
    }

    /// Captures what a call has changed.
    pub(super) fn capture_resources(&self, started: &Attempt) -> Result<Vec<CapturedResource>, RuntimeError> {
        let changed = started.resources.before_changes();
        let is_lent = self.lends_resources(started);
        let resources = self.live.resources().registered();
        let resources = resources.filter(|one| is_lent || changed.contains_key(one.name()));
        Ok(resources.map(CapturedResource::of).collect::<Result<_, _>>()?)
    }

    /// Restores the resources to before a call. One that refuses poisons the session.
    pub(super) async fn restore_resources(&self, started: &Attempt) -> Result<(), RuntimeError> {
        if self.lends_resources(started) {
            return self.live.restore_held_resources().await;
        }
        let before = started.resources.before_changes();
        match self.live.resources().restore(&before) {
            Ok(()) => Ok(()),
            Err(error) => {
                started.end_resources(false);
                let what = format!("the resources before {} could not be restored", started.tool.name());
                Err(self.live.poison_for(&error, &what).await)
            }
        }
    }

    fn lends_resources(&self, started: &Attempt) -> bool {
        let lends = self.resource_use(&started.tool) == ResourceUse::Write;
        lends && SubAgent::behind(&started.tool).is_some()
    }
}
