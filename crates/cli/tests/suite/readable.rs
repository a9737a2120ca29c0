//! What is readable on a terminal: broken lines, Markdown, diffs, the status line, plans and reasoning.

use serde_json::{Value, json};

use crate::chat::{enter, leave, say};
use crate::pty::Pty;
use crate::stage::{Stage, scripted, wait_until};

const WIDTHS: [u16; 3] = [40, 80, 200];

const ADDRESS: &str =
    "https://example.org/patterns/of/coats/with/very/long/names/that/no/terminal/has/room/for/in/one/line";

/// Runs a command on a terminal without input, and returns its exit code, what is shown, and all bytes.
fn shown(stage: &Stage, arguments: &[&str], columns: u16) -> (Option<i32>, String, String) {
    let mut pty = Pty::start_without_input(stage, arguments, columns, 60);
    let code = pty.exit_code();
    (code, pty.everything(), pty.raw())
}

/// Removes colours and the status line.
fn plain(raw: &str) -> String {
    let mut text = String::new();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        let end = after.find(|one: char| one.is_ascii_alphabetic()).map_or(after.len(), |end| end + 1);
        if text.ends_with('\r') && &after[..end] == "[K" {
            text.truncate(text.rfind('\n').map_or(0, |at| at + 1));
        }
        rest = &after[end..];
    }
    (text + rest).replace('\r', "")
}

/// Checks that the terminal had to wrap nothing but long words, and what begins with two spaces.
#[track_caller]
fn check_lines(raw: &str, columns: u16) {
    for line in plain(raw).lines() {
        let is_long = line.chars().count() > columns.into();
        let is_word = !line.trim_start_matches(['-', '│', '>', ' ']).contains(' ');
        let is_command = ["`", "  ", "Usage: "].iter().any(|start| line.starts_with(start));
        assert!(!is_long || is_word || is_command, "{columns} columns: {line:?}");
    }
}

fn answer() -> String {
    let prose = "The sleeve was cut on the **bias**, so it hangs softly, and the *hem* follows it; `measure it twice` before you sew. ";
    format!(
        "# Coat\n\n{}\n\n1. {prose}\n2. See {ADDRESS} for more.\n   - {prose}\n\n> {prose}\n\n| part | length | note |\n|---|--:|---|\n\
         | hem | 12 | {prose} |\n| sleeve | 60 | cut on the bias |\n\n```rust\nfn sew(hem: &str) -> usize {{ hem.len() }} // a comment that is longer than forty columns\n```\n\nDone.",
        prose.repeat(3)
    )
}

#[test]
fn an_answer_is_laid_out_for_its_terminal() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": answer()}]));
    for columns in WIDTHS {
        let (code, text, raw) = shown(&stage, &["run", "Describe it", "--model", &model], columns);
        assert_eq!(code, Some(0), "{text}");
        let code_line =
            "fn sew(hem: &str) -> usize { hem.len() } // a comment that is longer than forty columns";
        check_lines(&raw.replace("fn", "  fn"), columns);
        assert!(text.contains(code_line) && text.contains(ADDRESS), "{text}");
        assert!(text.contains("Coat\n\nThe sleeve") && text.contains("1. The sleeve"), "{text}");
        assert!(!text.contains("**") && text.contains("\n│ "), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let prose = "The sleeve was cut on the bias, so it hangs softly, and the hem follows it; measure it twice before you sew.";
        assert!(flat.matches(prose).count() >= 4, "{text}");
        if columns == 200 {
            assert!(text.contains("part    length  note\n──────  ──────  ──"), "{text}");
            assert!(text.contains("\nsleeve      60  cut on the bias\n"), "{text}");
        }
        assert!(raw.contains("\u{1b}[1mbias\u{1b}[0m") && raw.contains("\u{1b}[34mfn\u{1b}[0m"), "{raw}");
    }
    assert_eq!(
        stage.run(&["run", "Describe it", "--model", &model]).worked_quietly(),
        format!("{}\n", answer())
    );
}

#[test]
fn a_recorded_answer_is_laid_out_too() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "- one\n- **two** and then some more words\n"}]));
    stage.run(&["run", "List it", "--model", &model]).worked_quietly();
    let (_, text, _) = shown(&stage, &["resume"], 24);
    assert!(text.contains("- one\n- two and then some more\n  words\n"), "{text}");
}

