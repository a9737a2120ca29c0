//! Approvals in place: a person at the terminal decides about the calls that a session waits for, and the
//! session continues in the same process.
//!
//! All waiting calls are asked about, also those of sub-agents. Each answer is durable before the next
//! question is shown, so a process that is killed at a question loses no answer. A question that is left open
//! (`q`, Ctrl-C, Ctrl-D) leaves the session waiting. Nothing that was typed before a question was shown
//! answers it. Nobody is asked unless standard input and standard error are terminals.

mod ask;
mod editor;
mod files;
mod person;
mod preview;
mod shown;

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::sync::Arc;

use backstitch::approval::{ApprovalRule, ApprovalRules, ApprovalVerdict, RuleMatch};
use backstitch::code::ErrorCode;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{Decision, Origin, PauseReason};
use backstitch::ports::{BoxFuture, Workspace};
use backstitch::{DriftPolicy, RuntimeError, SessionOptions, SystemClock, Tools, WaitingCall};

use super::place::{OpenStore, short};
use crate::common::Common;
use crate::terminal::style::Text;
use ask::{Answer, Question};
pub(super) use person::{Interrupts, TerminalPerson};
use shown::{dim, warning};

/// A person who is asked.
pub(super) trait Person: Send {
    /// Prints lines.
    fn show(&mut self, lines: &[Text]);

    /// Asks a question, and returns the answer without its line end. `None` leaves the question open.
    fn answer<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Whether everything that a session waits for was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decisions {
    /// The session can continue, with its files as this says.
    Made(Option<DriftPolicy>),
    /// The person left a question open, so the session still waits.
    LeftOpen,
}

/// The session whose calls a person is asked about.
pub(super) struct WaitingSession<'a> {
    pub(super) place: &'a OpenStore,
    pub(super) session: SessionId,
    pub(super) workspace: Option<Arc<dyn Workspace>>,
    /// The tools of its agent.
    pub(super) tools: &'a Tools,
    /// The lasting rules of the user.
    pub(super) rules: &'a ApprovalRules,
}

