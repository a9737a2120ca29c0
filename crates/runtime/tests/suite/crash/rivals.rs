//! Several processes that open one session concurrently: one claims it, and the errors of the others name its
//! holder.

use std::time::{Duration, Instant};

use backstitch_core::ports::{StoreError, WorkspaceError};
use backstitch_runtime::{ResumeOptions, RuntimeError, SessionOptions};

use super::child::{Death, Role};
use super::matrix::{Reference, resumed};
use super::session::{self, Unseen, agent, to_the_end};
use super::stage::{Place, Stage};
use super::tools::WOKEN;

const RIVALS: usize = 4;

/// The work of a process that competes with others for the session, or for its files.
pub(crate) async fn competes(stage: &Stage) {
    let own = std::process::id();
    let tell = |what: &str, text: &str| {
        let (part, whole) = (format!("part.{what}.{own}"), format!("{what}.{own}"));
        std::fs::write(stage.path(&part), text).unwrap();
        std::fs::rename(stage.path(&part), stage.path(&whole)).unwrap();
    };
    let opened = match stage.try_open() {
        Ok(opened) => opened,
        Err(WorkspaceError::Held { holder, .. }) => return tell("lost", &holder),
        Err(other) => panic!("{other}"),
    };
    match opened.runtime.open(session::id(), agent(stage), opened.options()).await {
        Ok(driver) => {
            tell("won", "");
            wait_for(stage, "all");
            driver.session().release().await.unwrap();
            to_the_end(stage, &opened, Unseen::Retry).await.unwrap();
        }
        Err(RuntimeError::Store(StoreError::Held { owner, .. })) => tell("lost", &owner.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// Waits until another process has made a file.
pub(crate) fn wait_for(stage: &Stage, name: &str) {
    let began = Instant::now();
    while !stage.path(name).exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "{name} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes that reported this, with the text of their reports.
fn told(stage: &Stage, what: &str) -> Vec<(String, String)> {
    let names = std::fs::read_dir(&stage.root).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let processes = names.filter_map(|name| name.strip_prefix(&format!("{what}.")).map(str::to_owned));
    processes
        .filter(|process| process.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|process| {
            let text = std::fs::read_to_string(stage.path(&format!("{what}.{process}"))).unwrap();
            (process, text)
        })
        .collect()
}

async fn one_of_several_wins(place: Place) {
    let reference = Reference::of(place).await;
    let stage = Stage::new(place);
    assert!(stage.play(Role::End, &Death::In("write:2")));
    let rivals: Vec<_> = (0..RIVALS).map(|_| stage.start(Role::Rival, &Death::None)).collect();
    let began = Instant::now();
    while told(&stage, "won").len() + told(&stage, "lost").len() < RIVALS {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{}",
            std::fs::read_to_string(stage.path("log")).unwrap()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let [(winner, _)] = &told(&stage, "won")[..] else { panic!("{:?}", told(&stage, "won")) };
    for (loser, owner) in told(&stage, "lost") {
        assert!(owner.contains(&format!("process {winner}")), "the error of {loser} names {owner}");
    }
    std::fs::write(stage.path("all"), "").unwrap();
    for mut rival in rivals {
        assert!(!stage.died(rival.wait().unwrap(), "a rival"));
    }
    resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, "after the rivals");
}

/// Whether a process is stopped, according to `/proc`.
fn is_stopped(process: u32) -> bool {
    let told = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    told.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

#[tokio::test]
async fn a_process_that_slept_writes_nothing_to_a_session_that_was_taken_over() {
    let reference = Reference::of(Place::Memory).await;
    let stage = Stage::new(Place::Memory);
    // A process that is stopped while another thread writes a snapshot keeps the store locked.
    stage.leave_out_snapshots();
    let mut sleeper = stage.start(Role::End, &Death::StoppedIn("write:2"));
    let began = Instant::now();
    while !is_stopped(sleeper.id()) {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
    let opened = stage.open();
    let refused = opened.runtime.open(session::id(), agent(&stage), opened.options()).await.err();
    let Some(RuntimeError::Store(StoreError::Held { owner, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(
        owner.to_string(),
        format!("process {}", sleeper.id()),
        "it sleeps, and still holds the session"
    );

    let options = SessionOptions { take_over: true, ..opened.options() };
    let driver = opened.runtime.open(session::id(), agent(&stage), options).await.unwrap();
    std::fs::write(stage.path(WOKEN), "").unwrap();
    let pid = rustix::process::Pid::from_child(&sleeper);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let status = sleeper.wait().unwrap();
    let log = std::fs::read_to_string(stage.path("log")).unwrap();
    assert!(!status.success() && log.contains("ClaimLost"), "{status}: {log}");
    driver.resume(ResumeOptions::default()).await.unwrap();
    driver.session().release().await.unwrap();
    drop((driver, opened));
    resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, "after it was taken over");
}

#[tokio::test]
async fn one_of_several_claims_the_session() {
    one_of_several_wins(Place::Memory).await;
}

#[tokio::test]
async fn one_of_several_claims_the_files() {
    one_of_several_wins(Place::Host).await;
}
