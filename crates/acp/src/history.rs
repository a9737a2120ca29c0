//! Steps through the history of a session: rewind, undo and redo, as commands of a conversation and as methods of the protocol.
//!
//! A message of a person is a point: the conversation and the files as they were before it. Files that others changed since are merged
//! or left alone, as everywhere.

use agent_client_protocol::Error;
use backstitch::host::{message_text, one_line, readable_message};
use backstitch::journal::{InnerMessage, Role};
use backstitch::report::RewindReport;
use backstitch::view::JournalView;
use backstitch::{HistoryStep, PointSpec, RewindOptions, RewindScope, RuntimeError};

use crate::error::{invalid, of_runtime};
use crate::replay::{agent_message_id, user_message_id};
use crate::session::{EditorSession, SessionState};

/// A message that a session can be rewound to.
pub(crate) struct RewindPoint {
    /// The id of the message.
    pub(crate) message_id: String,
    /// The id of the answer before it.
    pub(crate) answer_before: Option<String>,
    pub(crate) text: String,
    /// What is visible at the point.
    pub(crate) point: PointSpec,
    /// The messages of its turn.
    pub(crate) messages: usize,
}

impl EditorSession {
    /// Lists the messages that the session can be rewound to, oldest first.
    pub(crate) async fn rewind_points(
        &self,
        state: &SessionState,
        view: &JournalView,
    ) -> Result<Vec<RewindPoint>, RuntimeError> {
        let store = &state.prepared.runtime.opened_store().store;
        let (mut points, mut answer_before) = (Vec::<RewindPoint>::new(), None);
        let evaluations: Vec<_> = view.evaluations().collect();
        for evaluation in evaluations {
            let messages = view.messages_of(evaluation.evaluation_id)?;
            if let Some(mission) = messages.iter().find(|message| is_text_of(message, Role::User)) {
                let point = match points.is_empty() {
                    true => PointSpec::Start,
                    false => PointSpec::Position(evaluation.started.position),
                };
                points.push(RewindPoint {
                    message_id: user_message_id(mission),
                    answer_before: answer_before.clone(),
                    text: message_text(&*readable_message(&**store, mission).await?),
                    point,
                    messages: messages.len(),
                });
            }
            let answer = messages.iter().rfind(|message| is_text_of(message, Role::Assistant));
            answer_before = answer.map(|answer| agent_message_id(answer)).or(answer_before);
        }
        Ok(points)
    }

    /// Steps through the history, and loads the agent as it is recorded there.
    pub(crate) async fn step(
        &self,
        state: &mut SessionState,
        step: HistoryStep,
        scope: RewindScope,
    ) -> Result<RewindReport, Error> {
        if !state.prepared.is_stored {
            return Err(invalid("the conversation has not begun, so there is nothing to rewind"));
        }
        let options = RewindOptions { scope, ..RewindOptions::default() };
        let done = state.prepared.runtime.step(self.session, step, options).await;
        let done = done.map_err(|error| of_runtime(&error))?;
        if !done.dry_run {
            self.reload(state).await?;
        }
        Ok(done)
    }

    /// Carries out `/rewind`, `/undo` or `/redo`, and says what was done.
    pub(crate) async fn step_by_command(
        &self,
        state: &mut SessionState,
        name: &str,
        rest: &str,
    ) -> Result<(), Error> {
        let (step, headline) = match name {
            "undo" => (HistoryStep::Undo, "The latest rewind is undone.".to_owned()),
            "redo" => (HistoryStep::Redo, "The rewind is repeated.".to_owned()),
            _ => self.rewind_step(state, rest).await?,
        };
        let done = self.step(state, step, RewindScope::default()).await?;
        let mut lines = lines_of(&done);
        if name != "undo" {
            let note = "What the editor shows of later messages is not part of the conversation any more.";
            lines.push(note.to_owned());
        }
        self.say(&format!("{headline}\n\n{}", lines.join("\n")));
        Ok(())
    }

    /// Returns the step that undoes the last messages.
    async fn rewind_step(&self, state: &SessionState, rest: &str) -> Result<(HistoryStep, String), Error> {
        let failed = |error: RuntimeError| of_runtime(&error);
        let count = match rest {
            "" => Some(1),
            count => count.parse::<usize>().ok().filter(|count| *count > 0),
        };
        let count = count.ok_or_else(|| invalid("`/rewind N` undoes the last N messages"))?;
        if !state.prepared.is_stored {
            return Err(invalid("the conversation has not begun, so there is nothing to rewind"));
        }
        let view = state.prepared.runtime.view(self.session).await.map_err(failed)?;
        let points = self.rewind_points(state, &view).await.map_err(failed)?;
        let Some(target) = points.len().checked_sub(count).and_then(|place| points.get(place)) else {
            return Err(invalid(format!("the conversation has {} messages", points.len())));
        };
        let headline =
            format!("The conversation and its files are as before: {}", one_line(&target.text, 60));
        Ok((HistoryStep::To(target.point.clone()), headline))
    }
}

fn is_text_of(message: &InnerMessage, role: Role) -> bool {
    message.role() == role
        && message.message.option_call().is_none()
        && message.message.option_result().is_none()
}

/// Describes what a step did to the files, and what it did not undo.
fn lines_of(done: &RewindReport) -> Vec<String> {
    let mut lines: Vec<String> =
        done.own_files.changes.iter().map(|change| format!("- restored `{}`", change.path)).collect();
    lines.extend(
        done.own_files.merged.iter().map(|path| format!("- merged with changes of others: `{path}`")),
    );
    let left = done.own_files.conflicts.iter();
    lines.extend(
        left.map(|conflict| format!("- left alone, because others changed it too: `{}`", conflict.path)),
    );
    lines.extend(done.effects.iter().map(|effect| format!("- not undone outside: {}", effect.name)));
    lines.push(String::new());
    lines
}
