//! Rewinds that the conversation of a program does not know of.
//!
//! A rewind cuts the journal and restores files. A window of the program that stays open continues its own conversation, which
//! still shows the work that was undone. So at its next prompt it has to learn what was rewound.

use backstitch_core::id::CallId;
use backstitch_core::journal::{EvaluationStarted, Position, Record, RecordBody, WorkspaceRoot};
use serde_json::Value;

use super::ObservedSession;
use super::record::FIELD;
use crate::error::Result;
use crate::live::read_records;

/// The rewinds and restores since a conversation was last reported, without those that were undone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnseenRewind {
    /// The position of the latest one.
    pub at: Position,
    /// Whether one of them cut the journal, and not only moved files.
    pub cuts: bool,
    /// The first call that was undone, and its name.
    pub call: Option<(CallId, String)>,
    /// The files before all of them, if one moved files.
    pub before: Option<WorkspaceRoot>,
    /// The files as they are recorded now.
    pub now: Option<WorkspaceRoot>,
}

impl ObservedSession {
    /// Returns the rewinds since the last prompt of a conversation, in the words of the program. `None` if there are none, if all
    /// were undone, or if the conversation has no prompts yet, such as one that begins at the point of a rewind.
    pub async fn unseen_rewind(&self, conversation: &str) -> Result<Option<UnseenRewind>> {
        let view = self.live.view().await;
        let Some((at, _)) = view.lineage().rewinds().last().copied() else { return Ok(None) };
        // Usually a prompt of it has come since, and then no records have to be read.
        let is_its = |started: &EvaluationStarted| conversation_of(started) == Some(conversation);
        let mut since = view.evaluations().filter(|evaluation| evaluation.started.position > at);
        if since.any(|evaluation| evaluation.start.as_deref().is_some_and(is_its)) {
            return Ok(None);
        }
        let records = read_records(&**self.live.store(), self.id(), Position::START, None).await?;
        Ok(unseen(&records, conversation, view.files().map(|files| files.root)))
    }
}

/// Returns the conversation that an evaluation belongs to, in the words of the program.
fn conversation_of(started: &EvaluationStarted) -> Option<&str> {
    started.extra.get(FIELD)?.get("conversation").and_then(Value::as_str)
}

fn unseen(records: &[Record], conversation: &str, now: Option<WorkspaceRoot>) -> Option<UnseenRewind> {
    let is_prompt = |record: &Record| match &record.body {
        RecordBody::EvaluationStarted(started) => conversation_of(started) == Some(conversation),
        _ => false,
    };
    let last = records.iter().rposition(is_prompt)?;
    let rewinds = records[last..].iter().filter_map(|record| match &record.body {
        RecordBody::Rewound(rewound) => Some((record.position, rewound)),
        _ => None,
    });
    let rewinds: Vec<_> = rewinds.collect();
    let (first_at, _) = *rewinds.first()?;
    let before = rewinds.iter().find_map(|(_, rewound)| rewound.rescue.or(rewound.root));
    // One that was undone since is as if it had never been. One that was repeated is undone by its first position.
    let mut standing: Vec<(Position, _)> = Vec::new();
    for (at, rewound) in rewinds {
        let undone = standing.iter().position(|(known, _)| Some(*known) == rewound.undoes);
        match undone {
            Some(undone) => {
                standing.remove(undone);
            }
            None => standing.push((rewound.redoes.unwrap_or(at), (at, rewound))),
        }
    }
    let (_, (at, _)) = *standing.last()?;
    let cuts = standing.iter().map(|(_, one)| one);
    let cuts = cuts.filter(|(at, rewound)| rewound.undoes.is_none() && rewound.to < *at);
    let to = cuts.map(|(_, rewound)| rewound.to).min();
    let call = records.iter().find_map(|record| match &record.body {
        RecordBody::CallStarted(call) if to.is_some_and(|to| (to..first_at).contains(&record.position)) => {
            Some((call.call_id, call.name.clone()))
        }
        _ => None,
    });
    Some(UnseenRewind { at, cuts: to.is_some(), call, before, now })
}

