//! Sample journals are valid, rich and repeatable.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::id::{CallId, MessageId};
use backstitch_core::journal::{LargeRecord, Record, RecordBody};
use backstitch_core::message::Content;
use backstitch_core::session::{Slice, StoredOp};
use backstitch_core::view::JournalView;
use backstitch_testkit::fold;
use backstitch_testkit::sample::{self, Journal, Remark, Task};

fn journals() -> impl Iterator<Item = Journal> {
    (0..60)
        .map(|seed| sample::journal(seed, 5 + seed as usize % 40))
        .chain([sample::every_kind(), sample::conversation(25)])
}

#[test]
fn the_same_seed_gives_the_same_journal_and_another_gives_another() {
    assert_eq!(sample::journal(7, 30), sample::journal(7, 30));
    assert_ne!(sample::journal(7, 30), sample::journal(8, 30));
    let (short, long) = (sample::journal(7, 10).records(), sample::journal(7, 30).records());
    assert_eq!(short, long[..short.len()]);
}

#[test]
fn every_kind_of_record_occurs() {
    let kinds: BTreeSet<&str> = RecordBody::KINDS.iter().map(|(kind, _)| *kind).collect();
    let of = |records: &[Record]| records.iter().map(|record| record.body.kind()).collect::<BTreeSet<_>>();
    assert_eq!(of(&sample::every_kind().records()), kinds);
    let random: Vec<Record> = (0..20).flat_map(|seed| sample::journal(seed, 40).records()).collect();
    assert_eq!(of(&random), kinds);
}

#[test]
fn every_possible_event_occurs() {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for record in journals().flat_map(|journal| journal.records()) {
        let happened = match &record.body {
            RecordBody::SliceChanged(change) if change.slice == Remark::NAME => "log",
            RecordBody::SliceChanged(change) if change.slice == Task::NAME => match change.op {
                StoredOp::Append(_) => "append",
                StoredOp::Extend(_) => "extend",
                StoredOp::Patch { .. } => "patch",
                StoredOp::Replace(_) => "replace",
                StoredOp::Clear => "clear",
            },
            RecordBody::CallStarted(call) if call.attempt > 1 => "attempt again",
            RecordBody::CallStarted(call) if call.reservation.is_some() => "reservation",
            RecordBody::EvaluationFinished(finished) if finished.large_object().is_some() => "large output",
            RecordBody::EvaluationFinished(_) => "end",
            RecordBody::Rewound(_) => "rewind",
            RecordBody::Paused(_) => "pause",
            RecordBody::MessageAppended(message) => match &message.message.content {
                Content::OptionResult(result) if result.is_error => "error",
                Content::OptionResult(result) if result.result.object().is_some() => "large result",
                Content::OptionResult(result) if !result.parts.is_empty() => "media",
                Content::OptionCall(call) if !call.arguments.is_parsable() => "unparsable",
                _ => continue,
            },
            _ => continue,
        };
        *count.entry(happened).or_default() += 1;
    }
    let expected = [
        "append",
        "attempt again",
        "clear",
        "end",
        "error",
        "extend",
        "large output",
        "large result",
        "log",
        "media",
        "patch",
        "pause",
        "replace",
        "reservation",
        "rewind",
        "unparsable",
    ];
    assert_eq!(count.keys().copied().collect::<Vec<_>>(), expected, "{count:?}");
}

#[test]
fn every_prefix_folds_as_it_grew() {
    for (index, journal) in journals().enumerate() {
        let records = journal.records();
        let grown = fold::every_cut(&records).unwrap_or_else(|error| panic!("journal {index}: {error:?}"));
        // Folding every prefix is quadratic, so every thirteenth cut of each journal is tried, and its end.
        for cut in (index % 13..records.len()).step_by(13).chain([records.len() - 1]) {
            let folded = JournalView::fold(&records[..=cut]);
            let folded = folded.unwrap_or_else(|error| panic!("journal {index}, cut {cut}: {error:?}"));
            fold::assert_same(&folded, &grown[cut], &format!("journal {index}, cut {cut}"));
        }
    }
}

#[test]
fn records_survive_their_text() {
    for record in journals().flat_map(|journal| journal.records()) {
        let text = record.encode().unwrap();
        assert_eq!(Record::decode(record.position, &text).unwrap(), record);
    }
}

#[test]
fn batches_contain_the_objects_that_they_refer_to() {
    for journal in journals() {
        let mut stored = BTreeSet::new();
        for batch in &journal.batches {
            assert!(!batch.is_empty());
            stored.extend(batch.objects().iter().map(|object| object.id()));
            for object in batch.bodies().iter().flat_map(|body| body.object_refs()) {
                assert!(stored.contains(&object), "{object}");
            }
        }
    }
}

#[test]
fn results_have_calls_and_no_message_id_occurs_twice() {
    for journal in journals() {
        let (mut calls, mut messages) = (BTreeSet::<CallId>::new(), BTreeSet::<MessageId>::new());
        for record in journal.records() {
            let RecordBody::MessageAppended(message) = record.body else { continue };
            assert!(messages.insert(message.message_id));
            match &message.message.content {
                Content::OptionCall(call) => assert!(calls.insert(call.invocation_id)),
                Content::OptionResult(result) => assert!(calls.contains(&result.invocation_id)),
                Content::Parts(_) => {}
            }
        }
    }
}

#[test]
fn a_conversation_has_as_many_answers_as_asked_for_and_nothing_open() {
    let records = sample::conversation(25).records();
    let view = JournalView::fold(&records).unwrap();
    assert_eq!(view.latest_evaluation().map(|evaluation| evaluation.turns), Some(25));
    assert_eq!(view.calls().count(), 25);
    assert_eq!(view.pending_calls().count(), 0);
}
