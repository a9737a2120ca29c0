//! The matrix: a process is killed at every crash point that the session reaches, and another process
//! resumes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::crash::POINTS;
use backstitch_runtime::{ResumeOptions, Runtime};
use backstitch_store::SqliteStore;
use backstitch_testkit::tool::Counter;

use super::child::{Death, Role, kill_at};
use super::outcome::{Outcome, files};
use super::points::Crash;
use super::session::{self, Unseen, agent, answered, asked, to_the_end};
use super::stage::{Place, Plot, Stage};

/// Points that only other tests reach: of history, recovery, decisions, garbage collection, programs,
/// sub-agents, redaction and removal.
const ELSEWHERE: &[&str] = &[
    "rewind.",
    "apply.",
    "isolate.",
    "fork.",
    "recover.r",
    "resolve.",
    "gc.",
    "machine.",
    "child.",
    "redact.",
    "remove.",
    "erase.",
];

/// The session without kills.
pub(crate) struct Reference {
    pub(crate) outcome: Outcome,
    pub(crate) hits: std::collections::BTreeMap<String, u64>,
}

impl Reference {
    pub(crate) async fn of(place: Place) -> Self {
        Self::of_plot(place, Plot::Alone).await
    }

    pub(crate) async fn of_plot(place: Place, plot: Plot) -> Self {
        let stage = Stage::of(place, plot);
        assert!(!stage.play(Role::End, &Death::None));
        let hits = stage.hits();
        Self { outcome: resumed(&stage, Unseen::Retry).await, hits }
    }
}

/// Resumes to the end in this process, and returns the outcome.
pub(crate) async fn resumed(stage: &Stage, unseen: Unseen) -> Outcome {
    let opened = stage.open();
    let ended = to_the_end(stage, &opened, unseen).await.unwrap();
    let before = files_of(stage);
    let outcome = Outcome::of(stage, &opened, ended.clone()).await;

    let report = opened.store.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");

    // A session that has ended returns its recorded answer: no policy is asked, nothing runs, nothing is
    // recorded.
    let mut nobody = agent(stage);
    nobody.tools = Default::default();
    nobody.policy = std::sync::Arc::new(backstitch_runtime::FunctionPolicy::new(
        backstitch_core::message::PolicyName::new("nobody").unwrap(),
        |_| async { panic!("no policy may be called") },
    ));
    let driver = opened.runtime.open(session::id(), nobody, opened.options()).await.unwrap();
    let head = driver.session().state().await.view.head();
    assert_counter_is_recorded(&driver).await;
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap(), ended);
    assert_eq!(driver.session().state().await.view.head(), head);
    driver.session().release().await.unwrap();

    // Long enough for a child of a shell to write again, if one was left.
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert_eq!(files_of(stage), before, "no process writes any more");
    outcome
}

/// Asserts that the counter of an opened session has its recorded value.
pub(crate) async fn assert_counter_is_recorded(driver: &backstitch_runtime::Driver) {
    let state = driver.session().state().await;
    let counter = state.resources.inspect(|counter: &Counter| counter.number).unwrap().unwrap();
    assert_eq!(state.view.resource(Counter::NAME).unwrap().state, serde_json::json!(counter).into());
}

fn files_of(stage: &Stage) -> std::collections::BTreeMap<String, String> {
    match stage.place {
        Place::Host => files(stage),
        Place::Memory => Default::default(),
    }
}

/// The hits at which a point is tried that is reached this often: the first `most`, and the last.
pub(crate) fn hits_to_try(reached: u64, most: u64) -> BTreeSet<u64> {
    let told = std::env::var("BACKSTITCH_CRASH_HITS").ok().and_then(|told| told.parse().ok());
    let first = told.unwrap_or(most).min(reached);
    (1..=first).chain(Some(reached).filter(|last| *last > 0)).collect()
}

/// Kills a process at all points with these prefixes, each at its first hits and at its last.
async fn killed_at(place: Place, points: &[&str], most: u64) {
    killed_in(Plot::Alone, place, points, most).await;
}

pub(crate) async fn killed_in(plot: Plot, place: Place, points: &[&str], most: u64) {
    let reference = Reference::of_plot(place, plot).await;
    let mut tried = 0;
    for point in POINTS.iter().filter(|point| points.iter().any(|wanted| point.starts_with(wanted))) {
        let reached = reference.hits.get(*point).copied().unwrap_or_default();
        for hit in hits_to_try(reached, most) {
            let (stage, what) = kill_at(Role::End, point, hit, async || Stage::of(place, plot)).await;
            let (asked_before, answered) = (asked(&stage), answered(&stage).await);
            resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, &what);
            check_asked(&stage, &asked_before, &answered, &what);
            tried += 1;
        }
    }
    assert!(tried > 0, "no point starts with {points:?}");
}

/// Asserts that no policy was asked for an answer that had been recorded, and none twice by one process.
fn check_asked(stage: &Stage, before: &[String], answered: &[String], what: &str) {
    let all = asked(stage);
    let (earlier, later) = all.split_at(before.len());
    for asks in [earlier, later] {
        let different: BTreeSet<_> = asks.iter().collect();
        assert_eq!(different.len(), asks.len(), "{what}: asked twice: {asks:?}");
    }
    let again: Vec<_> = later.iter().filter(|ask| answered.contains(ask)).collect();
    assert!(again.is_empty(), "{what}: asked again for recorded answers: {again:?}");
}

