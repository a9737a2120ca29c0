//! Opening a long session: from its snapshot and the records after it, beside reading the snapshot alone, and
//! beside reading and folding all of its records.

use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record};
use backstitch_core::ports::Store;
use backstitch_core::view::JournalView;
use backstitch_runtime::{fold_view, load_view};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::{claim, temporary};
use crate::measure::{Elapsed, Samples, once};
use crate::memory::{forget_peak, peak, resident};
use crate::report::{Report, ratio};
use crate::{aims, alone};

const TURNS: usize = 5_000;
/// Number of records after the snapshot.
const AFTER: usize = 100;
const ROUNDS: usize = 24;
/// Number of batches that are written as one.
const BATCHES: usize = 200;

/// Name of the process that prepares the store for the processes that measure memory.
pub(super) const PREPARE: &str = "store.open_prepare";

/// A store with one long session and its snapshot.
struct LongSession {
    store: SqliteStore,
    session: SessionId,
}

/// Measurements of writing it.
struct Written {
    records: usize,
    /// Length of all records as text.
    text: usize,
    /// Length of the snapshot before it is compressed.
    bytes: usize,
    encoding: Elapsed,
    saving: Elapsed,
}

impl LongSession {
    fn create(directory: &Path, turns: usize) -> (Self, Written) {
        let journal = sample::conversation(turns);
        let store = SqliteStore::open(directory.join("store.db")).expect("a new store can be created");
        let claim = claim(&store, journal.session);
        let mut next = Position::START;
        // Many turns in a batch: how they are written is measured elsewhere.
        let summary = JournalView::fold(&journal.records()).expect("it can be folded").summary();
        for batches in journal.batches.chunks(BATCHES) {
            let mut batch = batches[0].clone();
            for later in &batches[1..] {
                batch.extend(later.clone());
            }
            // Every batch of a session brings its summary; that of the last one stays.
            batch.summarize(summary.clone());
            next = block_on(store.append(journal.session, next, claim.fence, batch)).expect("it fits");
        }
        let records = block_on(store.read(journal.session, Position::START, usize::MAX));
        let records = records.expect("they can be read");
        let cut = records.len() - AFTER;
        let view = JournalView::fold(&records[..cut]).expect("it can be folded");
        let (snapshot, encoding) = once(|| view.encode_snapshot().expect("it can be encoded"));
        let bytes = snapshot.len();
        let save = store.save_snapshot(journal.session, claim.fence, Position::new(cut as u64), snapshot);
        let (saved, saving) = once(|| block_on(save));
        saved.expect("it fits");
        block_on(store.release(claim)).expect("it is held");
        let text = |record: &Record| record.encode().expect("it can be stored").len();
        let text = records.iter().map(text).sum();
        let session = journal.session;
        (Self { store, session }, Written { records: records.len(), text, bytes, encoding, saving })
    }

    fn existing(directory: &Path) -> Self {
        let store = SqliteStore::open(directory.join("store.db")).expect("it was created");
        let sessions = block_on(store.sessions()).expect("they can be listed");
        Self { store, session: sessions[0] }
    }

    fn snapshot(&self) -> usize {
        let saved = block_on(self.store.snapshot(self.session)).expect("it can be read");
        saved.map_or(0, |saved| saved.bytes.len())
    }

    fn open_snapshot(&self) -> JournalView {
        block_on(load_view(&self.store, self.session, None)).expect("it can be opened")
    }

    fn fold_records(&self) -> JournalView {
        block_on(fold_view(&self.store, self.session, None)).expect("it can be opened")
    }
}

/// Creates a store with one session of this many turns, each with a call, and its snapshot.
pub(crate) fn long_session(directory: &Path, turns: usize) -> SessionId {
    LongSession::create(directory, turns).0.session
}

