//! A server is killed at every crash point that a call reaches, for each kind of call.
//!
//! An undisturbed run of each kind lists the points, from the request to the end of the server. So a new point is
//! covered by itself. Then a server is killed at the first and at the last time that it reaches each of them, and
//! another one continues the session: see [`trial`] for what has to hold.

mod agent;
mod kind;
mod restart;
mod trial;

use std::collections::BTreeMap;
use std::sync::Mutex;

use kind::Kind;
use trial::{Crash, Trial};

/// Servers that are killed at the same time.
const WORKERS: usize = 3;

/// Returns the first and the last time that each point was reached.
fn crashes(reached: &str) -> Vec<Crash> {
    let mut hits = BTreeMap::<&str, u64>::new();
    reached.lines().for_each(|point| *hits.entry(point).or_default() += 1);
    let ends = |(point, last): (&str, u64)| {
        let first = Crash { point: point.to_owned(), hit: 1 };
        let last = (last > 1).then(|| Crash { point: point.to_owned(), hit: last });
        std::iter::once(first).chain(last)
    };
    hits.into_iter().flat_map(ends).collect()
}

/// Calls a function for each crash, on a few threads.
fn for_each(crashes: Vec<Crash>, check: impl Fn(&Crash) + Sync) {
    let left = Mutex::new(crashes);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().pop();
                    let Some(crash) = next else { return };
                    check(&crash);
                }
            });
        }
    });
}

/// Kills a server at every point of a call.
fn check(kind: Kind, expected: &[&str]) {
    let undisturbed = Trial::new(kind).run_through();
    for point in expected {
        assert!(undisturbed.reached.contains(point), "{point} is not reached:\n{}", undisturbed.reached);
    }
    let deaths = Mutex::new(0);
    let all = crashes(&undisturbed.reached);
    let count = all.len();
    for_each(all, |crash| {
        // Records may be stored together, so that a later time is not reached.
        let attempts = if crash.hit > 1 { 3 } else { 1 };
        let has_died = (0..attempts).any(|_| Trial::new(kind).crash(crash, &undisturbed));
        assert!(has_died || crash.hit > 1, "{crash} was not reached");
        *deaths.lock().unwrap() += usize::from(has_died);
    });
    let deaths = deaths.into_inner().unwrap();
    assert!(deaths * 4 >= count * 3, "{deaths} of {count} crashes happened");
}

#[test]
fn the_first_call_of_a_session() {
    check(Kind::First, &["store.create.done", "call.after_intent", "call.finished"]);
}

#[test]
fn a_call_that_writes_a_file() {
    check(Kind::Write, &["call.before_intent", "call.after_intent", "call.files_captured", "call.finished"]);
}

#[test]
fn a_call_that_changes_state() {
    check(Kind::State, &["call.before_intent", "call.handler_done", "call.finished"]);
}

#[test]
fn a_command_with_effects_outside() {
    check(Kind::Shell, &["process.before_record", "process.recorded", "call.finished"]);
}

#[test]
fn a_call_that_fails() {
    check(Kind::Failing, &["call.before_restore", "workspace.restore.half", "call.after_restore"]);
}

#[test]
fn a_call_that_waits_for_approval() {
    check(Kind::Approved, &["process.recorded", "call.finished"]);
}

#[test]
fn a_rewind() {
    check(Kind::Rewind, &["rewind.before", "rewind.recorded", "rewind.restored", "workspace.restore.half"]);
}

#[test]
fn an_undo() {
    check(Kind::Undo, &["rewind.before", "rewind.recorded", "rewind.restored"]);
}

#[test]
fn a_fork() {
    check(Kind::Fork, &["fork.before", "fork.created", "fork.restored"]);
}