/// Whether a person can be asked: at a terminal, and not by a program.
pub(super) fn is_person_there(common: &Common) -> bool {
    !common.json && !common.no_input && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether a run ended with a pause that [`ask_person`] may end.
pub(super) fn is_askable(reason: PauseReason) -> bool {
    is_about_call(reason) || reason == PauseReason::Asked
}

/// Whether a pause waits for a decision about a call.
fn is_about_call(reason: PauseReason) -> bool {
    matches!(reason, PauseReason::Approval | PauseReason::EffectUnknown)
}

/// Asks a person about all calls that a session and its sub-agents wait for, and records the decisions. Changed files are
/// asked about first.
pub(super) async fn ask_person(
    waiting: &WaitingSession<'_>,
    person: &mut dyn Person,
) -> anyhow::Result<Decisions> {
    let view = waiting.place.view(waiting.session).await?;
    if files::waits_for_files(&view) {
        let decided = files::ask(waiting, &view, person).await?;
        return Ok(decided.map_or(Decisions::LeftOpen, |drift| Decisions::Made(Some(drift))));
    }
    let calls = waiting.place.runtime.waiting_calls(waiting.session).await?;
    let calls: Vec<_> = calls.into_iter().filter(|call| is_about_call(call.reason)).collect();
    let count = calls.len();
    for (index, call) in calls.into_iter().enumerate() {
        if let Some(found) = waiting.ruled(&call).await? {
            waiting.apply_rule(&call, &found, person).await?;
            continue;
        }
        let asker = waiting.asker_of(&call).await?;
        let place = (count > 1).then_some((index + 1, count));
        let question = Question { waiting, call, asker, place };
        let answer = question.ask(person).await?;
        if answer == Answer::Leave {
            return Ok(Decisions::LeftOpen);
        }
        question.record(answer, person).await?;
    }
    // A poisoned session, or one that waits for something else, is not continued from here.
    let left = waiting.place.runtime.waiting_calls(waiting.session).await?;
    Ok(if count > 0 && left.is_empty() { Decisions::Made(None) } else { Decisions::LeftOpen })
}

/// Asks a person about the calls that a session waits for while it is driven, except those that were asked about. Returns
/// false if the person left a question open.
pub(super) async fn ask_while_driven(
    waiting: &WaitingSession<'_>,
    asked: &mut HashSet<CallId>,
    person: &mut dyn Person,
) -> anyhow::Result<bool> {
    loop {
        let calls = waiting.place.runtime.waiting_calls(waiting.session).await?;
        let is_new = |call: &WaitingCall| call.reason == PauseReason::Approval && !asked.contains(&call.call);
        let Some(call) = calls.into_iter().find(is_new) else { return Ok(true) };
        asked.insert(call.call);
        if let Some(found) = waiting.ruled(&call).await? {
            waiting.apply_rule(&call, &found, person).await?;
            continue;
        }
        let asker = waiting.asker_of(&call).await?;
        let question = Question { waiting, call, asker, place: None };
        let answer = question.ask(person).await?;
        if answer == Answer::Leave {
            return Ok(false);
        }
        question.record(answer, person).await?;
    }
}

impl WaitingSession<'_> {
    /// Returns the rule that decides about a call: a lasting one, or one of the session.
    async fn ruled(&self, call: &WaitingCall) -> anyhow::Result<Option<RuleMatch>> {
        let Some(arguments) = call.arguments.as_object().filter(|_| call.reason == PauseReason::Approval)
        else {
            return Ok(None);
        };
        let mut rules = self.rules.clone();
        let mut sessions = vec![self.session];
        sessions.extend((call.session != self.session).then_some(call.session));
        for session in sessions {
            let view = self.place.view(session).await?;
            let own = view.session(Arc::new(SystemClock::new())).all::<ApprovalRule>()?;
            rules = rules.and(own.iter().map(|rule| (**rule).clone()));
        }
        Ok(rules.judge(&call.name, arguments).filter(|found| found.verdict != ApprovalVerdict::Ask))
    }

    async fn apply_rule(
        &self,
        call: &WaitingCall,
        found: &RuleMatch,
        person: &mut dyn Person,
    ) -> anyhow::Result<()> {
        let by = Some(format!("rule {}", found.rule));
        let (decision, word) = match found.verdict {
            ApprovalVerdict::Deny => {
                let reason = format!("a rule of the user denies this call ({})", found.rule);
                (Decision::Deny { reason: Some(reason) }, "denied")
            }
            ApprovalVerdict::Allow | ApprovalVerdict::Ask => (Decision::Approve, "approved"),
        };
        self.decide(call, decision, by, person).await?;
        let line = format!("{word} by the rule {}: {} [{}]", found.rule, call.name, short(call.call));
        person.show(&[dim(line)]);
        Ok(())
    }

    /// Records a decision. If it was made elsewhere in the meantime, that is only printed.
    async fn decide(
        &self,
        call: &WaitingCall,
        decision: Decision,
        by: Option<String>,
        person: &mut dyn Person,
    ) -> anyhow::Result<()> {
        if self.place.runtime.drives(call.session) {
            self.place.runtime.decide(call.session, Some(call.call), decision, by).await?;
            return Ok(());
        }
        let options = SessionOptions { workspace: self.workspace.clone(), ..SessionOptions::default() };
        let live = self.place.runtime.open_idle(call.session, options).await?;
        let decided = live.resolve(Some(call.call), decision, by).await;
        let released = live.release().await;
        match decided {
            Err(RuntimeError::Unresolvable(reason)) => {
                person.show(&[warning(format!("nothing was recorded: {reason}"))]);
            }
            decided => decided?,
        }
        Ok(released?)
    }

    /// Records a rule that holds for the session and its sub-agents.
    async fn add_rule(&self, rule: ApprovalRule) -> anyhow::Result<()> {
        Ok(self.place.runtime.add_approval_rule(self.session, rule).await?)
    }

    /// Returns the result that a pause offers for a call that may have happened.
    async fn offered(&self, call: &WaitingCall) -> anyhow::Result<Option<backstitch::message::OptionResult>> {
        let live = self.place.runtime.open_idle(call.session, SessionOptions::default()).await?;
        let offered = live.offered_result(call.call).await;
        live.release().await?;
        Ok(offered?.and_then(|message| message.message.option_result().cloned()))
    }

    /// Returns the sub-agent that made a call, in words; `None` for the agent of the session itself.
    async fn asker_of(&self, call: &WaitingCall) -> anyhow::Result<Option<String>> {
        if call.session == self.session {
            return Ok(None);
        }
        let view = self.place.view(call.session).await?;
        let Origin::Call { session, call: parent } = view.created().origin else { return Ok(None) };
        let name = self.place.view(session).await?.call(parent).map(|call| call.name.clone());
        Ok(Some(format!("sub-agent {} (session {})", name.unwrap_or_default(), short(call.session))))
    }
}

/// The error for a decision about something that does not wait.
pub(super) fn not_waiting(message: String) -> crate::error::CommandError {
    crate::error::CommandError::new(ErrorCode::DecisionRefused, message)
}
