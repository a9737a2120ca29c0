//! An import that is killed leaves no part of a session, and can be repeated.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;

use backstitch_core::ports::{ImportChanges, Store as _};
use backstitch_store::{Bundle, SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::super::agent::Agent;
use super::super::child::{Task, command};
use super::super::support::{Temporary, read};
use super::{check_same, check_sound, exported};

/// Child: imports a bundle in small transactions, and kills itself at a step.
pub(in super::super) fn import(task: &mut Task) {
    let step: u64 = fs::read_to_string(task.place.join("step")).unwrap().parse().unwrap();
    let options = SqliteOptions { transaction_bytes: 64, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(task.store(), options).unwrap();
    let bundle = Bundle::open(task.place.join("bundle"), &mut |_| {}).unwrap();
    let mut steps = 0;
    let imported = store.import_bundle(&bundle, &ImportChanges::default(), &mut |_| {
        steps += 1;
        if steps == step {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
        }
    });
    imported.unwrap();
    task.report(format!("steps {steps}"));
}

#[test]
fn an_import_that_is_killed_anywhere_leaves_whole_sessions() {
    let store = Temporary::new();
    let mut eldest = Agent::new(&store, 50);
    eldest.call(&[("file", "0"), ("other", "x")]);
    let mut fork = eldest.fork(51, eldest.next);
    for index in 1..4_u8 {
        fork.call(&[("file", &index.to_string()), ("other", "x")]);
    }
    block_on(store.send(fork.session(), sample::item("waits"))).unwrap();
    let bundle = exported(&store, fork.session(), "fork.bundle");
    let mut killed = 0;
    for step in 1.. {
        let place = TempDir::new().unwrap();
        fs::copy(&bundle, place.path().join("bundle")).unwrap();
        fs::write(place.path().join("step"), step.to_string()).unwrap();
        let report = place.path().join("report");
        let ended = command("import", place.path(), &report).status().unwrap();
        let target = SqliteStore::open(place.path().join("store.db")).unwrap();
        check_sound(&target);
        for session in block_on(target.sessions()).unwrap() {
            assert_eq!(
                read(&target, session).unwrap(),
                read(&*store, session).unwrap(),
                "whole, or not there"
            );
        }
        super::imported(&target, &bundle).unwrap();
        check_same(&store, &target, eldest.session());
        check_same(&store, &target, fork.session());
        check_sound(&target);
        if ended.signal() != Some(9) {
            assert!(ended.success(), "{ended:?}");
            break;
        }
        killed += 1;
    }
    assert!(killed > 10, "{killed}");
}
