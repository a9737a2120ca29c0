//! Opening a session: reading its journal and folding it.

use backstitch_core::journal::Position;
use backstitch_core::ports::Store;
use backstitch_core::view::JournalView;
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::bare::Bare;
use super::{open, temporary, write};
use crate::measure::{Pairs, once};
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
    let (mut reading, mut opening) = (Pairs::default(), Pairs::default());
    for round in 0..40 {
        let (records, read) = once(read);
        let (view, fold) = once(|| JournalView::fold(&records).expect("it can be folded"));
        let (values, limit) = once(|| bare.read_and_parse());
        drop((view, values));
        if round >= 8 {
            reading.add(read, limit);
            let both = crate::measure::Elapsed { wall: read.wall + fold.wall, cpu: read.cpu + fold.cpu };
            opening.add(both, limit);
        }
    }
    for (metric, pairs) in [("store.read", &reading), ("store.read_and_fold", &opening)] {
        let [(wall, cpu), (bare_wall, bare_cpu)] = pairs.medians();
        let params = json!({
            "turns": 500, "records": texts.len(), "cpu": cpu.round(), "limit": bare_wall.round(), "limit_cpu": bare_cpu.round(),
            "to_limit": ratio(pairs.wall_ratio()), "to_limit_cpu": ratio(pairs.cpu_ratio()),
        });
        report.value(metric, params, wall, "ns");
    }
}