#[test]
fn errors_hints_and_help_are_broken_between_words() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    let commands: [&[&str]; 8] = [
        &["log", "ffffffff"],
        &["show", "--nope"],
        &["run", "Sew", "--model", "nonsense"],
        &["--help"],
        &["run", "--help"],
        &["doctor"],
        &["explain", "store_full"],
        &["show"],
    ];
    for columns in [40, 80] {
        for command in commands {
            let (_, _, raw) = shown(&stage, command, columns);
            check_lines(&raw, columns);
        }
    }
    let (_, text, _) = shown(&stage, &["--help"], 40);
    let is_hanging = |line: &str| line.starts_with("          ") && line.trim() == "in a session";
    assert!(text.lines().any(is_hanging), "{text}");
}

#[test]
fn an_edit_is_shown_as_a_diff() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/hem.txt"), "one\ntwo\nthree\n").unwrap();
    let long: String = (0..60).map(|number| format!("line {number}\n")).collect();
    let wide = "a line that is much wider than a narrow terminal of forty columns\n";
    let replies = json!([
        {"calls": [{"name": "edit_file", "arguments": {"path": "hem.txt", "old": "two", "new": "2"}}]},
        {"calls": [{"name": "write_file", "arguments": {"path": "long.txt", "text": long}}]},
        {"calls": [{"name": "write_file", "arguments": {"path": "wide.txt", "text": wide}}]},
        {"calls": [{"name": "shell", "arguments": {"command": "echo x > made.txt; echo y >> hem.txt"}}]},
        {"text": "Done."},
    ]);
    let model = scripted(&stage, &replies);
    let (code, text, raw) = shown(&stage, &["run", "Edit", "--model", &model], 40);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("  M hem.txt: +1 -1\n     one\n    -two\n    +2\n     three\n"), "{text}");
    assert!(raw.contains("\u{1b}[31m-two") || raw.contains("\u{1b}[31m-\u{1b}[0m\u{1b}[31mtwo"), "{raw}");
    assert!(text.contains("  A long.txt: +60 -0\n    +line 0\n"), "{text}");
    assert!(text.contains("… 37 more lines: backstitch show"), "{text}");
    assert!(
        text.contains("    +a line that is much wider than a\n     narrow terminal of forty columns\n"),
        "{text}"
    );
    assert!(text.contains("  changed hem.txt, made.txt\n"), "{text}");
    let piped = stage.run(&["run", "Edit", "--model", &model]);
    assert!(!piped.errors.contains("long.txt: +60"), "{}", piped.errors);
    let (_, text, raw) = shown(&stage, &["run", "Edit", "--model", &model, "--plain"], 80);
    assert!(text.contains("done edit_file") || text.contains("failed edit_file"), "{text}");
    assert!(!raw.contains("\r\u{1b}[K") && !text.contains('│'), "{raw}");
}

/// A stage whose model answers after a while.
fn slow(stage: &Stage) -> String {
    scripted(stage, &json!([{"text": "Done.", "delay_ms": 3000}]))
}

