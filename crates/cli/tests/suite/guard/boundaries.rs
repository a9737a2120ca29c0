//! Every call of a guarded program is a point that gives back the exact files.

use std::fs;

use serde_json::json;

use super::stand_in::StandIn;
use crate::stage::Stage;

#[test]
fn a_rewind_to_before_each_call_gives_the_exact_files() {
    let stage = Stage::new();
    fs::write(stage.path("files/kept.txt"), "kept\n").unwrap();
    fs::write(stage.path("files/.gitignore"), "*.log\n").unwrap();
    let program = StandIn::new(&stage, "one");
    let mut points = Vec::new();
    let mut call = |script: &str| {
        let before = program.picture();
        let id = program.shell(script);
        points.push((id, before));
    };
    program.start();
    program.prompt("Mend it");
    call("echo one > a.txt; mkdir -p deep/er; echo log > deep/x.log");
    call("rm kept.txt; chmod 600 a.txt; ln -s a.txt link; mkdir empty");
    call("echo half > half.txt; exit 3");
    call("mv deep other; printf '\\000\\377' > binary");
    program.stop("Mended.");

    // The person edits between two prompts.
    fs::write(stage.path("files/own.txt"), "mine\n").unwrap();
    let edited = program.picture();
    program.prompt("Continue");
    call("echo two >> a.txt; rm -r other");
    program.stop("Done.");
    program.report("SessionEnd", json!({"reason": "other"}));

    let ids: Vec<String> = points.iter().map(|(id, _)| program.call(id)).collect();
    for (id, (_, before)) in ids.iter().zip(&points) {
        program.check_point(&format!("before:{id}"), before);
    }
    // What one call left is what the next one found.
    program.check_point(&format!("after:{}", ids[0]), &points[1].1);
    program.check_point(&format!("after:{}", ids[2]), &points[3].1);
    program.check_point(&format!("before:{}", ids[4]), &edited);
    assert_eq!(program.gaps(), Vec::<String>::new());

    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    for words in ["asked: Mend it", "failed: Exit code 3", "files were changed from outside", "completed"] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(
        stage
            .run(&["diff", &session, &format!("before:{}", ids[1]), "--names"])
            .worked_quietly()
            .contains("kept.txt")
    );
    stage.run(&["verify"]).worked_quietly();
    let resumed = stage.run(&["resume", &session]).failed();
    assert!(resumed.contains("belongs to Claude Code") && resumed.contains("guarded_session"), "{resumed}");
}

#[test]
fn calls_at_the_same_time_share_their_changes() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Both");
    let start = program.picture();
    let (one, other) = (program.new_call(), program.new_call());
    let input = json!({"tool_input": {"command": "x"}});
    program.before(&one, "Bash", input.clone());
    fs::write(stage.path("files/one"), "1").unwrap();
    let between = program.picture();
    program.before(&other, "Bash", input.clone());
    program.run("echo other > other", &other, &input);
    program.run("echo more >> one", &one, &input);
    let end = program.picture();
    program.stop("Done.");
    let (one, other) = (program.call(&one), program.call(&other));
    let notes: Vec<_> =
        program.records().into_iter().filter(|record| record["data"]["topic"] == "overlap").collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0]["data"]["data"]["calls"].as_array().unwrap().len(), 2, "{notes:?}");
    program.check_point(&format!("before:{one}"), &start);
    program.check_point(&format!("before:{other}"), &between);
    program.check_point(&format!("after:{one}"), &end);
    assert_eq!(program.gaps(), Vec::<String>::new());
}

#[test]
fn reads_at_the_same_time_share_nothing_and_show_what_was_read() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Both");
    let calls = [program.new_call(), program.new_call()];
    for call in &calls {
        program.before(call, "Read", json!({"tool_input": {"file_path": "a.txt"}}));
    }
    for call in &calls {
        let file = json!({"filePath": "/p/a.txt", "content": "seven needles\n", "numLines": 1});
        program.after(call, "Read", json!({"tool_response": {"type": "text", "file": file}}));
    }
    program.stop("Done.");
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(!log.contains("same time") && log.matches(": seven needles").count() == 2, "{log}");
    assert!(!log.contains("numLines"), "{log}");
}

#[test]
fn texts_before_calls_and_the_files_of_calls_are_in_the_log() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    let record = |message: &str, block: serde_json::Value| {
        let line = json!({"type": "assistant", "uuid": "u", "message": {"id": message, "content": [block]}});
        let mut text = fs::read_to_string(program.transcript()).unwrap_or_default();
        text.push_str(&format!("{line}\n"));
        fs::write(program.transcript(), text).unwrap();
    };
    program.start();
    program.prompt("Mend it");
    record("m1", json!({"type": "thinking", "thinking": "Hm."}));
    record("m1", json!({"type": "text", "text": "First the seam."}));
    record("m1", json!({"type": "tool_use", "id": "toolu_01", "name": "Bash"}));
    record("m1", json!({"type": "tool_use", "id": "toolu_02", "name": "Bash"}));
    let before = program.picture();
    let one = program.shell("echo one > one; echo two > two");
    program.shell("echo more >> one; rm two");
    record("m2", json!({"type": "tool_use", "id": "toolu_03", "name": "Bash"}));
    program.shell("true");
    record("m3", json!({"type": "text", "text": "Mended."}));
    program.stop("Mended.");
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    let place = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words}: {log}"));
    assert!(
        place("asked: Mend it") < place("First the seam.")
            && place("First the seam.") < place("echo one > one")
    );
    for words in ["First the seam.", "Mended.", "(added one, two)", "(changed one; deleted two)"] {
        assert_eq!(log.matches(words).count(), 1, "{words}: {log}");
    }
    program.check_point(&format!("before:{}", program.call(&one)), &before);
}

