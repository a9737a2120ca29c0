//! Many processes on one store with many sessions. Every second one process is killed.
//!
//! Each process drives free sessions, several concurrently, and logs which records the store has
//! acknowledged. At the end no acknowledged record is missing, every session can be resumed to its end, and
//! each has the same findings as without kills. `BACKSTITCH_HAMMER_SECONDS` is the duration.

use std::io::Write as _;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use backstitch_core::id::{IdStream, SessionId};
use backstitch_core::journal::{Effect, Position};
use backstitch_core::ports::{Owner, Store as _, StoreError};
use backstitch_core::rng::Seed;
use backstitch_core::time::FixedClock;
use backstitch_runtime::{
    Agent, Driver, ResumeOptions, Runtime, RuntimeError, SessionOptions, Tools, read_records,
};
use backstitch_store::SqliteStore;
use serde_json::json;

use super::child::{Death, Role};
use super::stage::{Place, Stage};
use crate::findings::Finding;
use crate::tailor::{keep, reply, scripted};

const PROCESSES: usize = 8;
const SESSIONS: usize = 200;
const AT_ONCE: usize = 3;
const TURNS: usize = 3;

/// The duration of the test.
fn seconds() -> usize {
    std::env::var("BACKSTITCH_HAMMER_SECONDS").ok().and_then(|told| told.parse().ok()).unwrap_or(10)
}

/// Missions of each session: enough to keep all processes busy.
fn missions() -> usize {
    (seconds() / 5).max(2)
}

fn sessions() -> Vec<SessionId> {
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let ids = IdStream::from_seed([6; 32], clock);
    (0..SESSIONS).map(|_| ids.next()).collect()
}

/// An agent with several missions of a few turns, each with two calls that record a finding.
fn agent() -> Agent {
    let mut replies = Vec::new();
    for mission in 0..missions() {
        for turn in 0..TURNS {
            let call = |name: &str| ("keep", json!({"text": format!("{mission}/{turn}/{name}")}));
            replies.push(reply("on", &[call("a"), call("b")]));
        }
        replies.push(reply("done", &[]));
    }
    scripted(replies).tools(Tools::new([keep(Effect::Workspace, Arc::new(AtomicUsize::new(0)))]).unwrap())
}

fn open(stage: &Stage) -> (Runtime, Arc<SqliteStore>) {
    let store = Arc::new(SqliteStore::open(stage.path("store/store.db")).unwrap());
    let owner = Owner::new(format!("process {}", std::process::id()));
    (Runtime::new(store.clone()).with_owner(owner), store)
}

