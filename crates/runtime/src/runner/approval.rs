//! Whether a call needs approval: what its tool declares, unless a rule says otherwise.

use std::panic::AssertUnwindSafe;

use super::request::{CallOutcome, CallRequest};
use super::result::Failure;
use super::{ToolRunner, paused};
use crate::agent::SubAgent;
use crate::error::Result;
use crate::fence::panic_message;
use crate::live::LiveSession;
use backstitch_core::approval::{ApprovalRule, ApprovalRules, ApprovalVerdict, RuleMatch};
use backstitch_core::journal::{ApprovalSubject, CoveredDigests, Decision, PauseReason, PauseResolved};
use backstitch_core::message::Retry;
use backstitch_core::mode::{AgentMode, CallKind};
use backstitch_core::tool::{Approval, CallInspection, InspectionMoment, Tool};
use futures_util::FutureExt as _;
use serde_json::{Map, Value};

/// What a call needs before it may run.
pub(crate) enum ApprovalNeed {
    /// It may run.
    None,
    /// A person has to approve it.
    Person,
    /// A rule denies it. The text is for the model.
    Denied(String),
}

impl ApprovalNeed {
    /// Returns what the rules say of a call. Without a rule for it, a person has to approve it if `asks` is set.
    pub(crate) fn of(rules: &ApprovalRules, name: &str, arguments: &Map<String, Value>, asks: bool) -> Self {
        match rules.judge(name, arguments) {
            Some(RuleMatch { verdict: ApprovalVerdict::Deny, rule }) => Self::Denied(denial(&rule)),
            Some(RuleMatch { verdict: ApprovalVerdict::Ask, .. }) => Self::Person,
            Some(RuleMatch { verdict: ApprovalVerdict::Allow, .. }) => Self::None,
            None if asks => Self::Person,
            None => Self::None,
        }
    }
}

impl ToolRunner {
    /// Returns what a call needs. What the mode of the agent refuses is refused, whatever the rules say; otherwise the rules
    /// decide, and without a rule for the call, its tool and the mode.
    pub(super) fn need(
        &self,
        rules: &ApprovalRules,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> ApprovalNeed {
        let spec = &tool.spec;
        // The calls of a sub-agent are judged one by one.
        let mode = self.mode.filter(|_| SubAgent::behind(tool).is_none());
        let verdict = mode.map(|mode| mode.verdict(CallKind::of(spec, arguments)));
        if let (Some(mode), Some(ApprovalVerdict::Deny)) = (mode, verdict) {
            return ApprovalNeed::Denied(refusal(mode));
        }
        let asks_for_rights = mode != Some(AgentMode::Full) && spec.asks_for_rights(arguments);
        let asks = match spec.approval {
            Approval::Needed => true,
            Approval::NotNeeded => verdict == Some(ApprovalVerdict::Ask),
            Approval::Waived => false,
        };
        ApprovalNeed::of(rules, tool.name().as_str(), arguments, asks || asks_for_rights)
    }

    /// Returns the text for the model if a rule denies a call.
    pub(crate) async fn denial_of(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Option<String>> {
        let found = rules_of(&self.live, &self.rules).await?.judge(name, arguments);
        let denied = found.filter(|found| found.verdict == ApprovalVerdict::Deny);
        Ok(denied.map(|found| denial(&found.rule)))
    }

    /// Asks a person whether a call may run, and records what the question is about.
    pub(super) async fn ask_for_approval(
        &self,
        tool: &Tool,
        call: &CallRequest,
        arguments: &Map<String, Value>,
    ) -> Result<CallOutcome> {
        let covered = match self.inspect(tool, arguments, InspectionMoment::Question).await {
            Ok(covered) => covered,
            Err(failure) => return self.refuse(call, failure).await,
        };
        let question = paused(call, PauseReason::Approval, first_question(tool.name().as_str()));
        self.live.record(vec![question.about(ApprovalSubject::new(arguments, covered)).into()]).await?;
        Ok(CallOutcome::NeedsApproval)
    }

    /// Asks a person again if what a call would start is not what a person approved, and ends the call if that cannot be known.
    /// Returns `None` if it may start.
    pub(super) async fn check_approval(
        &self,
        tool: &Tool,
        call: &CallRequest,
        arguments: &Map<String, Value>,
    ) -> Result<Option<CallOutcome>> {
        // A child session that is resumed has started already.
        let Some(approved) = call.subject.as_deref().filter(|_| call.continued.is_none()) else {
            return Ok(None);
        };
        let cancel = call.cancel.as_ref().unwrap_or(&self.cancel);
        let covered = tokio::select! {
            biased;
            // A call that is cancelled meanwhile is started, and its handler does not run.
            () = cancel.cancelled() => Ok(approved.covered.clone()),
            covered = self.inspect(tool, arguments, InspectionMoment::Start) => covered,
        };
        let covered = match covered {
            Ok(covered) => covered,
            Err(failure) => return self.refuse(call, failure).await.map(Some),
        };
        let now = ApprovalSubject::new(arguments, covered);
        let Some(changed) = approved.difference(&now) else { return Ok(None) };
        let name = tool.name();
        let detail = format!("{name} needs approval again, because this has changed since: {changed}");
        let question = paused(call, PauseReason::Approval, detail);
        self.live.record(vec![question.about(now).into()]).await?;
        Ok(Some(CallOutcome::NeedsApproval))
    }

    /// Asks a handler what a call starts.
    async fn inspect(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        moment: InspectionMoment,
    ) -> Result<CoveredDigests, Failure> {
        let directory = self.live.workspace().and_then(|workspace| workspace.host_directory());
        let call = CallInspection { arguments, directory: directory.as_deref(), moment };
        let inspected = AssertUnwindSafe(async { tool.handler.inspect(call).await }).catch_unwind().await;
        match inspected {
            Ok(covered) => covered.map_err(Failure::of_tool),
            Err(panic) => {
                let message = format!("{} panicked: {}", tool.name(), panic_message(panic));
                Err(Failure::by_runtime("panic", message, Retry::Refused))
            }
        }
    }
}

/// Returns the details of the first question about a call. Later ones say what has changed.
pub(crate) fn first_question(name: &str) -> String {
    format!("{name} needs approval")
}

/// Returns the rules that apply to the calls of a session: those that its agent has or inherits, and its own.
pub(crate) async fn rules_of(live: &LiveSession, inherited: &ApprovalRules) -> Result<ApprovalRules> {
    let own = live.state().await.session.all::<ApprovalRule>()?;
    Ok(inherited.clone().and(own.iter().map(|rule| (**rule).clone())))
}

/// Returns the decision of a rule about a waiting call, and the rule as its author. `None` if a person has to decide.
pub(crate) fn decision_of(found: &RuleMatch) -> Option<(Decision, String)> {
    let decision = match found.verdict {
        ApprovalVerdict::Allow => Decision::Approve,
        ApprovalVerdict::Deny => Decision::Deny { reason: Some(denial(&found.rule)) },
        ApprovalVerdict::Ask => return None,
    };
    Some((decision, PauseResolved::rule_author(&found.rule)))
}

/// Returns the text for the model about a call that the mode of its agent refuses.
fn refusal(mode: AgentMode) -> String {
    format!(
        "this call was not run: in the mode {mode}, only tools that change nothing run, and commands that write nothing and \
         ask for no further rights; describe what you would do instead"
    )
}

/// Returns the text for the model about a call that a rule denies.
fn denial(rule: &ApprovalRule) -> String {
    format!(
        "a rule of the user denies this call (deny `{}`); it was not run, and is denied again if it is repeated",
        rule.scope
    )
}
