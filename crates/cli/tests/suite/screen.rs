//! What a person sees on a terminal: tables, colours, times and the pager.

use serde_json::json;

use crate::pty::Pty;
use crate::stage::{Stage, scripted};

/// A stage with three sessions: an answered one, one that failed, and one that waits.
fn stage() -> Stage {
    let stage = Stage::new();
    let call = json!({"name": "write_file", "arguments": {"path": "note.txt", "text": "needles: 7\n\tbuttons: 40\n"}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let mission = "Take stock of the whole shop, its shelves and its drawers, and write it 漢字 down";
    stage.run(&["run", mission, "--model", &model]).worked_quietly();
    assert_eq!(stage.run(&["run", "Fail", "--model", &model, "--max-turns", "1"]).code, Some(1));
    assert_eq!(stage.run(&["run", "Ask", "--model", &model, "--approve", "ask"]).code, Some(3));
    stage
}

/// Prints to a terminal, and returns the text on it.
fn shown(stage: &Stage, arguments: &[&str], columns: u16) -> String {
    let (code, text) = Pty::start(stage, arguments, columns, 30).finish();
    assert_eq!(code, Some(0), "{text}");
    text
}

#[test]
fn a_list_fits_its_terminal_and_shows_when() {
    let stage = stage();
    for columns in [40, 80, 100, 160] {
        let text = shown(&stage, &["ls"], columns);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "one line for each session, a header and a reason:\n{text}");
        assert!(lines[0].starts_with("session ") && lines[0].contains("status"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{text}");
        assert!(lines[1].contains("idle") && lines[4].contains("paused (approval)"), "{text}");
    }
    let wide = shown(&stage, &["ls"], 160);
    let first = wide.lines().nth(1).unwrap();
    assert!(first.contains("  now ") && first.contains("completed"), "{wide}");
    assert!(
        first.ends_with("Take stock of the whole shop, its shelves and its drawers, and write it…"),
        "{wide}"
    );
}

#[test]
fn a_time_on_a_pipe_is_rfc_3339_in_the_zone_of_the_user() {
    let stage = stage().with_variable("TZ", "IST-5:30");
    let text = stage.run(&["ls"]).worked();
    let created = text.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap();
    assert!(created.contains('T') && created.ends_with("+05:30"), "{text}");
    let at: backstitch::time::Timestamp = created.parse().unwrap();
    assert!(at > backstitch::time::Timestamp::UNIX_EPOCH);
    let wide = shown(&stage, &["ls"], 160);
    assert!(wide.contains(" +05:30  now "), "{wide}");
}

#[test]
fn colors_are_for_terminals_and_for_those_who_ask() {
    let stage = stage();
    let on_terminal = |stage: &Stage, more: &[&str]| {
        let mut pty = Pty::start(stage, &[&["ls"], more].concat(), 80, 30);
        pty.exit_code();
        pty.raw()
    };
    let has_colors = |text: &str| text.contains("\u{1b}[1msession\u{1b}[0m");
    assert!(has_colors(&on_terminal(&stage, &[])));
    assert!(!on_terminal(&stage, &["--color", "never"]).contains('\u{1b}'));
    assert!(!stage.run(&["ls"]).worked().contains('\u{1b}'));
    assert!(has_colors(&stage.run(&["ls", "--color", "always"]).worked()));
    assert!(!stage.run(&["ls", "--json", "--color", "always"]).worked().contains('\u{1b}'));
    let forced = stage.with_variable("CLICOLOR_FORCE", "1");
    assert!(has_colors(&forced.run(&["ls"]).worked()));
    let none = forced.with_variable("NO_COLOR", "1");
    assert!(!none.run(&["ls"]).worked().contains('\u{1b}'), "NO_COLOR is stronger");
    assert!(!on_terminal(&none, &[]).contains('\u{1b}'));
    assert!(has_colors(&on_terminal(&none, &["--color=always"])), "an option is stronger than a variable");
    let dumb = Stage::new().with_variable("TERM", "dumb");
    let mut pty = Pty::start(&dumb, &["ls"], 80, 30);
    assert_eq!(pty.exit_code(), Some(1));
    assert!(!pty.raw().contains('\u{1b}'), "{:?}", pty.raw());
}

#[test]
fn a_diff_has_colors_and_is_exact_on_a_pipe() {
    let stage = stage();
    let session = stage.json(&["ls", "--status", "idle"])["session"].as_str().unwrap().to_owned();
    let mut pty = Pty::start(&stage, &["diff", &session, "start"], 80, 30);
    assert_eq!(pty.exit_code(), Some(0));
    let raw = pty.raw();
    assert!(raw.contains("\u{1b}[32m+needles: 7\u{1b}[0m\n"), "{raw:?}");
    assert!(raw.contains("\u{1b}[32mA\u{1b}[0m \u{1b}[1mnote.txt\u{1b}[0m\n"), "{raw:?}");
    let piped = stage.run(&["diff", &session, "start"]).worked();
    assert!(piped.contains("A note.txt\n@@ -0,0 +1,2 @@\n+needles: 7\n+\tbuttons: 40\n"), "{piped}");
}

#[test]
fn long_output_goes_through_the_pager() {
    let stage = Stage::new().with_variable("BACKSTITCH_PAGER", "sed 's/^/paged: /'");
    let text = shown(&stage, &["explain"], 80);
    assert!(text.starts_with("paged: code"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("paged: ")), "{text}");
    assert!(shown(&stage, &["--help"], 80).contains("paged: Work:"));
    assert!(!shown(&stage, &["explain", "--no-pager"], 80).contains("paged: "));
    assert!(!shown(&stage, &["--version"], 80).contains("paged: "), "it is short");
    assert!(!stage.run(&["explain"]).worked().contains("paged: "), "a pipe has no pager");
    // A pager that is closed at once ends the command without an error.
    let closed = Stage::new().with_variable("PAGER", "true");
    assert_eq!(shown(&closed, &["explain"], 80), "\n");
    let missing = Stage::new().with_variable("PAGER", "no-such-pager -x");
    let text = shown(&missing, &["explain"], 80);
    assert!(text.contains("\"no-such-pager\" cannot be started") && text.contains("store_full"), "{text}");
}

#[test]
fn an_interrupt_is_for_the_pager() {
    // A shell runs a trap after a command, so one that interrupts it right before it reads would wait for a line.
    let pager = r#"sh -c "trap 'caught=1; echo caught' INT; cat > /dev/null; echo ready; until [ $caught ]; do sleep 0.1; done; while ! read line < /dev/tty; do :; done; echo over $line""#;
    let stage = Stage::new().with_variable("PAGER", pager);
    let mut pty = Pty::start(&stage, &["explain"], 80, 24);
    pty.wait_for("ready");
    pty.send("\u{3}");
    pty.wait_for("caught");
    pty.send("x\r");
    pty.wait_for("over");
    assert_eq!(pty.exit_code(), Some(0));
}

#[test]
fn errors_and_hints_have_colors() {
    let stage = stage();
    let mut pty = Pty::start(&stage, &["log", "ffffffff"], 80, 24);
    assert_eq!(pty.exit_code(), Some(1));
    let raw = pty.raw();
    assert!(raw.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m there is no session ffffffff\n"), "{raw:?}");
    assert!(raw.contains("hint:\u{1b}[0m "), "{raw:?}");
    assert!(raw.ends_with(
        "\u{1b}[2mcode: session_not_found; `backstitch explain session_not_found` says more\u{1b}[0m\n"
    ));
    // Errors about arguments quote what was typed.
    let mut pty = Pty::start(&stage, &["show", "--\u{1b}[2Jx"], 80, 24);
    assert_eq!(pty.exit_code(), Some(2));
    assert!(!pty.raw().contains("\u{1b}[2J"), "{:?}", pty.raw());
    let ran = stage.run(&["show", "--nope", "--json"]);
    let event: serde_json::Value = serde_json::from_str(ran.output.trim()).unwrap();
    assert_eq!((&event["event"], &event["code"]), (&json!("error"), &json!("usage")));
}

#[test]
fn a_page_is_as_wide_as_the_terminal() {
    let stage = Stage::new();
    let text = shown(&stage, &["explain", "store_full"], 40);
    assert!(text.starts_with("store_full\n") && text.contains("\nWhat to do\n"), "{text}");
    let mut pty = Pty::start(&stage, &["explain", "store_full"], 40, 60);
    pty.exit_code();
    assert!(pty.screen().lines().count() > 12, "{}", pty.screen());
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(words(&text).windows(3).any(|words| words == ["The", "disk", "is"]), "{text}");
}

#[test]
fn markdown_of_an_answer_is_rendered_where_colors_are() {
    const ANSWER: &str =
        "# Stock\n\nThere are **seven** needles, see `note.txt`.\n\n```sh\ncat **/note.txt\n```\n- 2**3 pins";
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": ANSWER}]));
    let arguments = ["run", "Count", "--model", &model];
    for columns in [40, 120] {
        let pty = Pty::start(&stage, &arguments, columns, 30);
        let (code, text) = pty.finish();
        assert_eq!(code, Some(0), "{text}");
        let answer =
            "Stock\n\nThere are seven needles, see note.txt.\n\n```sh\ncat **/note.txt\n```\n- 2**3 pins\n";
        assert!(text.replace("see\n", "see ").contains(answer), "{text}");
    }
    let plain = Stage::new().with_variable("NO_COLOR", "1");
    let model = scripted(&plain, &json!([{"text": ANSWER}]));
    let (_, text) = Pty::start(&plain, &["run", "Count", "--model", &model], 120, 30).finish();
    assert!(text.contains(ANSWER), "{text}");
    assert_eq!(stage.run(&arguments).worked_quietly(), format!("{ANSWER}\n"));
}

/// Removes the times of calls that took a second or more, which stand at the ends of lines: `  (1.1 s)`.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.rsplit_once("  (") {
        Some((before, time)) if time.strip_suffix(" s)").is_some_and(|time| time.parse::<f64>().is_ok()) => {
            before
        }
        _ => line,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn the_output_of_a_command_is_text_and_its_exit_code_stands_apart() {
    let stage = Stage::new();
    let shell = |command: &str| json!({"name": "shell", "arguments": {"command": command}});
    let replies = json!([{"calls": [shell("echo seven; echo needles; exit 3")]}, {"text": "Done."}]);
    let model = scripted(&stage, &replies);
    let (code, text) = Pty::start(&stage, &["run", "Count", "--model", &model], 80, 30).finish();
    assert_eq!(code, Some(0), "{text}");
    let text = without_times(&text);
    assert!(text.contains("  seven\n  needles\n") && text.contains("x shell: exit code 3\n"), "{text}");
    assert!(!text.contains("exit_code"), "{text}");
    let piped = stage.run(&["run", "Count", "--model", &model]);
    let errors = without_times(&piped.errors);
    assert!(errors.contains("x shell: exit code 3: seven needles\n"), "{errors}");
    let shown = stage.run(&["show"]).worked();
    assert!(shown.contains("<- exit code 3: seven needles\n"), "{shown}");
}
