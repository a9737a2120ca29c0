//! Snapshotable resources around a call.
//!
//! They are part of the transaction: the first guard that changes one captures the state for a rollback, and
//! a call that succeeds records the new states. A sub-agent changes resources through the calls of its own
//! session. For the parent call, all resources that were lent may have changed.

use backstitch_core::tool::ResourceUse;
use backstitch_core::tool::Tool;

use super::{Attempt, ToolRunner};
use crate::agent::SubAgent;
use crate::error::RuntimeError;
use crate::live::CapturedResource;

impl ToolRunner {
    /// Returns how a tool uses snapshotable resources, if the session has any.
    pub(super) fn resource_use(&self, tool: &Tool) -> ResourceUse {
        match self.live.resources().registered().next() {
            Some(_) => tool.spec.resources,
            None => ResourceUse::None,
        }
    }

    /// Captures the resources that a call has changed.
    pub(super) fn capture_resources(&self, started: &Attempt) -> Result<Vec<CapturedResource>, RuntimeError> {
        let changed = started.resources.before_changes();
        let is_lent = self.lends_resources(started);
        let resources = self.live.resources().registered();
        let resources = resources.filter(|one| is_lent || changed.contains_key(one.name()));
        Ok(resources.map(CapturedResource::of).collect::<Result<_, _>>()?)
    }

    /// Restores the resources to their state before a call. A failure poisons the session.
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
