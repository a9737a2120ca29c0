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
pub(crate) mod server_questions;
mod shown;

use std::sync::Arc;

use backstitch::approval::{ApprovalRules, ApprovalVerdict};
use backstitch::host::{AskedCalls, DriftPolicy};
use backstitch::id::SessionId;
use backstitch::journal::{Decision, Origin};
use backstitch::ports::{BoxFuture, Workspace};
use backstitch::{DecideOptions, OperationFiles, RuntimeError, Tools, WaitingCall};

use crate::open::{OpenStore, short};
use crate::terminal::Text;
use ask::Question;
pub(crate) use person::{Interrupts, TerminalPerson};
use shown::{dim, warning};

/// A person who is asked.
pub(crate) trait Person: Send {
    /// Prints lines.
    fn show(&mut self, lines: &[Text]);

    /// Asks a question, and returns the answer without its line end. `None` leaves the question open.
    fn answer<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Whether everything that a session waits for was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decisions {
    /// The session can continue, with its files as this says.
    Made(Option<DriftPolicy>),
    /// The person left a question open, so the session still waits.
    LeftOpen,
}

/// The session whose calls a person is asked about.
pub(crate) struct WaitingSession<'a> {
    pub(crate) place: &'a OpenStore,
    pub(crate) session: SessionId,
    pub(crate) workspace: Option<Arc<dyn Workspace>>,
    /// The tools of its agent.
    pub(crate) tools: &'a Tools,
    /// The lasting rules of the user.
    pub(crate) rules: &'a ApprovalRules,
}

/// Asks a person about all calls that a session and its sub-agents wait for, and records the decisions. Changed files are
/// asked about first.
pub(crate) async fn ask_person(
    waiting: &WaitingSession<'_>,
    person: &mut dyn Person,
) -> anyhow::Result<Decisions> {
    let view = waiting.place.view(waiting.session).await?;
    if view.waits_for_files() {
        let decided = files::ask(waiting, &view, person).await?;
        return Ok(decided.map_or(Decisions::LeftOpen, |drift| Decisions::Made(Some(drift))));
    }
    let calls = waiting.place.runtime.waiting_calls(waiting.session).await?;
    let calls: Vec<_> = calls.into_iter().filter(|call| call.reason.is_about_call()).collect();
    let count = calls.len();
    for (index, call) in calls.into_iter().enumerate() {
        if !waiting.ask_about(call, (count > 1).then_some((index + 1, count)), person).await? {
            return Ok(Decisions::LeftOpen);
        }
    }
    // A poisoned session, or one that waits for something else, is not continued from here.
    let left = waiting.place.runtime.waiting_calls(waiting.session).await?;
    Ok(if count > 0 && left.is_empty() { Decisions::Made(None) } else { Decisions::LeftOpen })
}

/// Asks a person about the calls that a session waits for while it is driven, except those that were asked about. Returns
/// false if the person left a question open.
pub(crate) async fn ask_while_driven(
    waiting: &WaitingSession<'_>,
    asked: &mut AskedCalls,
    person: &mut dyn Person,
) -> anyhow::Result<bool> {
    loop {
        let calls = waiting.place.runtime.waiting_calls(waiting.session).await?;
        let Some(call) = asked.first_new(calls) else { return Ok(true) };
        if !waiting.ask_about(call, None, person).await? {
            return Ok(false);
        }
    }
}

impl WaitingSession<'_> {
    /// Decides about a call, of so many, by a rule or by asking. Returns false if the person left the question open.
    async fn ask_about(
        &self,
        call: WaitingCall,
        place: Option<(usize, usize)>,
        person: &mut dyn Person,
    ) -> anyhow::Result<bool> {
        if self.decide_by_rule(&call, person).await? {
            return Ok(true);
        }
        let asker = self.asker_of(&call).await?;
        let question = Question { waiting: self, call, asker, place };
        let Some(answer) = question.ask(person).await? else { return Ok(false) };
        question.record(answer, person).await?;
        Ok(true)
    }

    /// Decides about a call if a rule does: a lasting one, or one of the session. Returns whether there is one.
    async fn decide_by_rule(&self, call: &WaitingCall, person: &mut dyn Person) -> anyhow::Result<bool> {
        let found = match self.place.runtime.decide_by_rule(self.session, call, self.rules).await {
            Err(RuntimeError::Unresolvable(reason)) => {
                person.show(&[not_recorded(&reason)]);
                return Ok(true);
            }
            found => found?,
        };
        let Some(found) = found else { return Ok(false) };
        let word = if found.verdict == ApprovalVerdict::Deny { "denied" } else { "approved" };
        let line = format!("{word} by the rule {}: {} [{}]", found.rule, call.name, short(call.call));
        person.show(&[dim(line)]);
        Ok(true)
    }

    /// Records a decision, and returns whether it was. If another one was made elsewhere in the meantime, or the call waits with
    /// something else by now, that is printed.
    async fn decide(
        &self,
        call: &WaitingCall,
        decision: Decision,
        by: Option<String>,
        person: &mut dyn Person,
    ) -> anyhow::Result<bool> {
        let files = self.workspace.clone().map_or(OperationFiles::Untouched, OperationFiles::within);
        let options = DecideOptions { by, files, subject: call.subject.clone(), ..DecideOptions::default() };
        match self.place.runtime.decide_with(call.session, Some(call.call), decision, options).await {
            Err(RuntimeError::Unresolvable(reason)) => {
                person.show(&[not_recorded(&reason)]);
                Ok(false)
            }
            decided => decided.map(|_| true).map_err(Into::into),
        }
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

fn not_recorded(reason: &str) -> Text {
    warning(format!("nothing was recorded: {reason}"))
}
