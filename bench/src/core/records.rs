//! Ids, records as text, and folds of journals.

use backstitch_core::id::CallId;
use backstitch_core::journal::{Record, RecordBody};
use backstitch_core::view::JournalView;
use backstitch_testkit::sample;
use serde_json::{Value, json};

use crate::measure::{Effort, time};
use crate::report::Report;

pub(crate) fn run(report: &mut Report) {
    let ids = sample::ids(1);
    report.time("id.next", json!({}), &time(Effort::SMALL, || ids.next::<CallId>()));
    one_record(report);
    for turns in [100, 500, 2_000] {
        fold(report, turns);
    }
}

/// Measures a typical message: an answer of some sentences, with the payload that its provider needs again.
fn one_record(report: &mut Report) {
    let records = sample::conversation(5).records();
    let typical = records.iter().find(|record| match &record.body {
        RecordBody::MessageAppended(message) => {
            message.provider.is_some() && message.message.parts().is_some()
        }
        _ => false,
    });
    let typical = typical.expect("a conversation has answers with text");
    let text = typical.encode().expect("a sample can be stored");
    let params = json!({ "kind": typical.body.kind(), "bytes": text.len() });
    report.time("record.encode", params.clone(), &time(Effort::SMALL, || typical.encode()));
    let decode = || Record::decode(typical.position, &text).expect("it was written here");
    report.time("record.decode", params.clone(), &time(Effort::SMALL, decode));
    let parse = || serde_json::from_str::<Value>(&text).expect("it was written here");
    report.time("limit.record_as_value_from_json", params, &time(Effort::SMALL, parse));
}

/// Measures a journal from its texts to its view.
fn fold(report: &mut Report, turns: usize) {
    let records = sample::conversation(turns).records();
    let texts: Vec<String> =
        records.iter().map(|record| record.encode().expect("a sample can be stored")).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let params = json!({ "turns": turns, "records": records.len(), "bytes": bytes });
    let view = || JournalView::fold(&records).expect("a sample can be folded");
    report.time("journal.fold", params.clone(), &time(Effort::LARGE, view));
    let decode = || {
        let records = records.iter().zip(&texts);
        let decoded = records.map(|(record, text)| Record::decode(record.position, text));
        decoded.collect::<Result<Vec<_>, _>>().expect("they were written here")
    };
    report.time("journal.decode", params.clone(), &time(Effort::LARGE, decode));
    let parse = || {
        let parsed = texts.iter().map(|text| serde_json::from_str::<Value>(text));
        parsed.collect::<Result<Vec<_>, _>>().expect("they were written here")
    };
    report.time("limit.journal_as_values_from_json", params, &time(Effort::LARGE, parse));
}
