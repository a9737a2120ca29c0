//! `ls`, `show` and `log` report why a run has no answer, after its process has ended: kind, message and
//! attempts.

use serde_json::{Value, json};

use crate::stage::{Stage, ended, last_line, scripted, signal, wait_until};

/// Error message of the scripted server.
const WORDS: &str = "the loom is on fire";

/// Kinds of errors, and the number of attempts for each.
const KINDS: [(&str, u32); 8] = [
    ("auth", 1),
    ("context_too_long", 1),
    ("rate_limited", 4),
    ("overloaded", 4),
    ("server", 4),
    ("network", 4),
    ("cut_stream", 4),
    ("malformed", 4),
];

fn failing(stage: &Stage, kind: &str, times: u32) -> String {
    let fail = json!({"kind": kind, "message": WORDS, "times": times, "retry_after_ms": 1});
    scripted(
        stage,
        &json!([{"text": "Done.", "usage": {"input_tokens": 30, "cache_read_tokens": 20}, "fail": [fail]}]),
    )
}

fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records of a kind, with their data.
fn records(stage: &Stage, kind: &str) -> Vec<Value> {
    let all = lines(&stage.run(&["log", "--all", "--json"]).worked());
    all.into_iter().filter(|line| line["kind"] == kind).map(|mut line| line["data"].take()).collect()
}

#[test]
fn every_kind_of_error_is_reported_after_the_process_has_ended() {
    for (kind, attempts) in KINDS {
        let stage = Stage::new();
        let model = failing(&stage, kind, 9);
        let ran = stage.run(&["run", "Do it", "--retries", "3", "--model", &model]);
        assert_eq!(ran.code, Some(1), "{kind}");
        check(&stage, kind, attempts);
        assert_eq!(records(&stage, "request_failed").len(), attempts as usize);
        assert_eq!(records(&stage, "session_stopped").len(), 1);

        // It is kept when the session is resumed and fails again.
        let model = failing(&stage, "auth", 9);
        assert_eq!(stage.run(&["resume", "--model", &model]).code, Some(1), "{kind}");
        check(&stage, "auth", 1);
        let failed = records(&stage, "request_failed");
        assert_eq!(failed.len(), attempts as usize + 1);
        assert_eq!((&failed[0]["kind"], &failed[0]["message"]), (&json!(kind), &json!(WORDS)));
    }
}

#[track_caller]
fn check(stage: &Stage, kind: &str, attempts: u32) {
    let times = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
    let text = format!("{kind} after {times}: {WORDS}");
    let listed = stage.run(&["ls"]).worked();
    assert!(listed.contains(" stopped ") && listed.contains(&text), "{listed}");
    let shown = stage.run(&["show"]).worked();
    assert!(shown.contains(&format!("no answer: {text}")), "{shown}");
    let log = stage.run(&["log"]).worked();
    assert!(log.contains(&format!("attempt {attempts} failed ({kind}): {WORDS}; no retry")), "{log}");
    assert!(log.contains(&format!("stopped ({kind}): {WORDS}")), "{log}");

    let failure = json!({"kind": kind, "message": WORDS, "attempts": attempts});
    let listed = stage.json(&["ls"]);
    assert_eq!((&listed["failure"], &listed["status"]), (&failure, &json!("stopped")));
    assert_eq!((&listed["stopped"]["reason"], &listed["stopped"]["kind"]), (&json!("error"), &json!(kind)));
    let shown = stage.json(&["show"]);
    assert_eq!((&shown["failure"], &shown["last_stop"]["current"]), (&failure, &json!(true)));
    let requests = shown["evaluations"][0]["requests"].as_array().unwrap();
    let last = requests.last().unwrap();
    assert_eq!((&last["attempts"], &last["finished"]), (&json!(attempts), &Value::Null));
    assert_eq!(last["failures"].as_array().unwrap().len(), attempts as usize);
}

#[test]
fn retries_that_helped_leave_a_trace_and_no_failure() {
    let stage = Stage::new();
    let model = failing(&stage, "rate_limited", 2);
    let ran = stage.run(&["run", "Do it", "--json", "--model", &model]);
    let spent = &last_line(&ran.output)["spent"];
    assert_eq!(
        (&spent["input_tokens"], &spent["cache_read_tokens"], &spent["total_tokens"], &spent["money_micros"]),
        (&json!(30), &json!(20), &json!(30), &json!(0)),
        "{spent}"
    );
    let shown = stage.run(&["show"]).worked();
    assert!(
        shown.contains(&format!("turn 1: attempt 2 failed (rate_limited): {WORDS}; retried after")),
        "{shown}"
    );
    assert!(!shown.contains("no answer"), "{shown}");
    assert!(stage.run(&["log"]).worked().contains("answered at attempt 3"));
    assert_eq!(stage.json(&["ls"])["failure"], Value::Null);
    let finished = records(&stage, "request_finished");
    assert_eq!(
        (finished.len(), &finished[0]["attempt"], &finished[0]["finish"]),
        (1, &json!(3), &json!("stop"))
    );
    assert_eq!(finished[0]["usage"], json!({"input_tokens": 30, "cache_read_tokens": 20}));
    // D18: attempts and requests are counted apart.
    let stats = stage.run(&["stats"]).worked();
    assert!(stats.contains("1 session, 1 request, 0 calls"), "{stats}");
    assert!(stats.contains("2 failed attempts at requests, 2 retries"), "{stats}");
}

