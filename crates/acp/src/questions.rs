//! Questions to the person at the editor: permissions of the protocol as decisions about calls.
//!
//! A question has a few answers, each with an id. Only an answer with the id of an allowing option allows anything. An editor that is gone,
//! that cancels the question, or that answers with an unknown id decides nothing: the call waits, as it does in a terminal that is
//! closed. Every answer is durable before the next question is asked.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use backstitch::approval::{ApprovalRule, ApprovalScope, ApprovalVerdict, CommandWords};
use backstitch::host::{AskedCalls, DriftPolicy};
use backstitch::journal::{Decision, PauseReason};
use backstitch::message::OptionResult;
use backstitch::ports::{CommandNeeds, Workspace};
use backstitch::tool::ToolName;
use backstitch::view::JournalView;
use backstitch::{DecideOptions, OperationFiles, RuntimeError, WaitingCall};
use serde::Deserialize as _;
use serde_json::Value;

use crate::host::DecidedBy;
use crate::session::{EditorSession, SessionState};
use crate::{calls, diffs};

/// Number of words of a command that a lasting rule is about.
const MOST_WORDS: usize = 2;

/// Whether everything that a session waits for was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decisions {
    /// The session can continue, with its files as this says.
    Made(Option<DriftPolicy>),
    /// A question was left open, so the session still waits.
    LeftOpen,
}

/// An answer that a person may choose, and what it decides.
struct Choice {
    option: PermissionOption,
    decision: Decision,
    rule: Option<ApprovalRule>,
}

impl Choice {
    fn new(id: &'static str, name: String, kind: PermissionOptionKind, decision: Decision) -> Self {
        Self { option: PermissionOption::new(id, name, kind), decision, rule: None }
    }

    fn with_rule(self, rule: ApprovalRule) -> Self {
        Self { rule: Some(rule), ..self }
    }
}

impl EditorSession {
    /// Asks about everything that the session and its sub-agents wait for, and records the decisions.
    pub(crate) async fn ask_all(
        &self,
        state: &SessionState,
        files: Option<Arc<dyn Workspace>>,
    ) -> Result<Decisions, RuntimeError> {
        let (runtime, session) = (&state.prepared.runtime, self.session);
        let view = runtime.view(session).await?;
        if view.waits_for_files() {
            let drift = self.ask_about_files(state, &view).await?;
            return Ok(drift.map_or(Decisions::LeftOpen, |drift| Decisions::Made(Some(drift))));
        }
        let calls = runtime.waiting_calls(session).await?;
        let calls: Vec<_> = calls.into_iter().filter(|call| call.reason.is_about_call()).collect();
        let count = calls.len();
        for call in calls {
            if !self.ask_about(state, &call, files.as_ref()).await? {
                return Ok(Decisions::LeftOpen);
            }
        }
        let left = runtime.waiting_calls(session).await?;
        Ok(if count > 0 && left.is_empty() { Decisions::Made(None) } else { Decisions::LeftOpen })
    }

    /// Asks about the calls that wait while an engine runs, except those that were asked about. Returns false if a question was
    /// left open.
    pub(crate) async fn ask_while_driven(
        &self,
        state: &SessionState,
        asked: &mut AskedCalls,
    ) -> Result<bool, RuntimeError> {
        loop {
            let waiting = state.prepared.runtime.waiting_calls(self.session).await?;
            let Some(call) = asked.first_new(waiting) else { return Ok(true) };
            if !self.ask_about(state, &call, None).await? {
                return Ok(false);
            }
        }
    }