#[tokio::test]
async fn every_point_is_tried_somewhere() {
    let (host, memory) = (Reference::of(Place::Host).await, Reference::of(Place::Memory).await);
    let agents = Reference::of_plot(Place::Host, Plot::Agents).await;
    assert_eq!(agents.hits.keys().filter(|point| point.starts_with("child.")).count(), 3);
    for point in POINTS {
        let elsewhere = ELSEWHERE.iter().any(|other| point.starts_with(other));
        assert_eq!(host.hits.contains_key(*point), !elsewhere, "{point}: {:?}", host.hits);
        let of_disk = point.starts_with("workspace.") || point.starts_with("process.");
        assert_eq!(memory.hits.contains_key(*point), !elsewhere && !of_disk, "{point}: {:?}", memory.hits);
    }
}

#[tokio::test]
async fn killed_while_asking() {
    killed_at(Place::Host, &["ask.", "snapshot.", "recover.before"], 2).await;
}

#[tokio::test]
async fn killed_while_appending() {
    killed_at(Place::Host, &["append."], 4).await;
}

#[tokio::test]
async fn killed_around_an_intent() {
    killed_at(Place::Host, &["call.before_intent", "call.after_intent"], 4).await;
}

#[tokio::test]
async fn killed_inside_a_handler() {
    killed_at(Place::Host, &["call.in_handler"], u64::MAX).await;
}

#[tokio::test]
async fn killed_after_a_handler() {
    killed_at(Place::Host, &["call.handler_done", "call.files_captured"], 3).await;
}

#[tokio::test]
async fn killed_after_a_call() {
    killed_at(Place::Host, &["call.finished"], 5).await;
}

#[tokio::test]
async fn killed_while_files_are_restored() {
    killed_at(Place::Host, &["call.before_restore", "call.after_restore", "workspace."], 3).await;
}

#[tokio::test]
async fn killed_around_a_process() {
    killed_at(Place::Host, &["process."], 1).await;
}

#[tokio::test]
async fn killed_while_the_store_commits() {
    killed_at(Place::Host, &["store.before_commit", "store.after_commit"], 4).await;
}

/// Before there is a session there is a store, or half of one. Every way to open it accepts what is left.
#[tokio::test]
async fn killed_while_store_and_session_are_created() {
    let beginning =
        ["store.create.", "session.", "store.before_commit", "store.after_commit", "workspace.scan."];
    let reference = Reference::of(Place::Host).await;
    for point in POINTS.iter().filter(|point| beginning.iter().any(|wanted| point.starts_with(wanted))) {
        let reached = reference.hits.get(*point).copied().unwrap_or_default();
        for hit in 1..=reached.min(2) {
            let what = format!("killed at {point}, time {hit}");
            let stage = Stage::of(Place::Host, Plot::Alone);
            assert!(stage.play(Role::End, &Death::At(Crash::at(point, hit))), "{what}: it was not");
            accepts_what_is_left(&stage, &what).await;
            resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, &what);
        }
    }
}

/// Opens the remaining store read-only, verifies it and salvages it.
async fn accepts_what_is_left(stage: &Stage, what: &str) {
    use backstitch_core::ports::Store as _;
    let path = stage.path("store/store.db");
    if !path.exists() {
        return;
    }
    let store = SqliteStore::open_read_only(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
    for session in store.sessions().await.unwrap() {
        backstitch_runtime::load_view(&store, session, None).await.unwrap();
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{what}: {report:?}");
    crate::index::is_current(&Runtime::new(Arc::new(store))).await;
    let saved = stage.path("saved.db");
    SqliteStore::salvage(&path, &saved).unwrap_or_else(|error| panic!("{what}: {error}"));
}

#[tokio::test]
async fn killed_with_files_in_memory() {
    killed_at(Place::Memory, &["ask.", "append.", "store."], 1).await;
}

#[tokio::test]
async fn killed_in_calls_with_files_in_memory() {
    killed_at(Place::Memory, &["call."], 2).await;
}

#[tokio::test]
async fn killed_around_a_sub_agent() {
    killed_in(Plot::Agents, Place::Host, &["child.", "ask.", "snapshot.", "recover.before"], u64::MAX).await;
}

#[tokio::test]
async fn killed_in_the_calls_of_a_sub_agent() {
    killed_in(Plot::Agents, Place::Host, &["call.in_handler", "call.handler_done", "call.finished"], 9).await;
}

#[tokio::test]
async fn killed_around_the_intents_of_a_sub_agent() {
    let points = &["call.before_intent", "call.after_intent", "call.files_captured", "process."];
    killed_in(Plot::Agents, Place::Host, points, 7).await;
}

#[tokio::test]
async fn killed_while_the_files_of_a_sub_agent_are_restored() {
    let points = &["call.before_restore", "call.after_restore", "workspace."];
    killed_in(Plot::Agents, Place::Host, points, 7).await;
}

#[tokio::test]
async fn killed_while_a_sub_agent_appends() {
    killed_in(Plot::Agents, Place::Host, &["append."], 12).await;
}

#[tokio::test]
async fn killed_in_a_sub_agent_with_files_in_memory() {
    killed_in(Plot::Agents, Place::Memory, &["child.", "call.in_handler", "call.finished"], 6).await;
}

#[tokio::test]
async fn killed_while_sections_are_opened() {
    killed_in(Plot::Sections, Place::Host, &["ask.", "append.", "recover.before", "snapshot."], 8).await;
}

#[tokio::test]
async fn killed_in_calls_while_sections_are_opened() {
    killed_in(Plot::Sections, Place::Host, &["call."], 5).await;
}