/// The work of one process.
pub(crate) async fn hammers(stage: &Stage) {
    let (runtime, _) = open(stage);
    let acknowledged = stage.path(&format!("acknowledged.{}", std::process::id()));
    let file = std::fs::OpenOptions::new().append(true).create(true).open(acknowledged).unwrap();
    let file = Arc::new(file);
    let stop = stage.path("stop");
    let workers = (0..AT_ONCE).map(|worker| {
        let (runtime, file, stop) = (runtime.clone(), file.clone(), stop.clone());
        let mut rng = Seed::new(u64::from(std::process::id()) * 8 + worker as u64).rng();
        tokio::spawn(async move {
            let mut sessions = sessions();
            while !stop.exists() {
                rng.shuffle(&mut sessions);
                for session in &sessions {
                    if stop.exists() {
                        break;
                    }
                    visit(&runtime, *session, &file).await;
                }
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
}

/// Opens a session, and creates it if it does not exist.
async fn take(runtime: &Runtime, session: SessionId) -> Result<Driver, RuntimeError> {
    match runtime.open(session, agent(), SessionOptions::default()).await {
        Err(RuntimeError::SessionNotFound { .. }) => {
            let options = SessionOptions { id: Some(session), ..SessionOptions::default() };
            runtime.create(agent(), options).await
        }
        other => other,
    }
}

/// Drives a session through one mission, unless another process holds it.
async fn visit(runtime: &Runtime, session: SessionId, acknowledged: &Arc<std::fs::File>) {
    let driver = match take(runtime, session).await {
        Ok(driver) => driver,
        Err(RuntimeError::Store(StoreError::Held { .. } | StoreError::Conflict { .. })) => return,
        // Another process created it between the two steps of `take`.
        Err(RuntimeError::SessionExists { .. }) => return,
        Err(other) => panic!("{session}: {other}"),
    };
    let mut events = driver.events();
    let mut file = acknowledged.clone();
    tokio::spawn(async move {
        while let Ok(Some(event)) = events.next().await {
            let Some(record) = event.record() else { continue };
            let head = record.position.next();
            file.write_all(format!("{session} {head}\n").as_bytes()).unwrap();
        }
    });
    let _ = one_mission(&driver).await;
    driver.session().release().await.unwrap();
}

/// Drives a session to the end of a mission. Returns whether there was one left.
async fn one_mission(driver: &Driver) -> bool {
    let (open, begun) = {
        let state = driver.session().state().await;
        let open = state.view.latest_evaluation().is_some_and(|latest| latest.finished.is_none());
        (open, state.view.evaluations().count())
    };
    let ended = match (open, begun < missions()) {
        (true, _) => driver.resume(ResumeOptions::default()).await,
        (false, true) => driver.start("sew").await,
        (false, false) => return false,
    };
    assert_eq!(ended.unwrap().answer().unwrap().text, "done");
    true
}

#[tokio::test]
async fn many_processes_hammer_on_one_store() {
    let stage = Stage::new(Place::Memory);
    drop(open(&stage));
    let mut rng = Seed::new(11).rng();
    let mut processes: Vec<Child> = (0..PROCESSES).map(|_| stage.start(Role::Hammer, &Death::None)).collect();
    for _ in 0..seconds() {
        std::thread::sleep(Duration::from_secs(1));
        let one = &mut processes[usize::try_from(rng.below(PROCESSES as u64)).unwrap()];
        one.kill().unwrap();
        assert!(stage.died(one.wait().unwrap(), "a process that hammers"), "it had ended by itself");
        *one = stage.start(Role::Hammer, &Death::None);
    }
    std::fs::write(stage.path("stop"), "").unwrap();
    for mut process in processes {
        assert!(!stage.died(process.wait().unwrap(), "a process that hammers"));
    }

    let (runtime, store) = open(&stage);
    let acknowledged = acknowledged(&stage);
    assert!(acknowledged.len() > SESSIONS, "only {} acknowledgements", acknowledged.len());
    for (session, head) in acknowledged {
        assert!(store.head(session).await.unwrap() >= head, "{session}: acknowledged records are missing");
    }
    for session in sessions() {
        finish(&runtime, &store, session).await;
    }
}

/// The acknowledged positions, from the logs of all processes.
fn acknowledged(stage: &Stage) -> Vec<(SessionId, Position)> {
    let files = std::fs::read_dir(&stage.root).unwrap().map(|entry| entry.unwrap());
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("acknowledged."));
    let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap());
    let mut all = Vec::new();
    for text in texts {
        // A process may have been killed while it wrote its last line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let (session, head) = line.split_once(' ').unwrap();
            all.push((session.parse().unwrap(), Position::new(head.parse().unwrap())));
        }
    }
    all
}

/// Drives a session to its end, and checks that it has the same findings as without kills.
async fn finish(runtime: &Runtime, store: &SqliteStore, session: SessionId) {
    let driver = take(runtime, session).await.unwrap();
    while one_mission(&driver).await {}
    let findings = driver.session().state().await.session.all::<Finding>().unwrap();
    let mut findings: Vec<_> = findings.iter().map(|finding| finding.0.clone()).collect();
    let expected = (0..missions()).flat_map(|mission| {
        (0..TURNS).flat_map(move |turn| ["a", "b"].map(|name| format!("{mission}/{turn}/{name}")))
    });
    // Calls of one turn may be recorded in any order.
    let mut expected: Vec<_> = expected.collect();
    findings.sort();
    expected.sort();
    assert_eq!(findings, expected, "{session}");
    driver.session().release().await.unwrap();
    let records = read_records(store, session, Position::START, None).await.unwrap();
    let places = records.iter().map(|record| record.position);
    assert!(
        places.eq((0..records.len() as u64).map(Position::new)),
        "{session}: a position occurs twice or is missing"
    );
}
