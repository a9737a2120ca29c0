//! The changed paths that the end of a call records: their limits, their stored form, and redactions of them.

use std::collections::HashMap;

use backstitch_core::journal::{
    CallChanges, CallFinished, CallVerdict, ChangeCounts, ChangeKind, ChangedPath, FileContent, Position,
    Record, RecordBody,
};
use backstitch_core::object::ObjectId;
use backstitch_core::redaction::{SensitiveValue, redact_record};

use super::record_codec::fixtures;

fn added(count: usize) -> Vec<ChangedPath> {
    (0..count).map(|number| ChangedPath::new(format!("seam-{number:04}"), ChangeKind::Added)).collect()
}

fn finished(text: &str) -> CallFinished {
    match Record::decode(Position::new(3), text).unwrap().body {
        RecordBody::CallFinished(finished) => (*finished).clone(),
        other => panic!("{other:?}"),
    }
}

fn stored(name: &str) -> String {
    fixtures().into_iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn paths_over_a_limit_are_only_counted() {
    let most = CallChanges::new(added(CallChanges::MOST_PATHS));
    assert_eq!(most.paths().map(<[_]>::len), Some(CallChanges::MOST_PATHS));
    let more = CallChanges::new(added(CallChanges::MOST_PATHS + 1));
    assert_eq!(more.paths(), None);
    assert_eq!(more.counts().total(), CallChanges::MOST_PATHS as u64 + 1);

    let long = |bytes: usize| CallChanges::new(vec![ChangedPath::new("x".repeat(bytes), ChangeKind::Mode)]);
    assert!(long(CallChanges::MOST_BYTES).paths().is_some());
    assert_eq!(
        long(CallChanges::MOST_BYTES + 1),
        CallChanges::Counts(ChangeCounts { mode: 1, ..ChangeCounts::default() })
    );
}

#[test]
fn listed_and_counted_changes_have_the_same_counts() {
    let kinds = [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Mode, ChangeKind::Deleted];
    let paths = kinds.iter().chain(&kinds[..2]).map(|kind| ChangedPath::new("hem", *kind)).collect();
    let counts = CallChanges::new(paths).counts();
    assert_eq!(counts, ChangeCounts { added: 2, modified: 2, mode: 1, deleted: 1 });
    assert_eq!(CallChanges::Counts(counts).counts(), counts);
}

#[test]
fn older_ends_of_calls_have_no_changes() {
    for name in ["call_finished", "call_finished_covered", "call_finished_failed", "call_finished_rescued"] {
        assert_eq!(finished(&stored(name)).changes, None, "{name}");
    }
}

#[test]
fn stored_changes_are_read() {
    let changes = finished(&stored("call_finished_changes")).changes.unwrap();
    let [first, second, third] = changes.paths().unwrap() else { panic!("{changes:?}") };
    let content = |byte: u8, bytes| Some(FileContent { object: ObjectId::from_bytes([byte; 20]), bytes });
    assert_eq!((&*first.path, first.change), ("cloth/hem.txt", ChangeKind::Modified));
    assert_eq!((first.before, first.after), (content(0x11, Some(12)), content(0x22, Some(15))));
    assert_eq!((second.before, second.after), (content(0x22, None), None));
    assert_eq!((third.before, third.after), (None, None));

    let counted = finished(&stored("call_finished_counts"));
    assert_eq!(counted.outcome, CallVerdict::Failed);
    assert_eq!(counted.changes.unwrap().counts().total(), 4003);
}

#[test]
fn changed_paths_are_redacted_and_keep_no_objects() {
    let text = stored("call_finished_changes");
    let value = SensitiveValue::new("cloth/hem").unwrap();
    let redacted = redact_record(Position::new(3), &text, &value, &HashMap::new()).unwrap();
    assert_eq!((redacted.replacements, redacted.kept), (1, 0));
    let changes = finished(&redacted.text).changes.unwrap();
    assert_eq!(changes.paths().unwrap()[0].path, "[redacted].txt");

    // Only the root, which holds them.
    let body = Record::decode(Position::new(3), &text).unwrap().body;
    assert_eq!(body.object_refs().len(), 2);
}
