//! Decisions of people, with reports about them.
//!
//! Calls that wait for approval are decided together: if one of those that are named does not wait, nothing is recorded. A
//! decision about another pause may restore files, which its report lists. Both record each decision as
//! [`Runtime::decide_with`] does.
//!
//! [`Run::deciding`] decides the pauses of a run as they come.

use backstitch_core::approval::{ApprovalRule, ApprovalScope, ApprovalVerdict};
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{ApprovalSubject, Decision, PauseReason};
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::ToolName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Run;
use super::decide::{DecideOptions, DecisionState};
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::live::RestoredFiles;
use crate::outcome::DriveOutcome;
use crate::report::Version;
use crate::runtime::Runtime;
use crate::waiting::WaitingCall;

/// The result of approving or denying calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct DecisionReport {
    /// The version of this form.
    pub v: Version,
    /// The session whose calls, and those of its sub-agents, were decided.
    pub session: SessionId,
    /// What was decided.
    pub decision: ApprovalOutcome,
    /// The calls.
    pub decided: Vec<DecidedCall>,
    /// The number of calls that still wait for approval.
    #[serde(default)]
    pub waiting: usize,
    /// Whether the process that drives the session, or the next run, has to apply a decision.
    #[serde(default)]
    pub sent: bool,
}

/// What was decided about a call that waits for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// It may run.
    Approved,
    /// It does not run.
    Denied,
}

impl ApprovalOutcome {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }
}

/// A call that was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct DecidedCall {
    /// The session that made the call.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

/// The result of a decision about one call, or about a session as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ResolutionReport {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The call; `None` for the session as a whole.
    pub call: Option<CallId>,
    /// Always true: a decision that is refused is an error.
    pub decided: bool,
    /// Whether the process that drives the session, or the next run, has to apply the decision.
    #[serde(default)]
    pub sent: bool,
    /// The files that the decision restored.
    pub restored: Vec<RestoredFiles>,
}

impl Runtime {
    /// Approves or denies calls of a session, and of its sub-agents, that wait for approval. Fails with
    /// [`RuntimeError::Unresolvable`] if one of them does not wait for that, before any of them is decided. `by` names the
    /// person.
    pub async fn decide_calls(
        &self,
        session: SessionId,
        calls: &[CallId],
        decision: Decision,
        by: Option<String>,
    ) -> Result<DecisionReport> {
        self.decide_each(session, calls, decision, by, |_| None).await
    }

    /// Approves calls as [`decide_calls`](Self::decide_calls) does, and adds a rule for each that allows later calls of its tool in
    /// this session and its sub-agents. For a call that reads from a host, the rule is about that host.
    pub async fn allow_calls(
        &self,
        session: SessionId,
        calls: &[CallId],
        by: Option<String>,
    ) -> Result<DecisionReport> {
        let rule = |call: &WaitingCall| {
            let tool = ToolName::new(&call.name).ok()?;
            let host = call
                .arguments
                .as_object()
                .and_then(|arguments| ApprovalScope::of_host(tool.clone(), arguments));
            let scope = host.unwrap_or_else(|| ApprovalScope::of_tool(tool));
            Some(ApprovalRule::new(ApprovalVerdict::Allow, scope))
        };
        self.decide_each(session, calls, Decision::Approve, by, rule).await
    }

    async fn decide_each(
        &self,
        session: SessionId,
        calls: &[CallId],
        decision: Decision,
        by: Option<String>,
        rule: impl Fn(&WaitingCall) -> Option<ApprovalRule>,
    ) -> Result<DecisionReport> {
        let waiting = self.waiting_calls(session).await?.into_iter();
        let (chosen, others): (Vec<_>, Vec<_>) = waiting
            .filter(|waiting| waiting.reason == PauseReason::Approval)
            .partition(|waiting| calls.contains(&waiting.call));
        if let Some(call) = calls.iter().find(|call| chosen.iter().all(|waiting| waiting.call != **call)) {
            return Err(RuntimeError::Unresolvable(format!("call {call}: it does not wait for approval")));
        }
        let outcome = match decision {
            Decision::Deny { .. } => ApprovalOutcome::Denied,
            Decision::Approve | Decision::Edit { .. } => ApprovalOutcome::Approved,
            _ => {
                let reason = "calls that wait for approval are approved, edited or denied";
                return Err(RuntimeError::Unresolvable(reason.to_owned()));
            }
        };
        let (mut decided, mut sent) = (Vec::new(), false);
        for call in chosen {
            let (rule, subject) = (rule(&call), call.subject);
            let options = DecideOptions { by: by.clone(), rule, subject, ..DecideOptions::default() };
            let state = self.decide_with(call.session, Some(call.call), decision.clone(), options).await?;
            sent |= state != DecisionState::Recorded;
            let (session, id) = (call.session, call.call);
            decided.push(DecidedCall { session, call: id, name: call.name, arguments: call.arguments });
        }
        Ok(DecisionReport { v: Version, session, decision: outcome, decided, waiting: others.len(), sent })
    }

    /// Decides as [`decide_with`](Self::decide_with) does, and reports the files that were restored.
    pub fn resolve_with(
        &self,
        session: SessionId,
        call: Option<CallId>,
        decision: Decision,
        options: DecideOptions,
    ) -> BoxFuture<'_, Result<ResolutionReport>> {
        Box::pin(async move {
            let since = self.view(session).await?.head();
            let sent = self.decide_with(session, call, decision, options).await? != DecisionState::Recorded;
            let restored = self.restores(session, since).await?;
            Ok(ResolutionReport { v: Version, session, call, decided: true, sent, restored })
        })
    }
}

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
    ) -> Result<DriveOutcome> {
        let mut decided: Vec<(CallId, PauseReason, Option<ApprovalSubject>)> = Vec::new();
        loop {
            let ended = self.outcome().await?;
            if !matches!(ended, DriveOutcome::Paused { .. }) {
                return Ok(ended);
            }
            let mut has_decided = false;
            let calls = self.runtime.waiting_calls(self.session).await?;
            let about = |waiting: &WaitingCall| (waiting.call, waiting.reason, waiting.subject.clone());
            // A question that has ended may be asked again.
            decided.retain(|question| calls.iter().any(|waiting| about(waiting) == *question));
            for waiting in calls {
                // A decision that did not fit would be made for ever.
                let about = about(&waiting);
                if !decided.contains(&about)
                    && let Some(decision) = decide(&waiting).await
                {
                    let subject = waiting.subject.clone();
                    let options = DecideOptions { subject, ..DecideOptions::default() };
                    self.runtime.decide_with(waiting.session, Some(waiting.call), decision, options).await?;
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