#[test]
fn the_settings_and_an_option_set_the_number_of_retries() {
    let stage = Stage::new();
    stage.run(&["config", "set", "retry.retries", "1"]).worked();
    let model = failing(&stage, "overloaded", 9);
    assert_eq!(stage.run(&["run", "Do it", "--model", &model]).code, Some(1));
    assert_eq!(records(&stage, "request_failed").len(), 2);
    let other = Stage::new();
    other.run(&["config", "set", "retry.retries", "1"]).worked();
    let model = failing(&other, "overloaded", 9);
    assert_eq!(other.run(&["run", "Do it", "--retries", "0", "--model", &model]).code, Some(1));
    assert_eq!(records(&other, "request_failed").len(), 1);
    stage.run(&["config", "set", "retry.retries", "1000"]).called_wrongly();
}

#[test]
fn ls_reports_a_failed_evaluation() {
    let stage = Stage::new();
    let model = failing(&stage, "content_filter", 9);
    assert_eq!(stage.run(&["run", "Do it", "--model", &model]).code, Some(1));
    let failure = json!({"kind": "content_filter", "message": WORDS, "attempts": 1});
    assert_eq!(stage.json(&["ls"])["failure"], failure);
    assert!(stage.run(&["ls"]).worked().contains(&format!("content_filter after 1 attempt: {WORDS}")));
    assert!(records(&stage, "session_stopped").is_empty(), "the end of the evaluation holds the error");
}

#[test]
fn a_run_that_an_error_stops_reports_what_was_spent_before() {
    let stage = Stage::new();
    let usage = json!({"input_tokens": 30, "output_tokens": 12, "reasoning_tokens": 2});
    let call = json!({"name": "shell", "arguments": {"command": "true"}});
    let fail = json!([{"kind": "auth", "times": 9}]);
    let replies = json!([{"calls": [call], "usage": usage}, {"text": "Done.", "fail": fail}]);
    let ran = stage.run(&["run", "Do it", "--json", "--model", &scripted(&stage, &replies)]);
    let last = last_line(&ran.output);
    assert_eq!((&last["outcome"], &last["spent"]["total_tokens"]), (&json!("stopped"), &json!(42)), "{last}");
    assert_eq!((&last["spent"]["turns"], &last["spent"]["reasoning_tokens"]), (&json!(1), &json!(2)));
}

/// D8: without a budget nothing charges turns and calls.
#[test]
fn turns_and_calls_are_counted_with_and_without_a_budget() {
    let call = json!({"name": "shell", "arguments": {"command": "true"}});
    let replies = json!([{"calls": [call]}, {"text": "Done."}]);
    for budget in [&[][..], &["--budget", "calls=50"]] {
        let stage = Stage::new();
        let model = scripted(&stage, &replies);
        let ran = stage.run(&[&["run", "Do it", "--json", "--model", &model], budget].concat());
        let spent = last_line(&ran.output)["spent"].clone();
        assert_eq!((&spent["turns"], &spent["calls"]), (&json!(2), &json!(1)), "{budget:?}: {spent}");
    }
}

#[test]
fn a_signal_is_recorded_and_a_kill_is_not() {
    for (name, reason) in [("TERM", Some("signal")), ("KILL", None)] {
        let stage = Stage::new();
        let command = "touch ../begun; sleep 60";
        let replies = json!([{"calls": [{"name": "shell", "arguments": {"command": command}}]}]);
        let model = scripted(&stage, &replies);
        let child = stage.command(&["run", "Do it", "--model", &model]).spawn().unwrap();
        wait_until("the call", || stage.path("begun").exists());
        signal(&child, name);
        ended(child);
        let stops = records(&stage, "session_stopped");
        assert_eq!(stops.first().map(|stop| stop["reason"].clone()), reason.map(|reason| json!(reason)));
        let listed = stage.json(&["ls"]);
        let status = if name == "TERM" { "paused" } else { "interrupted" };
        assert_eq!(listed["status"], status);
        assert_eq!(listed["failure"], Value::Null);
        assert!(stage.run(&["ls"]).worked().contains(status));
    }
}
