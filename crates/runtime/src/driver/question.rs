//! The request to a policy: what a live request and its replay share, and the replay.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, RequestStarted, Role};
use backstitch_core::machine::{EvaluationHistory, FollowedConversation, TurnState, VisibleHistory};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Deltas, MediaBytes, PolicyRequest, RequestMemo, Store};
use backstitch_core::session::{Items, Session};
use backstitch_core::time::Clock;
use backstitch_core::view::{JournalView, Transcript};

use super::arriving::{is_stopped, with_mark};
use super::content::with_content;
use super::fit;
use super::hydrate::{ContentCache, ObjectSource, media_in};
use super::room::Room;
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};

/// Removes silent answers, which providers refuse, and marks those that a person stopped.
pub(super) fn without_silent(messages: Items<InnerMessage>) -> Items<InnerMessage> {
    let silent = silent_turns(&messages);
    if silent.is_empty() && !messages.iter().any(is_stopped) {
        return messages;
    }
    let speaks = |message: &&Arc<InnerMessage>| {
        message.role() != Role::Assistant || !silent.contains(&(message.evaluation_id, message.turn))
    };
    messages.iter().filter(speaks).map(with_mark).collect()
}

/// Returns the turns whose answers have neither text nor calls.
fn silent_turns(messages: &Items<InnerMessage>) -> HashSet<(EvaluationId, u64)> {
    let mut answers: HashMap<_, Vec<&Arc<InnerMessage>>> = HashMap::new();
    for message in messages.iter().filter(|message| message.role() == Role::Assistant) {
        answers.entry((message.evaluation_id, message.turn)).or_default().push(message);
    }
    answers.retain(|_, answer| TurnState::is_silent(answer.iter().copied()));
    answers.into_keys().collect()
}

/// Returns how many answers the budget of an evaluation still allows.
pub(super) fn answers_left(view: &JournalView, evaluation: EvaluationId) -> Option<u64> {
    view.budget_left(view.evaluation(evaluation)?)?.turns
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    /// The next answer of the evaluation.
    Answer,
    /// A summary of the conversation, which is text, whatever the evaluation answers with.
    Summary,
}

/// The state of a session before a request.
pub(super) struct QuestionState {
    pub(super) view: JournalView,
    pub(super) session: Session,
    /// All messages, with their content.
    pub(super) transcript: Transcript,
}

impl QuestionState {
    /// Returns the turn of the next answer.
    pub(super) fn turn(&self, evaluation: EvaluationId) -> Result<u64> {
        let known = self.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        Ok(known.turns + 1)
    }

    /// Returns the conversation with its cuts. Only a new cut needs the limit.
    pub(super) fn room(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        hydrated: &ContentCache,
        limit: Option<u64>,
    ) -> Result<Room> {
        let followed = || self.view.followed(evaluation);
        let mut conversation = hydrated.conversation(&self.transcript, evaluation, followed);
        Room::new(agent, &self.session, &mut conversation, limit)
    }

    /// Returns the conversation of an agent that elides old results for each request anew, with its media. `None` for other agents.
    pub(super) fn elided(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        hydrated: &ContentCache,
    ) -> Option<(VisibleHistory, Vec<ObjectId>)> {
        let (strategy, options) = agent.elides()?;
        let followed = || self.view.followed(evaluation);
        let shown = hydrated.conversation(&self.transcript, evaluation, followed).elided_by(options);
        let visible = VisibleHistory {
            messages: shown.messages,
            renderer: Some(strategy.renderer()),
            left_out: shown.left_out,
            ..VisibleHistory::default()
        };
        let limit = fit::limit(agent, &self.view).filter(|limit| !fit::fits(shown.bytes, *limit));
        if limit.is_none() {
            return Some((visible, shown.media));
        }
        let visible = fit::fitted(visible, limit);
        let media = media_in(&visible.messages);
        Some((visible, media))
    }

    /// Returns the request that shows these messages.
    pub(super) fn request(
        &self,
        agent: &Agent,
        evaluation: EvaluationId,
        shown: VisibleHistory,
        media: MediaBytes,
        deltas: Deltas,
        purpose: RequestPurpose,
    ) -> Result<PolicyRequest> {
        let output = agent.output.as_ref().filter(|_| purpose == RequestPurpose::Answer);
        Ok(PolicyRequest {
            session_id: self.view.session_id(),
            evaluation_id: evaluation,
            turn: self.turn(evaluation)?,
            shown: shown.messages,
            renderer: shown.renderer,
            transcript: self.transcript.clone(),
            media,
            options: if shown.tools_in_text { Arc::default() } else { agent.options() },
            output: output.map(|contract| contract.wire.clone()),
            refusals: fit::refusals(agent, &self.view),
            deltas,
            session: self.session.clone(),
            memo: RequestMemo::default(),
        })
    }
}

/// Returns the request that a record describes, as an agent makes it with the journal before the record. Nothing is sent.
pub(crate) async fn question_before(
    agent: &Agent,
    store: &dyn Store,
    view: &JournalView,
    recorded: &RequestStarted,
    clock: Arc<dyn Clock>,
) -> Result<PolicyRequest> {
    let evaluation = recorded.evaluation_id;
    let agent = &*agent.answering(view, evaluation);
    let (hydrated, held) = (ContentCache::default(), ObjectSource::In(store));
    let transcript = hydrated.transcript(held, view.transcript()?).await?;
    let mut session = view.session(clock);
    agent.set_up_session(&mut session);
    let state = QuestionState { view: view.clone(), session, transcript };
    let past = EvaluationHistory {
        messages: state.transcript.inner_messages(evaluation),
        followed: FollowedConversation::all(view, &state.transcript, evaluation),
        ..EvaluationHistory::of(view, evaluation)?
    };
    let machine = agent.machines().rebuild(&with_content(held, past).await?)?;
    let (shown, purpose) = match machine.show(answers_left(view, evaluation)) {
        Some(shown) => {
            let messages = without_silent(shown.messages);
            let shown = VisibleHistory { messages, ..shown };
            (fit::fitted(shown, fit::limit(agent, view)), RequestPurpose::Answer)
        }
        None => {
            let room = state.room(agent, evaluation, &hydrated, None)?;
            if let Some((shown, _)) = state.elided(agent, evaluation, &hydrated) {
                (shown, RequestPurpose::Answer)
            } else if fit::is_shortened_anew(recorded.renderer.as_deref()) {
                (fit::fitted(room.whole(), fit::limit(agent, view)), RequestPurpose::Answer)
            } else if let Some(summary) = room.summary_request() {
                (summary, RequestPurpose::Summary)
            } else {
                (room.visible(), RequestPurpose::Answer)
            }
        }
    };
    let media = hydrated.media(held, media_in(&shown.messages)).await?;
    state.request(agent, evaluation, shown, media, Deltas::default(), purpose)
}