pub(crate) fn run(report: &mut Report) {
    let directory = temporary();
    let (long, written) = LongSession::create(directory.path(), TURNS);
    let (mut opening, mut transcript, mut limits): (Samples, Samples, Samples) = Default::default();
    for round in 0..ROUNDS {
        let (read, limit) = once(|| long.snapshot());
        let (view, opened) = once(|| long.open_snapshot());
        let (messages, decoded) = once(|| view.transcript().map_or(0, |transcript| transcript.all().len()));
        assert!(read > 0 && messages > TURNS, "the snapshot is used");
        if round >= ROUNDS / 4 {
            opening.add(opened);
            transcript.add(decoded);
            limits.add(limit);
        }
    }
    let folding = (0..3).map(|_| once(|| long.fold_records()).1);
    let fastest = folding.min_by_key(|elapsed| elapsed.wall).expect("there are some");
    let nanos = |elapsed: Elapsed| (elapsed.wall.as_nanos() as f64, elapsed.cpu.as_nanos() as f64);
    let ((folding, folding_cpu), opened, limit) = (nanos(fastest), opening.timing(), limits.timing());
    let params = json!({
        "turns": TURNS, "records": written.records, "after": AFTER,
        "limit": limit.median.round(), "limit_cpu": limit.cpu.round(),
        "to_limit": ratio(opening.median_ratio(&limits)), "to_limit_cpu": ratio(opening.cpu_ratio(&limits)),
        "folding": folding, "folding_cpu": folding_cpu, "folding_to_this": ratio(folding / opened.median),
    });
    report.time("store.open_from_snapshot", params, &opened);
    let params = json!({ "turns": TURNS, "of": "median of interleaved pairs" });
    aims::OPEN_FROM_SNAPSHOT.judge(report, params, opening.median_ratio(&limits));
    let read = transcript.timing();
    report.time("store.transcript_of_pages", json!({ "turns": TURNS }), &read);
    for (metric, elapsed) in
        [("store.encode_snapshot", written.encoding), ("store.save_snapshot", written.saving)]
    {
        let (wall, cpu) = nanos(elapsed);
        report.value(metric, json!({ "turns": TURNS, "cpu": cpu }), wall, "ns");
    }
    let connection = rusqlite::Connection::open(long.store.path()).expect("it is a database");
    let sql = "SELECT sum(length(content)) FROM snapshots";
    let packed = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_or(0.0, |bytes| bytes as f64);
    let params = json!({
        "turns": TURNS, "raw": written.bytes, "record_json": written.text,
        "to_record_json": ratio(packed / written.text as f64),
    });
    report.value("store.snapshot_size", params, packed, "bytes");
}

/// Memory for opening from the snapshot.
pub(super) fn memory_from_snapshot(report: &mut Report) {
    memory(report, "snapshot", LongSession::open_snapshot);
}

/// Memory for opening by folding all records.
pub(super) fn memory_from_records(report: &mut Report) {
    memory(report, "records", LongSession::fold_records);
}

/// Creates the store of the process that started this one: writing it leaves memory behind, which opening would
/// use again.
pub(super) fn prepare(_: &mut Report) {
    LongSession::create(&directory_of(parent_id()), TURNS);
}

fn directory_of(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("backstitch-bench-{process}"))
}

fn memory(report: &mut Report, from: &str, open: fn(&LongSession) -> JournalView) {
    let directory = directory_of(std::process::id());
    std::fs::create_dir(&directory).expect("there is room for temporary files");
    alone::run(PREPARE);
    let long = LongSession::existing(&directory);
    let before = resident().unwrap_or_default();
    forget_peak();
    let view = open(&long);
    let (held, most) = (resident().unwrap_or_default(), peak().unwrap_or_default());
    let messages = view.transcript().map_or(0, |transcript| transcript.all().len());
    let read = resident().unwrap_or_default();
    let mebibytes = |bytes: u64| bytes.saturating_sub(before) as f64 / 1024.0 / 1024.0;
    let params = json!({
        "turns": TURNS, "from": from, "messages": messages, "held": ratio(mebibytes(held)),
        "with_transcript": ratio(mebibytes(read)),
    });
    report.precise("store.open_memory", params, mebibytes(most), "MiB");
    drop((view, long));
    let _ = std::fs::remove_dir_all(directory);
}