#[cfg(test)]
mod tests {
    use backstitch_core::journal::SessionRewound;
    use backstitch_core::object::ObjectId;
    use backstitch_core::time::Timestamp;
    use serde_json::{Map, json};

    use super::super::record::of_prompt;
    use super::*;

    fn root(number: u8) -> WorkspaceRoot {
        let id = ObjectId::from_bytes([number; 20]);
        WorkspaceRoot { tree: id, manifest: id }
    }

    fn prompt(conversation: &str) -> RecordBody {
        let origin = Map::from_iter([("conversation".to_owned(), json!(conversation))]);
        let id = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        EvaluationStarted { extra: of_prompt(None, &origin), ..EvaluationStarted::new(id, "guard", "loom") }
            .into()
    }

    fn rewound(to: u64, rescue: u8) -> RecordBody {
        SessionRewound { rescue: Some(root(rescue)), ..SessionRewound::new(Position::new(to)) }.into()
    }

    fn undo(of: u64) -> RecordBody {
        let rewound = SessionRewound::new(Position::new(of));
        SessionRewound { rescue: Some(root(7)), undoes: Some(Position::new(of)), ..rewound }.into()
    }

    fn redo(of: u64, undo: u64) -> RecordBody {
        let rewound = SessionRewound::new(Position::new(undo));
        SessionRewound { rescue: Some(root(8)), redoes: Some(Position::new(of)), ..rewound }.into()
    }

    fn all(bodies: Vec<RecordBody>) -> Option<UnseenRewind> {
        let records = bodies.into_iter().zip(0..);
        let record = |(body, position)| Record::new(Position::new(position), Timestamp::UNIX_EPOCH, body);
        let records: Vec<Record> = records.map(record).collect();
        unseen(&records, "one", Some(root(9)))
    }

    fn found(bodies: Vec<RecordBody>) -> Option<(u64, Option<WorkspaceRoot>)> {
        all(bodies).map(|unseen| (unseen.at.number(), unseen.before))
    }

    #[test]
    fn a_conversation_learns_of_the_rewinds_since_its_last_prompt() {
        assert_eq!(found(vec![prompt("one")]), None);
        assert_eq!(found(vec![prompt("one"), rewound(0, 1)]), Some((1, Some(root(1)))));
        assert_eq!(found(vec![prompt("one"), rewound(0, 1), rewound(0, 2)]), Some((2, Some(root(1)))));
        assert_eq!(found(vec![prompt("one"), rewound(0, 1), undo(1)]), None, "it was undone");
        let repeated = vec![prompt("one"), rewound(0, 1), undo(1), redo(1, 2)];
        assert_eq!(found(repeated.clone()), Some((3, Some(root(1)))));
        assert_eq!(found([repeated, vec![undo(1)]].concat()), None, "it was undone again");
        let older = vec![rewound(0, 1), prompt("one"), undo(0)];
        assert_eq!(found(older), Some((2, Some(root(7)))), "it knows the rewind, and not that it was undone");
        assert_eq!(found(vec![prompt("one"), rewound(0, 1), prompt("one")]), None, "it has learnt of it");
        assert_eq!(found(vec![prompt("two"), rewound(0, 1)]), None, "it begins after the rewind");
        let beside = vec![prompt("one"), rewound(0, 1), prompt("two")];
        assert_eq!(found(beside), Some((1, Some(root(1)))), "another conversation does not count");
    }

    #[test]
    fn a_restore_of_files_cuts_nothing_and_a_cut_may_move_no_files() {
        let restored = all(vec![prompt("one"), rewound(1, 1)]).unwrap();
        assert!(!restored.cuts && restored.before.is_some());
        let cut = all(vec![prompt("one"), SessionRewound::new(Position::new(0)).into()]).unwrap();
        assert!(cut.cuts && cut.before.is_none());
    }
}
