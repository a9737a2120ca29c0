//! Effects outside, over all branches of a session.
//!
//! A rewind or a fork does not undo the outside effects of calls. Which of them it discards follows from the journals
//! alone: from that of the session, from those that it is a fork of, and from those of its sub-agents. A call is
//! visible if the conversation at a cut contains it. Every other call that was started is discarded, and its
//! effect is still there.
//!
//! A discarded effect is *spent* once the visible branch has decided about it: by a pause that offers its result, or
//! by a call that has the same idempotency key. Undoing the rewind that led to the decision makes it unspent again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    CallStarted, Effect, IdempotencyKey, InnerMessage, Origin, PauseReason, Point, Position, Record,
    RecordBody, SessionPaused,
};
use backstitch_core::message::Large;
use backstitch_core::ports::{Store, fetch_large};
use backstitch_core::view::Lineage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{arguments_of, with_content};
use crate::error::{Result, RuntimeError};
use crate::live::read_records;
use crate::observed::is_observed;

/// A call with an effect outside that a rewind or a fork has left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiscardedEffect {
    /// The session that made the call: the one that went back, or a sub-agent of it.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub name: String,
    /// Its effect class.
    pub effect: Effect,
    /// The arguments that it was started with.
    pub arguments: Value,
    /// Its result as text; `None` if it was interrupted.
    pub result: Option<String>,
}

/// The journals of a session, of those that it is a fork of, and of all their sub-agents.
pub(crate) struct Journals(HashMap<SessionId, Vec<Record>>);

impl Journals {
    /// Reads the journals. Sessions that were removed are left out.
    pub(crate) async fn read(store: &dyn Store, session: SessionId) -> Result<Self> {
        let (mut all, mut next) = (HashMap::new(), vec![session]);
        while let Some(session) = next.pop() {
            if all.contains_key(&session) {
                continue;
            }
            let records = match read_records(store, session, Position::START, None).await {
                Err(RuntimeError::SessionNotFound { .. }) => Vec::new(),
                records => records?,
            };
            for record in &records {
                match &record.body {
                    RecordBody::SessionCreated(created) => {
                        if let Origin::Fork { session, .. } = created.origin {
                            next.push(session);
                        }
                    }
                    RecordBody::CallStarted(started) => next.extend(started.session),
                    _ => {}
                }
            }
            all.insert(session, records);
        }
        Ok(Self(all))
    }

    /// Returns the effects of a session as its conversation at a cut shows them; at its head without a cut.
    pub(crate) fn effects(&self, session: SessionId, cut: Option<Position>) -> EffectHistory {
        let mut history = EffectHistory::default();
        let mut walk = Walk { journals: self, history: &mut history, seen: HashSet::new() };
        walk.add(session, JournalPart { until: None, cut, is_visible: true });
        history
    }
}

/// A call with an effect outside, on any branch.
#[derive(Debug, Clone)]
pub(crate) struct PriorEffect {
    /// The position of its first start.
    pub(crate) at: Point,
    pub(crate) started: Arc<CallStarted>,
    asked: Option<Arc<InnerMessage>>,
    /// The latest result, and where it is.
    pub(crate) result: Option<(Point, Arc<InnerMessage>)>,
    is_visible: bool,
}

impl PriorEffect {
    /// Returns whether the call itself had the effect. The effects of a sub-agent are those of its calls.
    fn is_own(&self) -> bool {
        self.started.session.is_none()
    }

    /// Returns where its result is, if it has one.
    pub(crate) fn offer(&self) -> Option<Point> {
        self.result.as_ref().map(|(at, _)| *at)
    }

    /// Returns the arguments that it was started with. Large ones are fetched.
    pub(crate) async fn arguments(&self, store: &dyn Store) -> Result<Value> {
        let mut started = self.started.clone();
        fetch_large(store, &mut started).await?;
        if let Some(edited) = started.arguments.as_ref().and_then(Large::inline) {
            return Ok(Value::Object(edited.clone()));
        }
        match &self.asked {
            Some(asked) => Ok(arguments_of(&with_content(store, asked).await?)),
            None => Ok(Value::Null),
        }
    }

    async fn describe(&self, store: &dyn Store) -> Result<DiscardedEffect> {
        let result = match &self.result {
            Some((_, message)) => Some(with_content(store, message).await?.content()),
            None => None,
        };
        Ok(DiscardedEffect {
            session: self.at.session,
            call: self.started.call_id,
            name: self.started.name.clone(),
            effect: self.started.effect,
            arguments: self.arguments(store).await?,
            result,
        })
    }
}

/// The outside effects of a session, and what its visible branch has decided about them.
#[derive(Default)]
pub(crate) struct EffectHistory {
    /// In the order of their starts. Those of a sub-agent are in the place of its call.
    all: Vec<PriorEffect>,
    /// The visible pauses about effects.
    pauses: Vec<Arc<SessionPaused>>,
    /// The keys of visible calls.
    keys: HashSet<IdempotencyKey>,
}

impl EffectHistory {
    /// Returns the discarded effects that the visible branch has not decided about.
    pub(crate) fn unspent(&self) -> impl Iterator<Item = &PriorEffect> {
        let discarded = self.all.iter().filter(|effect| !effect.is_visible && effect.is_own());
        discarded.filter(|effect| !self.is_spent(effect))
    }

    fn is_spent(&self, effect: &PriorEffect) -> bool {
        let call = effect.started.call_id;
        let decides = |pause: &Arc<SessionPaused>| match pause.repeats {
            Some(repeated) => repeated == call && pause.offer == effect.offer(),
            None => pause.call_id == Some(call),
        };
        self.keys.contains(&effect.started.idempotency_key) || self.pauses.iter().any(decides)
    }

