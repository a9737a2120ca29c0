//! Who wrote the items of the working state: the records that changed a slice are followed from the beginning to a point, and each item keeps the
//! record that brought it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backstitch_runtime::{PointSpec, RuntimeError, load_view, read_records};
use serde_json::Value;

use super::files::working_state;
use super::view_at;
use crate::id::{CallId, SessionId};
use crate::journal::{Origin, Position, Record, RecordBody};
use crate::ports::Store;
use crate::report::{ItemWriter, PageLimit, SliceDiff, StateDiff, Version, WrittenItem};
use crate::runtime::Runtime;
use crate::session::{StoredChange, StoredOp};
use crate::view::JournalView;

impl Runtime {
    /// Compares the items of the working state at two points, and names for each that is new the record that wrote it. `head` is the view at the
    /// head of the session. The limit of rows is one of items.
    pub async fn state_diff(
        &self,
        head: &JournalView,
        (from, to): (&PointSpec, &PointSpec),
        limit: PageLimit,
    ) -> Result<StateDiff, RuntimeError> {
        let store = &*self.store.store;
        let (old, _) = view_at(store, head, from).await?;
        let (new, _) = view_at(store, head, to).await?;
        let (mut before, after) = (working_state(&old)?, working_state(&new)?);
        let mut slices = Vec::new();
        let changed: BTreeSet<&String> = after
            .iter()
            .filter(|(name, items)| before.get(*name) != Some(*items))
            .map(|(name, _)| name)
            .collect();
        let mut writers = match changed.is_empty() {
            true => BTreeMap::new(),
            false => writers_of(store, &new, &changed).await?,
        };
        let (mut rows, mut bytes, mut is_cut) = (0, 0, false);
        let mut takes = |item: &Value| {
            let takes = limit.takes(rows, &mut bytes, item);
            rows += 1;
            is_cut |= !takes;
            takes
        };
        for (name, items) in &after {
            let earlier = before.remove(name).unwrap_or_default();
            if earlier == *items {
                continue;
            }
            let written = writers.remove(name).filter(|written| written.len() == items.len());
            let writer = |place: usize| written.as_ref().and_then(|written| written[place].clone());
            // Equal items are matched one by one, so that an item that was added again counts as added.
            let mut left: HashMap<String, usize> = HashMap::new();
            earlier.iter().for_each(|item| *left.entry(item.to_string()).or_default() += 1);
            let mut added = Vec::new();
            for (place, item) in items.iter().enumerate() {
                match left.get_mut(&item.to_string()) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ if takes(item) => added.push(WrittenItem { item: item.clone(), writer: writer(place) }),
                    _ => {}
                }
            }
            let mut removed = Vec::new();
            for item in earlier.into_iter().rev() {
                match left.get_mut(&item.to_string()) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        removed.extend(Some(item).filter(&mut takes));
                    }
                    _ => {}
                }
            }
            removed.reverse();
            slices.push(SliceDiff { name: name.clone(), removed, added });
        }
        for (name, items) in before {
            let removed = items.into_iter().filter(&mut takes).collect();
            slices.push(SliceDiff { name, removed, added: Vec::new() });
        }
        let (from, to) = (from.to_string(), to.to_string());
        Ok(StateDiff { v: Version, session: head.session_id(), from, to, slices, is_cut })
    }
}

/// Items with their writers.
type ItemWriters = Vec<Option<ItemWriter>>;

/// Returns the writers of the items of slices, in the order of the items.
async fn writers_of(
    store: &dyn Store,
    view: &JournalView,
    names: &BTreeSet<&String>,
) -> Result<BTreeMap<String, ItemWriters>, RuntimeError> {
    // A fork begins with the state of its parent, so the records of the first one come first.
    let mut parts: Vec<Vec<Record>> = Vec::new();
    let mut sessions: Vec<SessionId> = Vec::new();
    let mut next = Some((view.session_id(), visible_records(store, view).await?, parent_of(view)));
    while let Some((session, records, parent)) = next {
        parts.push(records);
        sessions.push(session);
        next = match parent.filter(|(parent, _)| !sessions.contains(parent)) {
            Some((parent, cut)) => {
                let view = load_view(store, parent, Some(cut)).await?;
                Some((parent, visible_records(store, &view).await?, parent_of(&view)))
            }
            None => None,
        };
    }
    let mut writers = Writers::default();
    for (session, records) in sessions.into_iter().zip(parts).rev() {
        records.iter().for_each(|record| writers.follow(session, record, names));
    }
    let Writers { slices, tools, calls, .. } = writers;
    let name_call = |writer: ItemWriter| {
        let call = calls.get(&(writer.session, writer.position)).copied();
        ItemWriter { call, tool: call.and_then(|call| tools.get(&call).cloned()), ..writer }
    };
    let written = slices
        .into_iter()
        .map(|(name, items)| (name, items.into_iter().map(|(_, writer)| writer.map(name_call)).collect()));
    Ok(written.collect())
}

