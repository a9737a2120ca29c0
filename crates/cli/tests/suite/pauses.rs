//! Every kind of pause prints commands that end it when they are executed unchanged.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, interrupt, scripted, wait_until};

/// Returns the commands that were printed at the pause.
fn printed(ran: &Ran) -> Vec<String> {
    let lines = ran.errors.lines().skip_while(|line| !line.starts_with("paused: "));
    let lines = lines.filter(|line| line.starts_with("  backstitch "));
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Executes a copied line in a shell.
fn execute(stage: &Stage, line: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_backstitch"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(stage.path("files")).env("PATH", path);
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Checks each kind of decision: makes it for every call, and then runs the last command, which resumes.
#[track_caller]
fn each_way_ends_it(paused: impl Fn() -> (Stage, Ran), decisions: usize) {
    for way in 0..decisions.max(1) {
        let (stage, ran) = paused();
        assert!(ran.errors.contains("paused: "), "{ran:?}");
        let commands = printed(&ran);
        let (resume, decided) = commands.split_last().unwrap();
        assert!(resume.contains("resume"), "{commands:?}");
        if decisions > 0 {
            for call in decided.chunks(decisions) {
                let done = execute(&stage, &call[way]);
                assert_eq!(done.code, Some(0), "{}: {done:?}", call[way]);
            }
        }
        let done = execute(&stage, resume);
        assert_eq!((done.code, done.output.as_str()), (Some(0), "Done.\n"), "{commands:?}: {done:?}");
    }
}

fn start(stage: &Stage, replies: &Value, more: &[&str]) -> Ran {
    let model = scripted(stage, replies);
    stage.run(&[&["run", "Do it", "--model", &model], more].concat())
}

fn shell(command: &str) -> Value {
    json!({"name": "shell", "arguments": {"command": command}})
}

#[test]
fn approvals_are_ended_by_the_printed_commands() {
    for calls in [json!([shell("true")]), json!([shell("echo one"), shell("echo two")])] {
        let replies = json!([{"calls": calls}, {"text": "Done."}]);
        let paused = || {
            let stage = Stage::new();
            let ran = start(&stage, &replies, &["--approve", "ask"]);
            (stage, ran)
        };
        each_way_ends_it(paused, 2);
    }
}

#[test]
fn unknown_effects_are_ended_by_the_printed_commands() {
    let replies =
        json!([{"calls": [shell("[ -e ../begun ] || { touch ../begun; sleep 60; }")]}, {"text": "Done."}]);
    let paused = || {
        let stage = Stage::new();
        let model = scripted(&stage, &replies);
        let mut child = stage.command(&["run", "Do it", "--model", &model]).spawn().unwrap();
        wait_until("the call", || stage.path("begun").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = stage.run(&["resume"]);
        (stage, ran)
    };
    each_way_ends_it(paused, 3);
}

#[test]
fn spent_budgets_are_ended_by_the_printed_commands() {
    let replies = json!([
        {"calls": [shell("true")], "usage": {"input_tokens": 60, "output_tokens": 60}}, {"text": "Done."},
    ]);
    for budget in ["turns=1", "calls=1,turns=1", "tokens=100", "input_tokens=50,output_tokens=50", "time=1ms"]
    {
        let paused = || {
            let stage = Stage::new();
            let ran = start(&stage, &replies, &["--budget", budget]);
            (stage, ran)
        };
        let (_, ran) = paused();
        if ran.code == Some(0) {
            // This budget was large enough.
            continue;
        }
        each_way_ends_it(paused, 0);
    }
}

#[test]
fn cut_off_answers_are_ended_by_the_printed_command() {
    let replies = json!([{"text": "Do", "finish_reason": "length"}, {"text": "ne."}]);
    let paused = || {
        let stage = Stage::new();
        let ran = start(&stage, &replies, &[]);
        assert_eq!((ran.code, ran.output.as_str()), (Some(3), ""), "{ran:?}");
        (stage, ran)
    };
    each_way_ends_it(paused, 0);
}

#[test]
fn passed_deadlines_are_ended_by_the_printed_command() {
    let replies = json!([{"text": "Done.", "delay_ms": 1_500}]);
    let paused = || {
        let stage = Stage::new();
        let ran = start(&stage, &replies, &["--deadline", "200ms"]);
        assert_eq!((ran.code, ran.output.as_str()), (Some(3), ""), "{ran:?}");
        (stage, ran)
    };
    each_way_ends_it(paused, 0);
    // A resume without more time pauses for the same reason.
    let (stage, _) = paused();
    let again = stage.run(&["resume"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(execute(&stage, printed(&again).last().unwrap()).output, "Done.\n", "{again:?}");
}

#[test]
fn a_requested_pause_is_ended_by_the_printed_command() {
    let replies =
        json!([{"calls": [shell("[ -e ../begun ] || { touch ../begun; sleep 60; }")]}, {"text": "Done."}]);
    let stage = Stage::new();
    let model = scripted(&stage, &replies);
    let child = stage.command(&["run", "Do it", "--model", &model]).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    let ran = interrupt(child);
    let line = ran.errors.lines().find_map(|line| line.split('`').nth(1)).unwrap();
    assert_eq!(execute(&stage, line).output, "Done.\n", "{line}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_poisoned_session_is_ended_by_the_printed_commands() {
    let immutable = |path: &Path, set: &str| {
        Command::new("chattr").arg(set).arg(path).output().is_ok_and(|output| output.status.success())
    };
    let probe = Stage::new();
    let file = probe.path("probe");
    std::fs::write(&file, "").unwrap();
    if !immutable(&file, "+i") {
        // Files cannot be made immutable here, so no restore fails.
        return;
    }
    assert!(immutable(&file, "-i"));
    let command = "echo kept > stays.txt; chattr +i stays.txt; exit 1";
    let call = json!({"name": "shell", "arguments": {"command": command, "rollback_on_error": true}});
    let replies = json!([{"calls": [call]}, {"text": "Done."}]);
    for more in [&[][..], &["--shell-effect", "workspace"]] {
        let stage = Stage::new();
        let first = start(&stage, &replies, more);
        let again = stage.run(&["resume"]);
        for ran in [&first, &again] {
            assert!(ran.errors.contains("could not be restored"), "{ran:?}");
            assert_eq!(printed(ran).len(), 2, "{ran:?}");
        }
        let ended: Vec<_> = printed(&again).iter().map(|line| execute(&stage, line)).collect();
        immutable(&stage.path("files/stays.txt"), "-i");
        assert_eq!((ended[1].code, ended[1].output.as_str()), (Some(0), "Done.\n"), "{ended:?}");
        assert_eq!(stage.file("stays.txt").unwrap(), "kept\n");
    }
}
