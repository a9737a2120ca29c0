//! The request to a policy: what a live request and its replay share, and the replay.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::{
    EvaluationHistory, FollowedConversation, TurnState, VisibleHistory, conversation,
};
use backstitch_core::ports::{Deltas, PolicyRequest, Store};
use backstitch_core::session::Items;
use backstitch_core::time::Clock;
use backstitch_core::view::JournalView;

use super::arriving::{is_stopped, with_mark};
use super::content::with_content;
use super::fit;
use super::hydrate::{ContentCache, ObjectSource, media_in};
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

/// Returns the request that an agent would make with this journal. Nothing is sent.
pub(crate) async fn question_before(
    agent: &Agent,
    store: &dyn Store,
    view: &JournalView,
    evaluation: EvaluationId,
    clock: Arc<dyn Clock>,
) -> Result<PolicyRequest> {
    let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
    let agent = &*agent.answering(view, evaluation);
    let (hydrated, held) = (ContentCache::default(), ObjectSource::In(store));
    let transcript = hydrated.transcript(held, view.transcript()?).await?;
    let past = EvaluationHistory {
        messages: transcript.inner_messages(evaluation),
        followed: FollowedConversation::all(view, &transcript, evaluation),
        ..EvaluationHistory::of(view, evaluation)?
    };
    let machine = agent.machines().rebuild(&with_content(held, past).await?)?;
    let mut shown = machine.show(answers_left(view, evaluation)).unwrap_or_else(|| {
        let visible = conversation(&transcript, &view.followed(evaluation), evaluation);
        VisibleHistory {
            messages: visible.into_iter().collect(),
            renderer: agent.renderer(),
            ..VisibleHistory::default()
        }
    });
    shown.messages = without_silent(shown.messages);
    let shown = fit::fitted(shown, None, fit::limit(agent, view));
    let media = hydrated.media(held, media_in(&shown.messages)).await?;
    let mut session = view.session(clock);
    agent.set_up_session(&mut session);
    Ok(PolicyRequest {
        session_id: view.session_id(),
        evaluation_id: evaluation,
        turn: known.turns + 1,
        shown: shown.messages,
        renderer: shown.renderer,
        transcript,
        media,
        options: if shown.tools_in_text { Arc::default() } else { agent.options() },
        output: agent.output.as_ref().map(|contract| contract.wire.clone()),
        refusals: fit::refusals(agent, view),
        deltas: Deltas::default(),
        session,
    })
}
