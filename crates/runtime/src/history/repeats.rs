//! Calls that would repeat an effect outside that was discarded.
//!
//! A call that becomes pending again and may have happened is not repeated without a decision: the session waits,
//! and offers the recorded result. The same holds for a later call with the same tool and arguments, whatever the
//! point that the session went back to. Such a call of an idempotent tool does not wait: it has the key of the
//! discarded call, so that its effect happens once.

use backstitch_core::digest::Digest;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    Effect, IdempotencyKey, Origin, PauseReason, Position, RecordBody, Recovery, SessionPaused,
};
use backstitch_core::ports::Store;
use backstitch_core::tool::ToolSpec;
use backstitch_core::view::{Call, CallStatus, JournalView};
use serde_json::{Map, Value};

use super::effects::{DiscardedEffect, Journals, PriorEffect};
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, find_view};

/// How a call is kept from repeating a discarded effect.
pub(crate) enum Repetition {
    /// The session waits for a decision about it.
    Waits,
    /// It runs with the key of the discarded call.
    WithKey(IdempotencyKey),
}

impl LiveSession {
    /// Returns how the first run of a call is kept from repeating a discarded effect of this session, or of the
    /// session that it is a sub-agent of. A pause is recorded.
    pub(crate) async fn check_repetition(
        &self,
        call: CallId,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
    ) -> Result<Option<Repetition>> {
        let own = tool.effect_of(arguments);
        if !own.acts_outside() {
            return Ok(None);
        }
        let view = self.view().await;
        if view.call(call).is_some_and(|call| call.intent.is_some() || call.adopted.is_some()) {
            return Ok(None);
        }
        let Some(root) = self.root_with_discarded_calls(&view).await? else { return Ok(None) };
        // One call at a time, so that two equal calls are not offered the same effect.
        let mut claims = self.claimed_effects.lock().await;
        let now = self.view().await;
        let is_pending = |call: &Call| call.status() == CallStatus::Pending;
        claims.retain(|(_, call)| now.call(*call).is_some_and(is_pending));
        self.flush().await?;
        let store = &**self.store();
        let history = Journals::read(store, root).await?.effects(root, None);
        if history.was_asked_about(call) {
            // A person decided that it runs again. In a fork, it has the key that it had in the parent.
            let same = history.of_call(call).filter(|known| have_a_key(own, known.started.effect));
            return Ok(same.map(|known| Repetition::WithKey(known.started.idempotency_key.clone())));
        }
        let wanted = Digest::of_json(arguments).ok();
        for effect in history.unspent().filter(|effect| effect.started.name == tool.name.as_str()) {
            if claims.iter().any(|(at, by)| *at == effect.at && *by != call)
                || Digest::of_json(&effect.arguments(store).await?).ok() != wanted
            {
                continue;
            }
            claims.push((effect.at, call));
            if have_a_key(own, effect.started.effect) {
                return Ok(Some(Repetition::WithKey(effect.started.idempotency_key.clone())));
            }
            self.record(vec![pause(call, effect).into()]).await?;
            return Ok(Some(Repetition::Waits));
        }
        Ok(None)
    }

    /// Returns the outermost session that this one is a sub-agent of, or itself, if any of them went back.
    async fn root_with_discarded_calls(&self, view: &JournalView) -> Result<Option<SessionId>> {
        let outer = self
            .outer_root
            .get_or_try_init(|| async {
                let (mut root, mut was_rewound) = (self.id(), false);
                let mut origin = view.created().origin.clone();
                let mut seen = vec![root];
                while let Origin::Call { session, .. } = origin {
                    if seen.contains(&session) {
                        break;
                    }
                    let Some(parent) = find_view(&**self.store(), session).await? else { break };
                    seen.push(session);
                    was_rewound |= has_discarded_calls(&parent);
                    (root, origin) = (session, parent.created().origin.clone());
                }
                Ok::<_, RuntimeError>((root, was_rewound))
            })
            .await?;
        Ok((outer.1 || has_discarded_calls(view)).then_some(outer.0))
    }
}

/// True if calls of the session, or of its sub-agents, may have been discarded.
fn has_discarded_calls(view: &JournalView) -> bool {
    let is_fork = matches!(view.created().origin, Origin::Fork { .. });
    let is_withdrawn = |call: &Call| call.status() == CallStatus::Failed && call.session().is_some();
    is_fork || !view.lineage().rewinds().is_empty() || view.calls().any(is_withdrawn)
}

/// Returns the pauses of calls that are pending at a cut and have been started on any branch.
pub(super) async fn pauses_for(
    store: &dyn Store,
    prefix: &JournalView,
    session: SessionId,
) -> Result<Vec<RecordBody>> {
    let waiting: Vec<_> = prefix.pauses().filter_map(|pause| pause.call_id).collect();
    let pending: Vec<CallId> =
        prefix.pending_calls().map(|call| call.call_id).filter(|call| !waiting.contains(call)).collect();
    if pending.is_empty() {
        return Ok(Vec::new());
    }
    pauses_of(store, session, pending).await
}

/// Returns the pauses of calls that are about to be made and have been started before on any branch.
pub(crate) async fn pauses_of(
    store: &dyn Store,
    session: SessionId,
    calls: impl IntoIterator<Item = CallId>,
) -> Result<Vec<RecordBody>> {
    let history = Journals::read(store, session).await?.effects(session, None);
    let pauses = calls.into_iter().filter_map(|call| Some(pause(call, history.of_call(call)?).into()));
    Ok(pauses.collect())
}

/// Whether both of two effects happen at most once for their key.
fn have_a_key(one: Effect, other: Effect) -> bool {
    [one, other].iter().all(|effect| effect.recovery() == Recovery::RepeatWithKey)
}

/// Returns the effects that a session leaves behind when it goes back to a cut, of itself or of the session that it
/// is a fork of.
pub(super) async fn effects_after(
    store: &dyn Store,
    view: &JournalView,
    (session, cut): (SessionId, Position),
) -> Result<Vec<DiscardedEffect>> {
    let is_outside = |call: &Call| call.recorded_effect().is_some_and(Effect::acts_outside);
    if !view.calls().any(|call| is_outside(call) || call.session().is_some()) {
        return Ok(Vec::new());
    }
    let journals = Journals::read(store, view.session_id()).await?;
    let then = journals.effects(session, Some(cut));
    journals.effects(view.session_id(), None).left_behind_by(&then, store).await
}

/// Returns the effects that a recorded rewind has left behind.
pub(crate) async fn effects_left_by(
    store: &dyn Store,
    session: SessionId,
    (at, to): (Position, Position),
) -> Result<Vec<DiscardedEffect>> {
    let journals = Journals::read(store, session).await?;
    let then = journals.effects(session, Some(to));
    journals.effects(session, Some(at)).left_behind_by(&then, store).await
}

fn pause(call: CallId, known: &PriorEffect) -> SessionPaused {
    let repeated = Some(known.started.call_id).filter(|repeated| *repeated != call);
    let mut detail = known.started.name.clone();
    if repeated.is_some() {
        detail.push_str(": the same call was made before the session went back");
        if known.offer().is_some() {
            detail.push_str(", and its result can be used");
        }
    }
    let paused = SessionPaused::new(PauseReason::EffectUnknown).of_call(call).with_detail(detail);
    SessionPaused { offer: known.offer(), repeats: repeated, ..paused }
}
