//! Which sessions belong together: forks share the records of their parents, and sub-agents belong to a call.

use std::collections::{HashMap, HashSet};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Record};
use backstitch_core::ports::{ForkRemoval, StoreError};
use backstitch_core::view::JournalView;

/// All sessions of a store with their origins, in the order of their creation.
pub(crate) struct Origins(pub(crate) Vec<(SessionId, Origin)>);

impl Origins {
    /// All sessions that are linked to a session: by a fork or a call, in either direction, over any number of
    /// steps.
    pub(crate) fn family(&self, session: SessionId) -> Vec<SessionId> {
        let mut linked: HashMap<SessionId, Vec<SessionId>> = HashMap::new();
        for (child, parent) in self.0.iter().filter_map(|(one, origin)| Some((*one, origin.parent()?))) {
            linked.entry(child).or_default().push(parent);
            linked.entry(parent).or_default().push(child);
        }
        let mut found = HashSet::from([session]);
        let mut open = vec![session];
        while let Some(next) = open.pop() {
            let others = linked.get(&next).into_iter().flatten();
            open.extend(others.copied().filter(|other| found.insert(*other)));
        }
        self.in_order(&found)
    }

    /// The sessions to delete together with these, or an error that names those that prevent it. `is_open`
    /// returns whether a sub-agent has not ended.
    pub(crate) fn removed_with(
        &self,
        sessions: &[SessionId],
        forks: ForkRemoval,
        mut is_open: impl FnMut(SessionId) -> Result<bool, StoreError>,
    ) -> Result<Vec<SessionId>, StoreError> {
        let named: HashSet<SessionId> = sessions.iter().copied().collect();
        let mut removed = named.clone();
        loop {
            let before = removed.len();
            for (session, origin) in &self.0 {
                let goes = match origin {
                    Origin::Root => false,
                    Origin::Call { session: parent, .. } => removed.contains(parent),
                    Origin::Fork { session: parent, .. } => {
                        forks == ForkRemoval::Include && removed.contains(parent)
                    }
                };
                if goes {
                    removed.insert(*session);
                }
            }
            if removed.len() == before {
                break;
            }
        }
        if forks == ForkRemoval::Refuse {
            let is_fork = |origin: &Origin| match origin {
                Origin::Fork { session: parent, .. } => removed.contains(parent),
                _ => false,
            };
            let others = self.0.iter().filter(|(session, _)| !removed.contains(session));
            let forks: Vec<_> = others.filter(|(_, origin)| is_fork(origin)).map(|(one, _)| *one).collect();
            let mut children = Vec::new();
            for child in self.in_order(&removed).into_iter().filter(|child| !named.contains(child)) {
                if is_open(child)? {
                    children.push(child);
                }
            }
            if !(forks.is_empty() && children.is_empty()) {
                return Err(StoreError::Shared { session: sessions[0], forks, children });
            }
        }
        Ok(self.in_order(&removed))
    }

    /// Those of some sessions that can be removed together, without forks or busy sub-agents that would stay.
    /// `is_busy` returns whether a sub-agent is held or has not ended.
    pub(crate) fn expirable(
        &self,
        mut sessions: HashSet<SessionId>,
        mut is_busy: impl FnMut(SessionId) -> Result<bool, StoreError>,
    ) -> Result<Vec<SessionId>, StoreError> {
        let mut known: HashMap<SessionId, bool> = HashMap::new();
        loop {
            // The session that each removed session belongs to: itself, or the caller of a sub-agent.
            let mut owners: HashMap<SessionId, SessionId> = sessions.iter().map(|one| (*one, *one)).collect();
            loop {
                let before = owners.len();
                for (session, origin) in &self.0 {
                    if let Origin::Call { session: parent, .. } = origin
                        && let Some(owner) = owners.get(parent).copied()
                    {
                        owners.entry(*session).or_insert(owner);
                    }
                }
                if owners.len() == before {
                    break;
                }
            }
            let mut staying: HashSet<SessionId> = HashSet::new();
            for (session, origin) in &self.0 {
                match origin {
                    Origin::Fork { session: parent, .. } if !owners.contains_key(session) => {
                        staying.extend(owners.get(parent));
                    }
                    Origin::Call { .. } if owners.contains_key(session) => {
                        let busy = match known.get(session) {
                            Some(busy) => *busy,
                            None => *known.entry(*session).or_insert(is_busy(*session)?),
                        };
                        staying.extend(owners.get(session).filter(|_| busy));
                    }
                    _ => {}
                }
            }
            if staying.is_empty() {
                return Ok(self.in_order(&sessions));
            }
            sessions.retain(|session| !staying.contains(session));
        }
    }

    fn in_order(&self, sessions: &HashSet<SessionId>) -> Vec<SessionId> {
        self.0.iter().map(|(session, _)| *session).filter(|session| sessions.contains(session)).collect()
    }
}

/// Returns whether an evaluation of a sub-agent has not ended. A journal that cannot be folded cannot be resumed
/// either.
pub(crate) fn is_open(records: &[Record]) -> bool {
    let view = JournalView::fold(records).ok();
    view.is_some_and(|view| view.open_evaluation().is_some())
}
