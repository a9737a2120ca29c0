//! Processes that are killed while they write, and connections of the server that end in the middle of a commit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, Owner, Store, StoreAdmin};
use backstitch_store::PostgresStore;
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Temporary, options, parsed};
use crate::sqlite::support::{Writer, notes};

const ADDRESS: &str = "BACKSTITCH_STORE_TEST_ADDRESS";
const REPORT: &str = "BACKSTITCH_STORE_TEST_REPORT";

/// Appends batches of two notes until it is killed, and reports each that was acknowledged.
#[test]
fn a_child_writes_until_it_is_killed() {
    use std::io::Write as _;
    let (Ok(address), Some(report)) = (std::env::var(ADDRESS), std::env::var_os(REPORT)) else { return };
    let mut report = std::fs::OpenOptions::new().append(true).create(true).open(report).unwrap();
    let store = PostgresStore::open_with(&parsed(&address), options()).unwrap();
    let session = sample::session(1);
    let claim = block_on(store.claim(session, Owner::new("child"), ClaimMode::IfFree)).unwrap();
    let mut next = block_on(store.head(session)).unwrap();
    loop {
        let text = next.number().to_string();
        next =
            block_on(store.append(session, next, claim.fence, sample::notes([text.clone(), text.clone()])))
                .unwrap();
        report.write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

fn acknowledged(report: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(report).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_writer_loses_nothing_and_holds_nothing() {
    let Some(store) = Temporary::new() else { return };
    let place = TempDir::new().unwrap();
    let report = place.path().join("report");
    drop(block_on(store.release(Writer::create(&*store, sample::session(1)).claim)));
    for round in 1..=5 {
        let before = acknowledged(&report).len();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "postgres::crashes::a_child_writes_until_it_is_killed", "--nocapture"])
            .env(ADDRESS, &store.address)
            .env(REPORT, &report)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut waited = 0;
        // Another point of an append each time.
        while acknowledged(&report).len() < before + 7 * round {
            std::thread::sleep(Duration::from_millis(3));
            waited += 1;
            assert!(waited < 20_000, "the child does not write: {:?}", child.try_wait());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Its lease lasts, but its process is gone: the session is free at once.
        let claim = block_on(store.claim(sample::session(1), Owner::new("next"), ClaimMode::IfFree)).unwrap();
        block_on(store.release(claim)).unwrap();
        let stored = notes(&*store, sample::session(1));
        let wanted: Vec<String> =
            acknowledged(&report).into_iter().flat_map(|text| [text.clone(), text]).collect();
        assert_eq!(stored[..wanted.len()], wanted[..], "what was acknowledged is stored, once and in order");
        assert!(stored.len() <= wanted.len() + 2 * round, "at most one batch was not acknowledged each time");
        assert!(stored.len().is_multiple_of(2), "batches are whole");
        // What was stored and not acknowledged counts as written from now on.
        let all: String = stored.iter().step_by(2).map(|text| format!("{text}\n")).collect();
        std::fs::write(&report, all).unwrap();
    }
    assert!(block_on(StoreAdmin::verify(&*store)).unwrap().is_sound());
}

#[test]
fn connections_that_end_during_commits_lose_nothing_and_repeat_nothing() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let mine = "query LIKE '%append_1%' AND query LIKE '%{schema}%' AND pid <> pg_backend_pid()";
                store.sql(&format!(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {mine}"
                ));
            }
        });
        for number in 0..150 {
            writer
                .append(sample::notes([number.to_string()]))
                .expect("an append whose connection ended is resolved");
        }
        done.store(true, Ordering::SeqCst);
    });
    let wanted: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    assert_eq!(notes(&*store, sample::session(1)), wanted);
    assert_eq!(writer.next, Position::new(151));
    assert!(block_on(StoreAdmin::verify(&*store)).unwrap().is_sound());
}

super::support::also_on_18! {
    a_killed_writer_loses_nothing_and_holds_nothing
    connections_that_end_during_commits_lose_nothing_and_repeat_nothing
}
