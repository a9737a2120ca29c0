//! Truncated answers and deadlines: every command shows them, and none of them counts as an answer.

use serde_json::{Value, json};

use crate::stage::{Stage, last_line, scripted};

const HALF: &str = "The seam is ";

fn cut_off(stage: &Stage, more: &[&str]) -> crate::command::Ran {
    let replies = json!([{"text": HALF, "finish_reason": "length"}, {"text": "12 cm long."}]);
    let model = scripted(stage, &replies);
    let mut arguments = vec!["run", "Measure", "--model", &model];
    arguments.extend(more);
    stage.run(&arguments)
}

#[test]
fn an_answer_that_was_cut_off_is_shown_as_such_and_continued() {
    let stage = Stage::new();
    let ran = cut_off(&stage, &["--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ended = last_line(&ran.output);
    let seen = [&ended["outcome"], &ended["reason"], &ended["partial"]];
    assert_eq!(seen, [&json!("paused"), &json!("truncated"), &json!(HALF)], "{ended}");
    let session = ended["session"].as_str().unwrap();
    let shown = stage.run(&["show", session]).worked();
    assert!(shown.contains(&format!("agent: {HALF} [cut off by the token limit]")), "{shown}");
    let log = stage.run(&["log", session]).worked();
    assert!(log.contains("[cut off by the token limit]") && log.contains("paused"), "{log}");
    assert_eq!(stage.json(&["show", session])["status"]["reason"], "truncated");
    assert_eq!(stage.run(&["resume", session]).worked_quietly(), "The seam is 12 cm long.\n");
    assert_eq!(stage.run(&["resume", session]).worked_quietly(), "The seam is 12 cm long.\n");
}

#[test]
fn an_answer_that_was_cut_off_is_accepted_as_it_is() {
    let stage = Stage::new();
    let ran = cut_off(&stage, &[]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(3), ""), "half an answer is not output");
    assert!(ran.errors.contains("token limit") && ran.errors.contains("--accept"), "{}", ran.errors);
    assert!(ran.errors.contains(HALF.trim_end()), "{}", ran.errors);
    assert_eq!(stage.run(&["resume", "--accept"]).worked_quietly(), format!("{HALF}\n"));
    let refused = Stage::new();
    let model = scripted(&refused, &json!([]));
    refused.run(&["run", "Measure", "--model", &model]);
    let ran = refused.run(&["resume", "--accept"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.errors.contains("nothing to accept"), "{}", ran.errors);
}

#[test]
fn an_agent_file_decides_in_advance() {
    for (word, code, expected) in [("continue", 0, "The seam is 12 cm long.\n"), ("fail", 1, "")] {
        let stage = Stage::new();
        let agent = stage.write("agent.toml", &format!("on_truncation = {word:?}\n"));
        let ran = cut_off(&stage, &["--agent", &agent]);
        assert_eq!((ran.code, ran.output.as_str()), (Some(code), expected), "{word}: {}", ran.errors);
    }
}

#[test]
fn a_deadline_pauses_and_more_time_continues() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Late.", "delay_ms": 1500}]));
    let ran = stage.run(&["run", "Measure", "--model", &model, "--deadline", "200ms", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(last_line(&ran.output)["reason"], "deadline");
    let still: Value = last_line(&stage.run(&["resume", "--json"]).output);
    assert_eq!(still["reason"], "deadline");
    assert_eq!(stage.run(&["resume", "--deadline", "60s"]).worked_quietly(), "Late.\n");
}