/// Reads the records of a session that are visible at the head of a view.
async fn visible_records(store: &dyn Store, view: &JournalView) -> Result<Vec<Record>, RuntimeError> {
    let visible = view.lineage().visible(view.head());
    let mut records = read_records(store, view.session_id(), Position::START, Some(view.head())).await?;
    records.retain(|record| visible.iter().any(|range| range.contains(&record.position)));
    Ok(records)
}

fn parent_of(view: &JournalView) -> Option<(SessionId, Position)> {
    match view.created().origin {
        Origin::Fork { session, position } => Some((session, position)),
        _ => None,
    }
}

/// The items of slices with the records that brought them, as far as the journal was followed.
#[derive(Default)]
struct Writers {
    slices: BTreeMap<String, Vec<(Value, Option<ItemWriter>)>>,
    /// Names of the tools of calls.
    tools: HashMap<CallId, String>,
    /// Positions of changes whose call is not known yet: its end follows in the same batch.
    pending: Vec<(SessionId, Position)>,
    /// The calls that changes belong to.
    calls: HashMap<(SessionId, Position), CallId>,
}

impl Writers {
    fn follow(&mut self, session: SessionId, record: &Record, names: &BTreeSet<&String>) {
        match &record.body {
            RecordBody::SliceChanged(change) if names.contains(&change.slice) => {
                self.apply(change, session, record.position);
                self.pending.push((session, record.position));
            }
            RecordBody::CallStarted(started) => {
                self.tools.insert(started.call_id, started.name.clone());
                self.settle(None);
            }
            RecordBody::CallFinished(finished) => self.settle(Some(finished.call_id)),
            RecordBody::SliceChanged(_)
            | RecordBody::ResourceChanged(_)
            | RecordBody::BudgetCharged(_)
            | RecordBody::MessageAppended(_) => {}
            _ => self.settle(None),
        }
    }

    fn apply(&mut self, change: &StoredChange, session: SessionId, position: Position) {
        let items = self.slices.entry(change.slice.clone()).or_default();
        let writer = Some(ItemWriter { session, position, call: None, tool: None });
        let new = |item: &Value| (item.clone(), writer.clone());
        match &change.op {
            StoredOp::Append(item) => items.push(new(item)),
            StoredOp::Extend(more) => items.extend(more.iter().map(new)),
            StoredOp::Patch { remove, append } => {
                let removed: BTreeSet<usize> = remove.iter().copied().collect();
                let mut place = 0;
                items.retain(|_| {
                    place += 1;
                    !removed.contains(&(place - 1))
                });
                items.extend(append.iter().map(new));
            }
            // What was there before was written before.
            StoredOp::Replace(all) => {
                let mut old: HashMap<String, Vec<Option<ItemWriter>>> = HashMap::new();
                for (item, writer) in items.drain(..) {
                    old.entry(item.to_string()).or_default().push(writer);
                }
                items.extend(all.iter().map(
                    |item| match old.get_mut(&item.to_string()).and_then(Vec::pop) {
                        Some(known) => (item.clone(), known),
                        None => new(item),
                    },
                ));
            }
            StoredOp::Clear => items.clear(),
        }
    }

    /// Names the call of the changes before its end, or forgets that there may be one.
    fn settle(&mut self, call: Option<CallId>) {
        for change in std::mem::take(&mut self.pending) {
            if let Some(call) = call {
                self.calls.insert(change, call);
            }
        }
    }
}
