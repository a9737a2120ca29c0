//! Many processes write to one store, and some of them are killed.
//!
//! `BACKSTITCH_HAMMER_SECONDS` sets the duration; 10 is the default.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use backstitch_core::journal::{Batch, RecordBody};
use backstitch_core::ports::{ClaimMode, Store as _, StoreError};
use backstitch_core::view::JournalView;
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::child::{Running, Task, command};
use super::support::{Writer, claim, read};

const PROCESSES: usize = 8;
const SESSIONS: u64 = 200;

struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ now.as_nanos() as u64 | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Child: claims sessions and appends to them until it is killed, and reports acknowledged records.
pub(super) fn strike(task: &mut Task) {
    let store = SqliteStore::open(task.store()).expect("the store can be opened");
    let name = std::process::id();
    let mut chance = Chance::new(u64::from(name));
    let mut count = 0_u64;
    loop {
        let session = sample::session(chance.below(SESSIONS));
        // Sometimes a process takes over a session that another one holds.
        let how = if chance.below(20) == 0 { ClaimMode::TakeOver } else { ClaimMode::IfFree };
        let held = match claim(&store, session, how) {
            Ok(held) => held,
            Err(StoreError::Held { .. }) => continue,
            Err(error) => panic!("{error:?}"),
        };
        let next = match block_on(store.head(session)) {
            Ok(head) => head,
            Err(StoreError::NotFound { .. }) => backstitch_core::journal::Position::START,
            Err(error) => panic!("{error:?}"),
        };
        let mut writer = Writer { store: &store, claim: held, next };
        for _ in 0..1 + chance.below(6) {
            let first = writer.next.number();
            let texts: Vec<String> = (0..1 + chance.below(3))
                .map(|_| {
                    count += 1;
                    format!("{name}.{count}")
                })
                .collect();
            let mut batch = match first {
                0 => {
                    let created = sample::created(session);
                    Batch::at(created.created_at).with(created)
                }
                _ => sample::notes::<String>([]),
            };
            for text in &texts {
                batch.push(sample::note(text.clone()));
            }
            match writer.append(batch) {
                Ok(next) => {
                    let first = next.number() - texts.len() as u64;
                    task.report(format!("{session} {first} {}", texts.join(" ")));
                }
                Err(StoreError::Fenced { .. }) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        if chance.below(4) > 0 {
            block_on(store.release(writer.claim)).expect("what is held can be released");
        }
    }
}

/// The whole lines of a report.
fn whole_lines(report: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(report).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

/// How many records were acknowledged so far, by the reports in a directory.
fn count_acknowledged(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let reports = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("report-"));
    // A session and a position precede the records of a line.
    let records = |line: &String| line.split(' ').count() - 2;
    reports.map(|entry| whole_lines(&entry.path()).iter().map(records).sum::<usize>()).sum()
}

#[test]
fn processes_that_are_killed_lose_nothing_that_was_acknowledged() {
    let seconds = std::env::var("BACKSTITCH_HAMMER_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(10));
    let directory = TempDir::new().unwrap();
    let mut chance = Chance::new(1);
    let mut started = 0;
    let mut reports = Vec::new();
    let mut start = || {
        started += 1;
        let report = directory.path().join(format!("report-{started}"));
        let child = Running::start(command("hammer", directory.path(), &report));
        reports.push(report);
        child
    };
    let mut children: Vec<Running> = (0..PROCESSES).map(|_| start()).collect();
    let mut killed = 0;
    // A busy machine needs longer for as many kills and records.
    let at_most = until + Duration::from_secs(300);
    let is_enough = |killed: usize| killed > 3 && count_acknowledged(directory.path()) > 500;
    while Instant::now() < until || Instant::now() < at_most && !is_enough(killed) {
        std::thread::sleep(Duration::from_millis(900 + chance.below(200)));
        let victim = children.swap_remove(chance.below(PROCESSES as u64) as usize);
        victim.kill();
        killed += 1;
        children.push(start());
    }
    for mut child in children {
        assert!(child.0.try_wait().unwrap().is_none(), "a child has ended by itself, so it has failed");
    }
    assert!(killed > 3);

    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let mut texts: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for session in block_on(store.sessions()).unwrap() {
        let records = read(&store, session).unwrap();
        JournalView::fold(&records).unwrap();
        let text = |body: &RecordBody| match body {
            RecordBody::Note(note) => Some(note.text.clone()),
            _ => None,
        };
        texts.insert(session.to_string(), records.iter().map(|record| text(&record.body)).collect());
        // Every session can be resumed.
        claim(&store, session, ClaimMode::IfFree).unwrap();
    }
    let mut acknowledged = 0;
    let mut places = std::collections::HashSet::new();
    for report in &reports {
        for line in whole_lines(report) {
            let mut words = line.split(' ');
            let (session, first) = (words.next().unwrap(), words.next().unwrap());
            let first: usize = first.parse().unwrap();
            for (position, word) in (first..).zip(words) {
                acknowledged += 1;
                let found = texts[session].get(position).and_then(Option::as_deref);
                assert_eq!(found, Some(word), "session {session}, position {position}");
                assert!(places.insert((session.to_owned(), position)), "position {position} was given twice");
            }
        }
    }
    let total: usize = texts.values().map(Vec::len).sum();
    assert!(acknowledged > 500, "{acknowledged} of {total} records were acknowledged");
}
