//! A hook that is killed loses at most its own report, and the log says so.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use serde_json::json;

use super::stand_in::StandIn;
use crate::stage::Stage;

#[test]
#[expect(clippy::print_stderr, reason = "a failure shows the seed")]
fn a_hook_that_is_killed_at_any_time_loses_at_most_its_own_report() {
    let mut random = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    eprintln!("seed: {random}");
    let stage = Stage::new();
    for number in 0..300 {
        fs::write(stage.path(&format!("files/{number}")), number.to_string()).unwrap();
    }
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Mend it");
    let mut points = vec![(program.shell("echo zero > zero"), None)];
    let mut died = 0;
    for run in 0..8 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (call, before) = (program.new_call(), program.picture());
        let more = json!({"tool_use_id": call, "tool_name": "Bash", "tool_input": {"command": run}});
        let mut hook = program.spawn(&program.event("PreToolUse", more));
        std::thread::sleep(Duration::from_micros((random >> 33) % 150_000));
        let _ = hook.kill();
        let was_killed = hook.wait().unwrap().signal() == Some(9);
        died += usize::from(was_killed);
        program.run(
            &format!("echo {run} > file{run}; rm {run}"),
            &call,
            &json!({"tool_input": {"command": run}}),
        );
        points.push((call, Some(before)));
        points.push((program.shell(&format!("echo {run} >> more")), None));
    }
    program.stop("Done.");
    stage.run(&["verify"]).worked_quietly();
    let gaps = program.gaps();
    let named = gaps.iter().filter(|gap| gap.contains("the hook for PreToolUse of Bash was killed")).count();
    let unseen = gaps.iter().filter(|gap| gap.contains("was not seen before it ran")).count();
    assert!(unseen <= died, "{gaps:?}");
    assert!(named <= died, "{gaps:?}");
    let records = program.records();
    for (call, before) in points {
        let id = program.call(&call);
        let started = |record: &&serde_json::Value| {
            record["kind"] == "call_started" && record["data"]["call_id"] == id.as_str()
        };
        let started = records.iter().find(started).unwrap();
        if let Some(before) = before.filter(|_| !started["data"]["root"].is_null()) {
            program.check_point(&format!("before:{id}"), &before);
        }
    }
}

/// Returns the crash points that a hook reaches. `report` makes its reports; the points of its second stage count.
#[cfg(feature = "crash-points")]
fn reached(report: impl Fn(&StandIn, &Stage)) -> std::collections::BTreeSet<String> {
    let stage = Stage::new();
    let list = stage.path("reached");
    let counting = Stage::beside(&stage).with_variable("BACKSTITCH_REACHED", list.to_str().unwrap());
    report(&StandIn::new(&stage, "one"), &counting);
    fs::read_to_string(list).unwrap().lines().map(str::to_owned).collect()
}

/// The first hook ends at each crash point in turn.
#[cfg(feature = "crash-points")]
#[test]
fn a_first_hook_that_dies_leaves_no_session_beside_that_of_the_conversation() {
    let start =
        |stage: &Stage| StandIn::new(stage, "one").try_report("SessionStart", json!({"source": "startup"}));
    let counted = reached(|_, counting| drop(start(counting)));
    assert!(counted.contains("session.created"), "{counted:?}");
    for point in &counted {
        let stage = Stage::new();
        let dying = Stage::beside(&stage).with_variable("BACKSTITCH_ABORT_AT", point);
        assert_eq!(start(&dying).code, None, "{point} was not reached");
        let program = StandIn::new(&stage, "one");
        program.start();
        program.prompt("Mend it");
        program.shell("echo one > one");
        program.stop("Done.");
        let listed = stage.run(&["ls", "--json"]).worked_quietly();
        assert_eq!(listed.lines().count(), 1, "{point}: {listed}");
        stage.run(&["verify"]).worked_quietly();
    }
}

/// The process ends at each crash point in turn.
#[cfg(feature = "crash-points")]
#[test]
fn a_hook_that_dies_at_a_crash_point_loses_at_most_its_own_report() {
    let counted = reached(|program, counting| {
        program.start();
        program.prompt("Mend it");
        let more = json!({"tool_use_id": "t1", "tool_name": "Bash", "tool_input": {"command": "x"}});
        StandIn::new(counting, "one").try_report("PreToolUse", more);
    });
    for point in &counted {
        let stage = Stage::new();
        let program = StandIn::new(&stage, "one");
        program.start();
        program.prompt("Mend it");
        let first = program.shell("echo one > one");
        let (call, before) = (program.new_call(), program.picture());
        let dying = Stage::beside(&stage).with_variable("BACKSTITCH_ABORT_AT", point);
        let more = json!({"tool_use_id": call, "tool_name": "Bash", "tool_input": {"command": "x"}});
        let ran = StandIn::new(&dying, "one").try_report("PreToolUse", more);
        program.run("echo two > two", &call, &json!({"tool_input": {"command": "x"}}));
        program.stop("Done.");
        stage.run(&["verify"]).worked_quietly();
        let gaps = program.gaps();
        let (first, call) = (program.call(&first), program.call(&call));
        let records = program.records();
        let started = records
            .iter()
            .find(|one| one["kind"] == "call_started" && one["data"]["call_id"] == call.as_str());
        if started.unwrap()["data"]["root"].is_null() {
            assert!(ran.code.is_none() && gaps.len() == 2, "{point}: {gaps:?}");
        } else {
            program.check_point(&format!("before:{call}"), &before);
        }
        assert_eq!(ran.code.is_none(), !gaps.is_empty(), "{point}: {gaps:?}");
        program.check_point(&format!("after:{first}"), &before);
    }
}