    /// Returns whether a person was asked about the effect of a call on the visible branch.
    pub(crate) fn was_asked_about(&self, call: CallId) -> bool {
        self.pauses.iter().any(|pause| pause.call_id == Some(call))
    }

    /// Returns the latest start of a call on any branch.
    pub(super) fn of_call(&self, call: CallId) -> Option<&PriorEffect> {
        self.all.iter().rev().find(|effect| effect.started.call_id == call)
    }

    /// Describes the effects that are visible here, but not in `then`.
    pub(super) async fn left_behind_by(
        &self,
        then: &Self,
        store: &dyn Store,
    ) -> Result<Vec<DiscardedEffect>> {
        let visible = |history: &Self| -> HashSet<Point> {
            let visible = history.all.iter().filter(|effect| effect.is_visible && effect.is_own());
            visible.map(|effect| effect.at).collect()
        };
        let (now, then) = (visible(self), visible(then));
        let mut left = Vec::new();
        for effect in self.all.iter().filter(|effect| now.contains(&effect.at) && !then.contains(&effect.at))
        {
            left.push(effect.describe(store).await?);
        }
        Ok(left)
    }
}

/// A part of a journal to walk over.
struct JournalPart {
    /// Records from here on are not part of it.
    until: Option<Position>,
    /// The cut that determines what is visible; the end without one.
    cut: Option<Position>,
    /// Whether the session as a whole is visible.
    is_visible: bool,
}

struct Walk<'a> {
    journals: &'a Journals,
    history: &'a mut EffectHistory,
    seen: HashSet<SessionId>,
}

impl Walk<'_> {
    fn add(&mut self, session: SessionId, part: JournalPart) {
        let Some(records) = self.journals.0.get(&session).filter(|_| self.seen.insert(session)) else {
            return;
        };
        let records: Vec<&Record> = records
            .iter()
            .take_while(|record| part.until.is_none_or(|until| record.position < until))
            .collect();
        if let Some(RecordBody::SessionCreated(created)) = records.first().map(|first| &first.body)
            && let Origin::Fork { session, position } = created.origin
        {
            let cut = Some(position);
            self.add(session, JournalPart { until: created.parent_head, cut, is_visible: part.is_visible });
        }
        let rewinds = records.iter().filter_map(|record| match &record.body {
            RecordBody::Rewound(rewound) => Some((record.position, rewound.to)),
            _ => None,
        });
        let lineage: Lineage = rewinds.collect();
        let end = records.last().map_or(Position::START, |last| last.position.next());
        let cut = part.cut.unwrap_or(end);
        let ranges = lineage.visible(cut);
        let is_visible =
            |position: Position| part.is_visible && ranges.iter().any(|range| range.contains(&position));
        // After a rewind and in a fork, an open call gets a new child session.
        let is_current =
            |position| part.cut.is_none() && lineage.branch_of(position) == lineage.branch_of(cut);
        let ended: HashMap<CallId, Position> = records
            .iter()
            .filter(|record| is_visible(record.position))
            .filter_map(|record| match &record.body {
                RecordBody::CallFinished(finished) => Some((finished.call_id, record.position)),
                _ => None,
            })
            .collect();
        let mut asked: HashMap<CallId, &Arc<InnerMessage>> = HashMap::new();
        for record in &records {
            let (at, is_visible) =
                (Point { session, position: record.position }, is_visible(record.position));
            match &record.body {
                RecordBody::CallStarted(started) => {
                    let has_ended = ended.get(&started.call_id).is_some_and(|end| *end > record.position);
                    if let Some(child) = started.session {
                        let is_visible = is_visible && (has_ended || is_current(record.position));
                        self.add(child, JournalPart { until: None, cut: None, is_visible });
                    }
                    if is_outside(started) {
                        let asked = asked.get(&started.call_id).map(|asked| (*asked).clone());
                        self.start(PriorEffect {
                            at,
                            started: started.clone(),
                            asked,
                            result: None,
                            is_visible,
                        });
                    }
                }
                RecordBody::MessageAppended(message) => {
                    if let Some(call) = message.message.option_call() {
                        asked.insert(call.invocation_id, message);
                    } else if let Some(call) = message.tool_call_id() {
                        let latest = self.history.all.iter_mut().rev();
                        let mut open = latest.filter(|effect| effect.started.call_id == call);
                        if let Some(effect) = open.next().filter(|effect| effect.result.is_none()) {
                            effect.result = Some((at, message.clone()));
                        }
                    }
                }
                RecordBody::Paused(pause) if is_visible && pause.reason == PauseReason::EffectUnknown => {
                    self.history.pauses.push(pause.clone());
                }
                _ => {}
            }
        }
    }

    /// Adds the start of a call. If it was interrupted before, this is the same effect.
    fn start(&mut self, effect: PriorEffect) {
        if effect.is_visible {
            self.history.keys.insert(effect.started.idempotency_key.clone());
        }
        let call = effect.started.call_id;
        let latest = self.history.all.iter_mut().rev().find(|known| known.started.call_id == call);
        match latest.filter(|known| known.result.is_none() && known.at.session == effect.at.session) {
            Some(known) => known.is_visible |= effect.is_visible,
            None => self.history.all.push(effect),
        }
    }
}

fn is_outside(started: &CallStarted) -> bool {
    started.effect.acts_outside() && !is_observed(started)
}