    /// Decides about a call by a rule, or asks. Returns false if the question was left open.
    async fn ask_about(
        &self,
        state: &SessionState,
        call: &WaitingCall,
        files: Option<&Arc<dyn Workspace>>,
    ) -> Result<bool, RuntimeError> {
        let (runtime, agent) = (&state.prepared.runtime, &state.prepared.agent.built.agent);
        match runtime.decide_by_rule(self.session, call, &agent.approval_rules).await {
            // It was decided elsewhere.
            Err(RuntimeError::Unresolvable(_)) => return Ok(true),
            decided => {
                if decided?.is_some() {
                    return Ok(true);
                }
            }
        }
        if self.decided_by == DecidedBy::Inbox {
            return Ok(false);
        }
        let choices = match call.reason {
            PauseReason::Approval => approval_choices(call),
            _ => {
                let offered = match call.has_offer {
                    true => runtime.offered_result(call.session, call.call).await?,
                    false => None,
                };
                outcome_choices(call, offered)
            }
        };
        let shown = self.question_about(state, call, files);
        let Some(choice) = self.answer(shown, choices).await else { return Ok(false) };
        let by = Some(self.host.user());
        let files = files.cloned().map_or(OperationFiles::Untouched, OperationFiles::within);
        let subject = call.subject.clone();
        let rule = choice.rule.map(|rule| rule.by(by.clone()));
        if let Some(rule) = rule {
            // The rule first: if the process dies between the two, the rule decides about the call.
            runtime.add_approval_rule(self.session, rule).await?;
        }
        let options = DecideOptions { by, files, subject, ..DecideOptions::default() };
        match runtime.decide_with(call.session, Some(call.call), choice.decision, options).await {
            // Another decision was made elsewhere, or the call waits with something else by now.
            Err(RuntimeError::Unresolvable(reason)) => {
                self.say(&format!("\n\nNothing was recorded: {reason}\n\n"));
                Ok(true)
            }
            decided => decided.map(|_| true),
        }
    }

    /// Asks what happens to files that changed while nothing drove the session.
    async fn ask_about_files(
        &self,
        state: &SessionState,
        view: &JournalView,
    ) -> Result<Option<DriftPolicy>, RuntimeError> {
        if self.decided_by == DecidedBy::Inbox {
            return Ok(None);
        }
        let decisions = state.prepared.runtime.waiting(view).await?;
        let files: Vec<String> = decisions.into_iter().flat_map(|decision| decision.files).collect();
        let list = match files.is_empty() {
            true => "Files changed while the machine was restarted.".to_owned(),
            false => format!("The interrupted call or others changed these files:\n{}", files.join("\n")),
        };
        let keep = "Keep the files as they are; the interrupted call does not run again".to_owned();
        let restore = "Restore the files; what they hold now is kept in the store".to_owned();
        let choices = vec![
            Choice::new("keep", keep, PermissionOptionKind::AllowOnce, Decision::Continue),
            Choice::new("restore", restore, PermissionOptionKind::RejectOnce, Decision::Retry),
        ];
        let fields = ToolCallUpdateFields::new()
            .title("Files changed while the session was interrupted".to_owned())
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Pending)
            .content(vec![ToolCallContent::from(calls::fenced(&list))]);
        let shown = ToolCallUpdate::new(format!("files-{}", view.head()), fields);
        let id = shown.tool_call_id.clone();
        let answer = self.answer(shown, choices).await;
        let status = if answer.is_some() { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        self.update_call(ToolCallUpdate::new(id, ToolCallUpdateFields::new().status(status)));
        Ok(answer.map(|choice| match choice.decision {
            Decision::Retry => DriftPolicy::Restore,
            _ => DriftPolicy::Adopt,
        }))
    }

    /// Returns a call as the question shows it: the change that it would make, its command, or its arguments.
    fn question_about(
        &self,
        state: &SessionState,
        call: &WaitingCall,
        files: Option<&Arc<dyn Workspace>>,
    ) -> ToolCallUpdate {
        let agent = &state.prepared.agent.built.agent;
        let directory = state.files_directory();
        let arguments = &call.arguments;
        let files = files.map(|workspace| workspace.filesystem());
        let diff = files
            .and_then(|files| diffs::of_planned(&agent.tools, &*files, &directory, &call.name, arguments));
        let mut content = vec![match diff {
            Some(diff) => ToolCallContent::from(diff),
            None => ToolCallContent::from(calls::fenced(&whole(arguments))),
        }];
        // A question that is asked again says why, and so does a call whose outcome is not known.
        if !call.detail.is_empty() && call.detail != format!("{} needs approval", call.name) {
            content.insert(0, ToolCallContent::from(calls::fenced(&call.detail)));
        }
        calls::update(call.call, question_fields(call, &directory).content(content))
    }

