//! Engines that are missing, too old, hostile, or die.

use std::fs;

use serde_json::json;

use super::stand_in::{AGENT, Claude, run, stage, stage_of};
use crate::stage::{Stage, ended};

#[test]
fn a_missing_program_is_an_error_that_says_what_to_install() {
    let stage = Stage::new();
    let agent = stage.write("tailor.toml", AGENT);
    let stage = stage.with_variable("PATH", "/usr/bin:/bin");
    let errors = stage.run(&["run", "Mend it", "--agent", &agent]).failed();
    assert!(errors.contains("engine_missing") && errors.contains("npm install"), "{errors}");
    assert_eq!(stage.run(&["ls", "--json"]).output, "", "nothing was created");
}

#[test]
fn an_old_program_is_refused_and_doctor_says_so() {
    let stage = stage_of("1.0.3");
    let agent = stage.path("tailor.toml").display().to_string();
    let errors = stage.run(&["run", "Mend it", "--agent", &agent]).failed();
    assert!(errors.contains("1.0.3") && errors.contains("too old"), "{errors}");
    let checked = stage.run(&["doctor"]).output;
    assert!(checked.contains("Claude Code 1.0.3") && checked.contains("newer is needed"), "{checked}");
}

#[test]
fn hostile_lines_end_the_run_with_an_error_and_the_session_can_be_resumed() {
    for line in ["hello\n", "[1]\n", "{\"type\":\n", "\u{1b}[2J\u{7}\n"] {
        let stage = stage();
        let child = run(&stage, &[]);
        let mut claude = Claude::begin(&stage);
        claude.calls("toolu_01", "Write", &json!({}), |files| fs::write(files.join("one"), "1").unwrap());
        claude.pipes.write(line);
        claude.pipes.read_rest();
        drop(claude);
        let errors = ended(child).failed();
        assert!(errors.contains("engine_failed") && errors.contains("not a JSON object"), "{errors}");
        assert!(!errors.contains('\u{1b}'), "{errors:?}");
        let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
        Claude::begin(&stage).ends("Done.");
        assert!(ended(child).worked_quietly().contains("Done."));
    }
}

#[test]
fn unknown_lines_and_fields_are_ignored() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    for line in [
        json!({"type": "rate_limit_event", "x": 1}),
        json!({"type": "assistant"}),
        json!({"type": "user", "message": 7}),
        json!({"type": "stream_event", "event": {"type": "later"}}),
        json!({"type": "control_request", "request_id": "z", "request": {"subtype": "later"}}),
    ] {
        claude.pipes.send(&line);
    }
    assert_eq!(claude.pipes.read()["response"]["subtype"], "error", "a request that is not known is refused");
    claude.says("Done.");
    claude.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}

#[test]
fn failed_requests_are_shown_and_a_refused_key_ends_the_run() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    let retry = |attempt: u32, status: u32, error: &str| {
        json!({"type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": 10, "retry_delay_ms": 516.6,
            "error_status": status, "error": error})
    };
    claude.pipes.send(&retry(1, 529, "overloaded"));
    claude.pipes.send(&retry(2, 529, "overloaded"));
    claude.pipes.send(&retry(1, 401, "authentication_failed"));
    claude.pipes.send(&retry(2, 401, "authentication_failed"));
    claude.pipes.read_rest();
    drop(claude);
    let errors = ended(child).failed();
    assert_eq!(errors.matches("overloaded (status 529); retrying in 0.5 s").count(), 2, "{errors}");
    assert!(errors.contains("engine_failed") && errors.contains("refuses its key or login"), "{errors}");
    assert!(errors.contains("ANTHROPIC_API_KEY"), "{errors}");
    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    Claude::begin(&stage).ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}

#[test]
fn a_program_that_reports_an_error_or_dies_leaves_a_session_that_continues() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut claude = Claude::begin(&stage);
    claude.pipes.send(
        &json!({"type": "result", "subtype": "success", "is_error": true, "result": "Invalid API key"}),
    );
    claude.pipes.read_rest();
    drop(claude);
    let errors = ended(child).failed();
    assert!(errors.contains("engine_failed") && errors.contains("Invalid API key"), "{errors}");

    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    let mut claude = Claude::begin(&stage);
    claude.begins_call("toolu_01", "Bash", &json!({"command": "sleep 600"}));
    fs::write(stage.path("files/half"), "half").unwrap();
    claude.dies();
    drop(claude);
    let errors = ended(child).failed();
    assert!(errors.contains("ended before it answered"), "{errors}");
    assert_eq!(stage.file("half"), None);

    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    Claude::begin(&stage).ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}