#[test]
fn a_status_line_says_what_the_session_waits_for_and_leaves_no_trace() {
    let stage = Stage::new();
    let model = slow(&stage);
    let mut pty = Pty::start(&stage, &["run", "Wait", "--model", &model], 60, 20);
    pty.wait_for_screen("waiting for the model (");
    assert_eq!(pty.exit_code(), Some(0));
    let text = pty.everything();
    assert!(!text.contains("waiting for the model") && text.contains("\nDone.\n"), "{text}");

    let call = json!({"name": "shell", "arguments": {"command": "sleep 3"}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let mut pty = Pty::start(&stage, &["run", "Wait", "--model", &model], 40, 20);
    pty.wait_for_screen("waiting for shell (");
    assert_eq!(pty.exit_code(), Some(0));
    assert!(!pty.everything().contains("waiting for"), "{}", pty.everything());
}

#[test]
fn a_status_line_is_only_where_it_can_be_erased() {
    for (variable, arguments) in
        [(("TERM", "dumb"), &[][..]), (("LANG", "C"), &["--plain"]), (("LANG", "C"), &["--quiet"])]
    {
        let stage = Stage::new().with_variable(variable.0, variable.1);
        let model = slow(&stage);
        let (_, _, raw) = shown(&stage, &[&["run", "Wait", "--model", &model], arguments].concat(), 60);
        assert!(!raw.contains("\u{1b}[K") && !raw.contains("waiting for the model"), "{raw}");
    }
    let stage = Stage::new().with_variable("NO_COLOR", "1");
    let model = slow(&stage);
    let mut pty = Pty::start(&stage, &["run", "Wait", "--model", &model], 60, 20);
    pty.wait_for_screen("waiting for the model (");
    assert_eq!(pty.exit_code(), Some(0));
    assert!(!pty.raw().replace("\r\u{1b}[K", "").contains('\u{1b}'), "{}", pty.raw());
    let piped = stage.run(&["run", "Wait", "--model", &model]);
    assert!(!piped.errors.contains("\u{1b}") && !piped.errors.contains("waiting"), "{}", piped.errors);
}

#[test]
fn a_resumed_call_is_what_the_session_waits_for() {
    let stage = Stage::new();
    let call = json!({"name": "shell", "arguments": {"command": "touch ../begun; sleep 4"}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let arguments = ["run", "Wait", "--model", &model, "--shell-effect", "workspace"];
    let mut pty = Pty::start(&stage, &arguments, 60, 20);
    wait_until("the command", || stage.path("begun").exists());
    pty.kill();
    let mut pty = Pty::start(&stage, &["resume"], 60, 20);
    pty.wait_for_screen("waiting for shell (");
    assert_eq!(pty.exit_code(), Some(0), "{}", pty.everything());
}

#[test]
fn calls_of_sub_agents_have_the_name_of_their_agent() {
    let stage = Stage::new();
    let call = |name: &str, arguments: Value| json!([{"name": name, "arguments": arguments}]);
    let child =
        json!({"reply": [{"call": call("list_files", json!({"path": "."}))}, {"text": "It is hemmed."}]});
    let child = stage.write("child.json", &child.to_string());
    stage.write(
        "child.toml",
        &format!("model = \"scripted:{child}\"\nsystem = \"You hem.\"\ntools = [\"list_files\"]\n"),
    );
    let parent =
        json!({"reply": [{"call": call("tailor", json!({"mission": "Hem it"}))}, {"text": "Done."}]});
    let parent = stage.write("parent.json", &parent.to_string());
    let agent = format!(
        "model = \"scripted:{parent}\"\nsystem = \"You mend.\"\n[[sub_agent]]\nname = \"tailor\"\ndescription = \"Hems.\"\nfile = \"child.toml\"\n"
    );
    let agent = stage.write("agent.toml", &agent);
    let (code, text, _) = shown(&stage, &["run", "Mend", "--agent", &agent], 80);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("+ tailor · list_files: "), "{text}");
    assert!(text.contains("tailor:\nIt is hemmed.\n"), "{text}");
}

#[test]
fn a_plan_is_a_list() {
    let stage = Stage::new();
    let steps = ["Find the tear", "Sew it with a stitch that is strong enough for a whole winter", "Iron it"];
    let replies = json!({"reply": [
        {"calls": [{"name": "setup_plan", "arguments": {"objective": "Mend the coat", "steps": steps}}]},
        {"calls": [{"name": "update_plan_step", "arguments": {"step": 1, "status": "done"}}]},
        {"calls": [{"name": "update_plan_step", "arguments": {"step": 2, "status": "in_progress"}}]},
        {"text": "Done."},
    ]});
    let script = stage.write("script.json", &replies.to_string());
    let agent = format!(
        "model = \"scripted:{script}\"\nsystem = \"You mend.\"\ntools = [\"setup_plan\", \"update_plan_step\"]\n"
    );
    let agent = stage.write("agent.toml", &agent);
    let (code, text, _) = shown(&stage, &["run", "Mend", "--agent", &agent], 50);
    assert_eq!(code, Some(0), "{text}");
    let plan = "  Mend the coat\n  [x] 1. Find the tear\n  [>] 2. Sew it with a stitch that is strong\n         enough for a whole winter\n  [ ] 3. Iron it\n";
    assert!(text.contains(plan), "{text}");
    assert!(text.contains("+ update_plan_step: 1 of 3 steps done: "), "{text}");
}

#[test]
fn reasoning_is_shown_to_those_who_ask() {
    let stage = crate::chat::stage();
    let replies = json!([
        {"text": "Seven.", "reasoning": "The box holds seven."},
        {"text": "Eight.", "reasoning": "One was bent."},
        {"text": "Nine.", "reasoning": "One more was found."},
    ]);
    let model = scripted(&stage, &replies);
    let terminal = Pty::start(&stage, &["chat", "--model", &model], 80, 30);
    say(&terminal, "Count", "Seven.", 1);
    enter(&terminal, "/reasoning", "reasoning is shown");
    say(&terminal, "Again", "Eight.", 2);
    let text = terminal.everything();
    assert!(!text.contains("The box holds seven.") && text.contains("One was bent.\nEight.\n"), "{text}");
    leave(terminal);
    let (_, text, _) = shown(&stage, &["run", "Count", "--model", &model, "--reasoning"], 80);
    assert!(text.contains("The box holds seven.\nSeven.\n"), "{text}");
    let piped = stage.run(&["run", "Count", "--model", &model, "--reasoning"]);
    assert!(!piped.errors.contains("box"), "{}", piped.errors);
}