    /// Asks a question, and returns the choice of the person. `None` leaves it open.
    async fn answer(&self, shown: ToolCallUpdate, choices: Vec<Choice>) -> Option<Choice> {
        let options = choices.iter().map(|choice| choice.option.clone()).collect();
        let chosen = self.ask_editor(shown, options).await?;
        choices.into_iter().find(|choice| *choice.option.option_id.0 == *chosen)
    }

    /// Asks the editor, and returns the id of the option that the person chose. `None` if there is no answer.
    pub(crate) async fn ask_editor(
        &self,
        shown: ToolCallUpdate,
        options: Vec<PermissionOption>,
    ) -> Option<Arc<str>> {
        let request = RequestPermissionRequest::new(self.id.clone(), shown, options);
        match self.connection.send_request(request).block_task().await {
            Ok(answer) => match answer.outcome {
                RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.0),
                _ => None,
            },
            Err(error) => {
                tracing::info!(session = %self.session, %error, "the editor did not answer a question");
                None
            }
        }
    }
}

fn question_fields(call: &WaitingCall, directory: &Path) -> ToolCallUpdateFields {
    let title = calls::title_of(&call.name, &call.arguments);
    let title = match call.reason {
        PauseReason::EffectUnknown => format!("It is unknown whether this happened: {title}"),
        _ => title,
    };
    ToolCallUpdateFields::new()
        .title(title)
        .name(call.name.clone())
        .kind(calls::kind_of(&call.name))
        .status(ToolCallStatus::Pending)
        .locations(calls::locations_of(directory, &call.arguments))
        .raw_input(call.arguments.clone())
}

/// Returns the answers to the question whether a call may run.
fn approval_choices(call: &WaitingCall) -> Vec<Choice> {
    let deny = || Decision::Deny { reason: None };
    let mut choices =
        vec![Choice::new("allow", "Allow".to_owned(), PermissionOptionKind::AllowOnce, Decision::Approve)];
    let scope = lasting_scope(call);
    if let Some(scope) = scope.clone().filter(|scope| !scope.is_launcher()) {
        let name = format!("Always allow `{scope}` in this session");
        let always = Choice::new("allow-always", name, PermissionOptionKind::AllowAlways, Decision::Approve);
        choices.push(always.with_rule(ApprovalRule::new(ApprovalVerdict::Allow, scope)));
    }
    choices.push(Choice::new("reject", "Reject".to_owned(), PermissionOptionKind::RejectOnce, deny()));
    // Only a rule that allows names rights.
    let refused = scope.and_then(|scope| match scope.needs().is_empty() {
        true => Some(scope),
        false => ToolName::new(&call.name).ok().map(ApprovalScope::of_tool),
    });
    if let Some(scope) = refused {
        let name = format!("Always reject `{scope}` in this session");
        let never = Choice::new("reject-always", name, PermissionOptionKind::RejectAlways, deny());
        choices.push(never.with_rule(ApprovalRule::new(ApprovalVerdict::Deny, scope)));
    }
    choices
}

/// Returns what a lasting rule about a call covers: commands that begin with the same words, with the same rights, calls to the
/// same host, or all other calls of a tool without a command. A command that is more than one plain command has none.
fn lasting_scope(call: &WaitingCall) -> Option<ApprovalScope> {
    let tool = ToolName::new(&call.name).ok()?;
    let Some(command) = call.arguments.get("command").and_then(Value::as_str) else {
        let host =
            call.arguments.as_object().and_then(|arguments| ApprovalScope::of_host(tool.clone(), arguments));
        return Some(host.unwrap_or_else(|| ApprovalScope::of_tool(tool)));
    };
    let has_input =
        call.arguments.get("input").and_then(Value::as_str).is_some_and(|input| !input.is_empty());
    let words = CommandWords::parse(command).filter(|_| !has_input)?;
    let needs = match call.arguments.get("needs") {
        None | Some(Value::Null) => CommandNeeds::default(),
        Some(needs) => CommandNeeds::deserialize(needs).ok()?,
    };
    let count = words.as_slice().len().min(MOST_WORDS);
    ApprovalScope::of_command(tool, &words, count)?.with_needs(needs)
}

