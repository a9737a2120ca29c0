//! Growth of a store with its sessions.

use backstitch_core::journal::RecordBody;
use backstitch_core::message::Content;
use backstitch_testkit::sample::{self, Journal};
use serde_json::json;

use super::{open, temporary, write};
use crate::report::{Report, ratio};

pub(crate) fn run(report: &mut Report) {
    let mut sizes = Vec::new();
    for turns in [100, 500] {
        let journal = sample::conversation(turns);
        let directory = temporary();
        let store = open(&directory);
        write(&store, &journal);
        let path = store.path().to_owned();
        // SQLite copies the log into the file when the last connection is closed.
        drop(store);
        let file = std::fs::metadata(path).map_or(0, |file| file.len()) as f64;
        let records = journal.records();
        let json: usize = records.iter().map(|record| record.encode().expect("it can be stored").len()).sum();
        let raw = raw_text(&journal) as f64;
        let params = json!({
            "turns": turns, "records": records.len(), "record_json": json, "raw_text": raw,
            "to_record_json": ratio(file / json as f64), "to_raw_text": ratio(file / raw),
        });
        report.value("store.size", params, file, "bytes");
        sizes.push(file);
    }
    report.ratio("store.size_of_500_to_100_turns", json!({}), sizes[1] / sizes[0]);
}

/// Bytes of the content alone: texts, arguments, results, and the payloads that providers need again.
fn raw_text(journal: &Journal) -> usize {
    let messages = journal.records().into_iter().filter_map(|record| match record.body {
        RecordBody::MessageAppended(message) => Some(message),
        _ => None,
    });
    let length = |message: std::sync::Arc<backstitch_core::journal::InnerMessage>| {
        let size = match &message.message.content {
            Content::OptionCall(call) => serde_json::to_string(&call.arguments).map_or(0, |text| text.len()),
            Content::OptionResult(result) => serde_json::to_string(result).map_or(0, |text| text.len()),
            _ => message.message.text().len(),
        };
        size + message
            .provider
            .as_ref()
            .and_then(|side| serde_json::to_string(side).ok())
            .map_or(0, |text| text.len())
    };
    messages.map(length).sum()
}
