//! Runs whose pauses are decided as they come.

use backstitch_core::journal::Decision;

use super::Run;
use crate::agent::Agent;
use crate::error::RuntimeError;
use crate::outcome::DriveOutcome;
use crate::waiting::WaitingCall;

impl Run {
    /// Waits for the outcome of the run, and passes each call that waits for a person to `decide`. The session is then
    /// resumed with the decisions, until nothing waits any more. Calls of sub-agents are included.
    ///
    /// A call for which `decide` returns `None` keeps waiting: the others are decided, and if none of the waiting calls was,
    /// the paused outcome is returned. So are pauses that are not about a call, such as an exhausted budget, and calls that
    /// still wait after their decision, because it did not fit.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use backstitch_core::journal::Decision;
    /// use backstitch_core::tool::{Tool, ToolResult};
    /// use backstitch_runtime::{Agent, Runtime};
    /// use backstitch_store::MemoryStore;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Text {
    ///     text: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let publish = Tool::builder("publish", "Publishes a text.")?
    ///     .needs_approval()
    ///     .handler(|_, said: Text| async move { Ok(ToolResult::ok(said.text)) });
    /// let script = "
    ///     [[reply]]
    ///     call = [{ name = 'publish', arguments = { text = 'Seams hold.' } }]
    ///     [[reply]]
    ///     text = 'It is published.'
    /// ";
    /// let policy = backstitch_providers::ScriptedPolicy::from_toml(script)?;
    /// let agent = Agent::new("editor").policy(policy).tools([publish]);
    /// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    /// let run = runtime.start(&agent, "Publish something about seams.").await?;
    /// let outcome = run.deciding(&agent, async |call| (call.name == "publish").then_some(Decision::Approve)).await?;
    /// assert_eq!(outcome.answer()?.text, "It is published.");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn deciding(
        mut self,
        agent: &Agent,
        mut decide: impl AsyncFnMut(&WaitingCall) -> Option<Decision>,
    ) -> Result<DriveOutcome, RuntimeError> {
        let mut decided = Vec::new();
        loop {
            let ended = self.outcome().await?;
            if !matches!(ended, DriveOutcome::Paused { .. }) {
                return Ok(ended);
            }
            let mut has_decided = false;
            for waiting in self.runtime.waiting_calls(self.session).await? {
                // A decision that did not fit would be made for ever.
                let about = (waiting.call, waiting.reason);
                if !decided.contains(&about)
                    && let Some(decision) = decide(&waiting).await
                {
                    self.runtime.decide(waiting.session, Some(waiting.call), decision, None).await?;
                    decided.push(about);
                    has_decided = true;
                }
            }
            if !has_decided {
                return Ok(ended);
            }
            self = self.runtime.resume(self.session, agent).await?;
        }
    }
}
