//! Opening a session: reading its journal and folding it.

use backstitch_core::journal::Position;
use backstitch_core::ports::Store;
use backstitch_core::view::JournalView;
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::bare::Bare;
use super::{open, temporary, write};
use crate::aims;
use crate::measure::{Samples, once};
use crate::report::{Report, ratio};

pub(crate) fn run(report: &mut Report) {
    let journal = sample::conversation(500);
    let directory = temporary();
    let (store, bare) = (open(&directory), Bare::new());
    write(&store, &journal);
    let texts: Vec<String> =
        journal.records().iter().map(|record| record.encode().expect("it can be stored")).collect();
    bare.commit(0, &texts, &[]);
    let read = || block_on(store.read(journal.session, Position::START, usize::MAX)).expect("it can be read");
    let (mut reading, mut opening, mut limits): (Samples, Samples, Samples) = Default::default();
    for round in 0..40 {
        let (records, read) = once(read);
        let (view, fold) = once(|| JournalView::fold(&records).expect("it can be folded"));
        let (values, limit) = once(|| bare.read_and_parse());
        drop((view, values));
        if round >= 8 {
            reading.add(read);
            opening.add(read + fold);
            limits.add(limit);
        }
    }
    let limit = limits.timing();
    for (metric, samples) in [("store.read", &reading), ("store.read_and_fold", &opening)] {
        let timing = samples.timing();
        let params = json!({
            "turns": 500, "records": texts.len(),
            "limit": limit.median.round(), "limit_cpu": limit.cpu.round(),
            "to_limit": ratio(samples.median_ratio(&limits)),
            "to_limit_cpu": ratio(samples.cpu_ratio(&limits)),
        });
        report.time(metric, params, &timing);
    }
    let params = json!({ "turns": 500, "of": "median of interleaved pairs" });
    aims::READ_AND_FOLD.judge(report, params, opening.median_ratio(&limits));
}