/// Returns the answers to the question whether a call has happened. Failing it is the one without a further effect.
fn outcome_choices(call: &WaitingCall, offered: Option<OptionResult>) -> Vec<Choice> {
    let fail = "It did not happen: report an error to the model".to_owned();
    let failed = Decision::Fail { reason: None };
    let mut choices = vec![Choice::new("fail", fail, PermissionOptionKind::RejectOnce, failed)];
    let (name, result) = match offered {
        Some(offered) => ("It happened: use the recorded result", offered),
        None => {
            let result = OptionResult::new(call.call, &call.name, Value::String("done".to_owned()));
            ("It happened", result)
        }
    };
    let happened = Decision::Happened { result: Box::new(result) };
    choices.push(Choice::new("happened", name.to_owned(), PermissionOptionKind::AllowOnce, happened));
    let again = "Run it again".to_owned();
    choices.push(Choice::new("retry", again, PermissionOptionKind::AllowOnce, Decision::Retry));
    choices
}

/// Formats the arguments of a call completely: its command as text and the others as JSON.
fn whole(arguments: &Value) -> String {
    let Some(command) = arguments.get("command").and_then(Value::as_str) else {
        return format!("{arguments:#}");
    };
    let others = arguments.as_object().into_iter().flatten().filter(|(name, _)| *name != "command");
    let others: serde_json::Map<_, _> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    match others.is_empty() {
        true => command.to_owned(),
        false => format!("{command}\n\nwith {:#}", Value::Object(others)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waiting(name: &str, arguments: Value) -> WaitingCall {
        let clock = Arc::new(backstitch::SystemClock::new());
        let ids = backstitch::host::fresh_ids(clock).unwrap();
        WaitingCall {
            session: ids.next(),
            call: ids.next(),
            name: name.to_owned(),
            arguments,
            reason: PauseReason::Approval,
            detail: String::new(),
            has_offer: false,
            subject: None,
        }
    }

    fn shown(choices: &[Choice]) -> Vec<(String, Option<String>)> {
        let rule = |choice: &Choice| choice.rule.as_ref().map(|rule| rule.to_string());
        choices.iter().map(|choice| (choice.option.option_id.to_string(), rule(choice))).collect()
    }

    #[test]
    fn a_lasting_answer_is_about_the_first_words_of_a_plain_command() {
        let choices = approval_choices(&waiting("shell", json!({"command": "cargo test --all"})));
        let ids: Vec<_> = shown(&choices).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["allow", "allow-always", "reject", "reject-always"]);
        assert!(choices[1].option.name.contains("cargo test"), "{}", choices[1].option.name);
        assert!(matches!(choices[3].decision, Decision::Deny { .. }));
    }

    #[test]
    fn what_runs_anything_is_never_allowed_for_good() {
        for command in ["sh -c ls", "cargo test; rm -rf .", "env ls"] {
            let choices = approval_choices(&waiting("shell", json!({"command": command})));
            assert!(choices.iter().all(|choice| choice.option.kind != PermissionOptionKind::AllowAlways));
        }
    }

    #[test]
    fn a_rule_that_rejects_names_no_rights() {
        let call = json!({"command": "curl -s x", "needs": {"network": true, "reason": "x"}});
        let choices = approval_choices(&waiting("shell", call));
        let rejects = choices.last().and_then(|choice| choice.rule.as_ref()).unwrap();
        assert!(rejects.scope.needs().is_empty());
    }

    #[test]
    fn a_call_of_another_tool_is_allowed_by_its_name() {
        let choices = approval_choices(&waiting("write_file", json!({"path": "a", "text": "b"})));
        assert!(choices[1].rule.as_ref().is_some_and(|rule| rule.scope.prefix().is_empty()));
    }

    #[test]
    fn a_lasting_answer_about_a_page_is_about_its_host() {
        let choices = approval_choices(&waiting("fetch", json!({"url": "https://example.com/seams"})));
        for choice in [&choices[1], &choices[3]] {
            assert_eq!(choice.rule.as_ref().unwrap().scope.to_string(), "fetch example.com");
        }
    }
}