#[test]
fn calls_of_a_sub_agent_and_late_writes_are_boundaries_too() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Delegate");
    let agent = program.new_call();
    program.before(&agent, "Agent", json!({"tool_input": {"prompt": "mend"}}));
    let inner = program.new_call();
    let input =
        json!({"tool_input": {"command": "echo inner > inner"}, "agent_id": "a1", "agent_type": "general"});
    let before = program.picture();
    program.before(&inner, "Bash", input.clone());
    program.run("echo inner > inner", &inner, &input);
    // A call of the sub-agent that was denied has no end.
    let denied = program.new_call();
    program.before(&denied, "Bash", input);
    program.report("SubagentStop", json!({"agent_id": "a1", "agent_type": "general"}));
    assert_eq!(program.gaps().len(), 1, "only the denied call is closed");
    program.after(&agent, "Agent", json!({"tool_input": {}, "tool_response": {"status": "completed"}}));

    let background = program.new_call();
    let input = json!({"tool_input": {"command": "sleep 1; echo late > late", "run_in_background": true}});
    program.before(&background, "Bash", input.clone());
    let launched = json!({"tool_response": {"stdout": "", "stderr": "", "backgroundTaskId": "b1"}});
    program.after(&background, "Bash", launched);
    let early = program.picture();
    fs::write(stage.path("files/late"), "late").unwrap();
    program.stop("Done.");
    let late = program.picture();
    let (inner, background) = (program.call(&inner), program.call(&background));
    program.check_point(&format!("before:{inner}"), &before);
    program.check_point(&format!("after:{background}"), &early);
    assert_eq!(program.picture(), late);
}

#[test]
fn an_interrupted_call_has_its_result_from_the_transcript() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Try");
    let before = program.picture();
    let call = program.new_call();
    program.before(&call, "Bash", json!({"tool_input": {"command": "sleep 300"}}));
    fs::write(stage.path("files/half"), "half").unwrap();
    // The person interrupts the call, which is not reported, and asks for something else.
    let result =
        json!({"type": "tool_result", "tool_use_id": call, "is_error": true, "content": "interrupted"});
    let line = json!({"type": "user", "uuid": "u1", "message": {"content": [result]}});
    fs::write(program.transcript(), format!("{line}\n")).unwrap();
    program.prompt("Another way");
    assert_eq!(program.gaps(), Vec::<String>::new());
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(log.contains("failed: interrupted") && log.contains("asked: Another way"), "{log}");
    program.check_point(&format!("before:{}", program.call(&call)), &before);
}

#[test]
fn a_call_that_ended_without_a_report_is_closed_with_its_result_from_the_transcript() {
    let stage = Stage::new();
    let program = StandIn::new(&stage, "one");
    program.start();
    program.prompt("Try");
    let denied = program.new_call();
    program.before(&denied, "Bash", json!({"tool_input": {"command": "rm -rf /"}}));
    let result = json!({"type": "tool_result", "tool_use_id": denied, "is_error": true, "content": "the person said no"});
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7});
    let answer = json!({"type": "assistant", "uuid": "u1", "message": {"id": "m1", "model": "opus", "usage": usage, "content": []}});
    let lines = [
        json!({"type": "user", "uuid": "u0", "promptId": "prompt Try", "message": {"content": "Try"}}),
        answer.clone(),
        answer,
        json!({"type": "user", "uuid": "u2", "message": {"content": [result]}}),
    ];
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(program.transcript(), format!("{}\nnot json\n{{\"half", text.join("\n"))).unwrap();
    let next = program.shell("echo next > next");
    program.stop("Done.");
    assert_eq!(program.gaps(), Vec::<String>::new());
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(log.contains("failed: the person said no") && !log.contains("overlap"), "{log}");
    // The usage of an answer counts once.
    let shown = stage.json(&["stats"]);
    assert_eq!(
        shown["total"]["input_tokens"].as_u64().or(shown["input_tokens"].as_u64()),
        Some(15),
        "{shown}"
    );
    // A request that is written down after the answer belongs to it.
    let late = json!({"type": "assistant", "uuid": "u3", "message": {"id": "m2", "model": "opus", "usage": {"output_tokens": 3}, "content": []}});
    fs::write(program.transcript(), format!("{}\n{late}\n", text.join("\n"))).unwrap();
    program.report("SessionEnd", json!({"reason": "other"}));
    assert_eq!(stage.json(&["ls"])["outcome"], "completed");
    assert_eq!(stage.json(&["stats"])["total"]["output_tokens"], 10);
    // The program continues after the denied call.
    let rewound = stage.json(&["rewind", &stage.session(), &format!("before:{}", program.call(&next))]);
    let continues = rewound["continue"].as_str().unwrap();
    assert!(
        continues.starts_with("claude --resume one --resume-session-at u2 --fork-session --session-id "),
        "{continues}"
    );
    // A conversation that it begins belongs to the same session.
    let new = continues.rsplit(' ').next().unwrap().to_owned();
    let forked = StandIn::new(&stage, &new);
    forked.report("SessionStart", json!({"source": "resume"}));
    forked.prompt("Another way");
    forked.shell("echo other > other");
    forked.stop("Done.");
    assert_eq!(stage.run(&["ls", "--json"]).worked_quietly().lines().count(), 1);
    assert_eq!(stage.file("next"), None);
}
