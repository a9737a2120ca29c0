//! `query` and `stats`.

use serde_json::{Value, json};

use crate::pty::Pty;
use crate::stage::{Stage, scripted};

fn worked(stage: &Stage) {
    let shell = |command: &str| json!({"calls": [{"name": "shell", "arguments": {"command": command, "rollback_on_error": true}}]});
    let model =
        scripted(stage, &json!([shell("echo a"), shell("exit 3"), {"text": "Say \"hi\", twice\u{1b}[2J."}]));
    stage.run(&["run", "Sew, \"neatly\"", "--model", &model]).worked_quietly();
}

#[test]
fn rows_are_printed_as_a_table_as_csv_and_as_json() {
    let stage = Stage::new();
    worked(&stage);
    let sql = "SELECT tool, status, attempts FROM calls ORDER BY status DESC";
    let table = stage.run(&["query", sql]).worked();
    assert_eq!(table, "tool   status  attempts\nshell  ok             1\nshell  failed         1\n");
    assert_eq!(
        stage.run(&["query", sql, "--csv"]).worked(),
        "tool,status,attempts\r\nshell,ok,1\r\nshell,failed,1\r\n"
    );
    let rows = stage.run(&["query", sql, "--json"]).worked();
    let first: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!(first, json!({"v": 1, "row": {"tool": "shell", "status": "ok", "attempts": 1}}));
    let mission = stage.run(&["query", "SELECT mission, NULL FROM sessions", "--csv"]).worked();
    assert_eq!(mission, "mission,NULL\r\n\"Sew, \"\"neatly\"\"\",\r\n");
    assert_eq!(stage.run(&["query", "SELECT 1 WHERE 0"]).worked(), "no rows\n");
    assert_eq!(stage.run(&["query", "SELECT 1 AS a WHERE 0", "--csv"]).worked(), "a\r\n");
    assert_eq!(stage.run(&["query", "SELECT 1 WHERE 0", "--json"]).worked(), "");
    let cut = stage.run(&["query", "SELECT * FROM records", "--limit", "2"]);
    assert_eq!((cut.code, cut.output.lines().count()), (Some(0), 3), "{cut:?}");
    assert!(cut.errors.contains("only the first 2 rows"), "{}", cut.errors);
}

#[test]
fn every_view_can_be_queried_in_an_empty_store_too() {
    let stage = Stage::new();
    assert!(stage.run(&["query", "SELECT 1"]).failed().contains("store_not_found"));
    std::fs::create_dir(stage.path("store")).unwrap();
    std::fs::write(stage.path("store/store.db"), "").unwrap();
    for view in ["sessions", "records", "messages", "calls", "changes", "requests", "spending"] {
        assert_eq!(stage.run(&["query", &format!("SELECT * FROM {view}")]).worked(), "no rows\n", "{view}");
    }
    let stats = stage.json(&["stats"]);
    assert_eq!((&stats["sessions"], &stats["total"]["requests"]), (&json!(0), &json!(0)));
    assert!(stage.run(&["stats"]).worked().contains("0 sessions"));
}

#[test]
fn hostile_statements_are_refused_or_stopped() {
    let stage = Stage::new();
    worked(&stage);
    for sql in [
        "DELETE FROM main.records",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA journal_mode = DELETE",
        "SELEC",
        " ",
        "SELECT 1; SELECT 2",
    ] {
        let ran = stage.run(&["query", sql]);
        assert_eq!((ran.code, ran.output.as_str()), (Some(2), ""), "{sql}: {ran:?}");
    }
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let errors = stage.run(&["query", endless, "--seconds", "1"]).failed();
    assert!(errors.contains("stopped after 1 seconds") && errors.contains("query_stopped"), "{errors}");
    for wrong in
        [&["query"][..], &["query", "SELECT 1", "--csv", "--json"], &["query", "SELECT 1", "--seconds", "0"]]
    {
        assert_eq!(stage.run(wrong).code, Some(2), "{wrong:?}");
    }
    let (code, screen) =
        Pty::start(&stage, &["query", "SELECT text FROM messages WHERE role = 'assistant'"], 40, 20).finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\\u001b"), "{screen}");
    stage.run(&["verify"]).worked_quietly();
}

#[test]
fn a_statement_is_read_from_standard_input() {
    use std::io::Write as _;
    let stage = Stage::new();
    worked(&stage);
    let mut command = stage.command(&["query", "-", "--csv"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT count(*) AS n\nFROM calls\n").unwrap();
    let ran = crate::stage::ended(child);
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "n\r\n2\r\n"), "{ran:?}");
}

#[test]
fn usage_is_summed_up() {
    let stage = Stage::new();
    worked(&stage);
    let stats = stage.json(&["stats"]);
    assert_eq!(
        (&stats["sessions"], &stats["total"]["requests"], &stats["total"]["calls"]),
        (&json!(1), &json!(3), &json!(2))
    );
    assert_eq!(stats["total"]["failed_calls"], 1);
    assert_eq!(stats["days"].as_array().unwrap().len(), 1);
    assert_eq!((&stats["tools"][0]["tool"], &stats["tools"][0]["calls"]), (&json!("shell"), &json!(2)));
    assert!(stats["models"][0]["model"].as_str().unwrap().starts_with("scripted:"), "{stats}");
    assert_eq!(stats["agents"].as_array().unwrap().len(), 1);
    let tools = stage.json(&["stats", "--by", "tool"]);
    assert!(tools["days"].is_null() && tools["tools"].is_array(), "{tools}");
    assert_eq!(stage.json(&["stats", "--since", "2999-01-01T00:00:00Z"])["total"]["requests"], 0);
    let text = stage.run(&["stats"]).worked();
    for part in ["1 session, 3 requests, 2 calls", "DAY", "MODEL", "TOOL", "AGENT", "shell"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert!(stage.run(&["stats", "--since", "x"]).called_wrongly().contains("is not a time"));
    stage.run(&["stats", "--by", "moon"]).called_wrongly();
    assert!(Stage::new().run(&["stats"]).failed().contains("store_not_found"));
    let (code, screen) = Pty::start(&stage, &["stats"], 40, 60).finish();
    assert_eq!(code, Some(0), "{screen}");
}

/// `--all` adds up the stores of all projects.
#[test]
fn usage_of_all_projects_is_summed_up() {
    let home = tempfile::tempdir().unwrap();
    let stage = Stage::new().with_variable("XDG_STATE_HOME", home.path().to_str().unwrap());
    assert_eq!(stage.json(&["stats", "--all"])["sessions"], 0);
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    for project in ["first", "second"] {
        let directory = stage.path(project);
        std::fs::create_dir(&directory).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"));
        command.current_dir(&directory).env("XDG_STATE_HOME", home.path()).env_remove("BACKSTITCH_STORE");
        let done = command.args(["run", "Sew", "--model", &model]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let stats = stage.json(&["stats", "--all"]);
    assert_eq!((&stats["sessions"], &stats["total"]["requests"]), (&json!(2), &json!(2)), "{stats}");
}

#[test]
fn a_single_step_that_does_not_end_is_left_behind() {
    let stage = Stage::new();
    worked(&stage);
    // SQLite looks at no clock while it searches a text, and this takes longer than anyone waits.
    let endless = "SELECT instr(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || '1')";
    for form in [&[][..], &["--json"], &["--csv"]] {
        let ran = stage.run(&[&["query", endless, "--seconds", "1"], form].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.output);
        assert!(ran.errors.contains("stopped after 1 seconds"), "{}", ran.errors);
        assert!(ran.errors.contains("code: query_stopped"), "{}", ran.errors);
    }
}
