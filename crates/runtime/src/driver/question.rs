//! The question that a policy is asked: the same now, and whenever it is asked for again.

use std::sync::Arc;

use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::{Past, Shown, TurnState, answers_of};
use backstitch_core::ports::{Deltas, MediaBytes, Question, Store};
use backstitch_core::session::Session;
use backstitch_core::time::Clock;
use backstitch_core::view::{JournalView, Transcript};

use super::hydrate::{Held, Hydrated, media_in};
use super::past::with_content;
use crate::agent::Agent;
use crate::error::RuntimeError;

/// What a question is about, beside what is shown and known.
pub(super) struct Asking {
    pub(super) session_id: SessionId,
    pub(super) evaluation_id: EvaluationId,
    /// How many answers there are.
    pub(super) turns: u64,
    pub(super) media: MediaBytes,
    pub(super) deltas: Deltas,
}

impl Asking {
    pub(super) fn question(
        self,
        agent: &Agent,
        shown: Shown,
        transcript: Transcript,
        session: Session,
    ) -> Question {
        Question {
            session_id: self.session_id,
            evaluation_id: self.evaluation_id,
            turn: self.turns + 1,
            shown: shown.messages,
            renderer: shown.renderer,
            transcript,
            media: self.media,
            options: if shown.tools_in_text { Arc::default() } else { agent.options() },
            output: agent.output.as_ref().map(|contract| contract.wire_schema().clone()),
            deltas: self.deltas,
            session,
        }
    }
}

/// What a machine shows, or all of an evaluation as it was said, without answers that say nothing: providers refuse those.
pub(super) fn shown(shown: Option<Shown>, transcript: &Transcript, evaluation: EvaluationId) -> Shown {
    let mut shown =
        shown.unwrap_or_else(|| Shown { messages: transcript.of_evaluation(evaluation), ..Shown::default() });
    let messages: Vec<_> = shown.messages.iter().cloned().collect();
    let answers = answers_of(&messages).into_iter();
    let silent = answers.filter(|(_, answer)| TurnState::is_silent(answer.iter().copied()));
    let silent: Vec<u64> = silent.map(|(turn, _)| turn).collect();
    if !silent.is_empty() {
        let speaks = |message: &&Arc<InnerMessage>| {
            message.role() != Role::Assistant || !silent.contains(&message.turn)
        };
        shown.messages = messages.iter().filter(speaks).cloned().collect();
    }
    shown
}

/// How many answers the budget of an evaluation leaves it.
pub(super) fn answers_left(view: &JournalView, evaluation: EvaluationId) -> Option<u64> {
    view.budget_left(view.evaluation(evaluation)?)?.turns
}

/// The question that an agent would be asked with the journal as it is here. Nobody is asked.
pub(crate) async fn question_before(
    agent: &Agent,
    store: &dyn Store,
    view: &JournalView,
    evaluation: EvaluationId,
    clock: Arc<dyn Clock>,
) -> Result<Question, RuntimeError> {
    let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
    let hydrated = Hydrated::default();
    let transcript = hydrated.transcript(store, view.transcript()?).await?;
    let past = Past { messages: transcript.inner_messages(evaluation), ..Past::of(view, evaluation)? };
    let machine = agent.machinery().rebuild(&with_content(store, past).await?)?;
    let shown = shown(machine.show(answers_left(view, evaluation)), &transcript, evaluation);
    let media = hydrated.media(Held::In(store), media_in(&shown.messages)).await?;
    let mut session = view.session(clock);
    agent.set_up(&mut session);
    let asking = Asking {
        session_id: view.session_id(),
        evaluation_id: evaluation,
        turns: known.turns,
        media,
        deltas: Deltas::default(),
    };
    Ok(asking.question(agent, shown, transcript, session))
}
