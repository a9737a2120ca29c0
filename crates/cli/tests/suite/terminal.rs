//! Text of models, tools, missions, file names and files does not control the terminal that it is printed to.

use serde_json::json;

use crate::pty::Pty;
use crate::stage::{Stage, scripted};

/// Sequences that set the title and the clipboard, clear the screen and change the direction, C1 controls,
/// backspaces and carriage returns.
const NASTY: &str = "\u{1b}]0;title\u{7}\u{1b}]52;c;eA==\u{1b}\\\u{1b}[2J\u{1b}[35m\u{9b}31m\u{90}q\u{202e}evil\u{2066}\u{200f}\u{7f}\u{8}\r\u{85}\u{b}";

/// Returns what a command prints to a terminal, on standard output and standard error.
fn on_terminal(stage: &Stage, arguments: &[&str]) -> String {
    let mut pty = Pty::start_without_input(stage, arguments, 100, 40);
    pty.exit_code();
    pty.raw()
}

/// Removes the colours that the command prints, and what erases the status line. Those of [`NASTY`] are others.
fn without_colors(printed: &str) -> String {
    let colors = ["0", "1", "2", "3", "31", "32", "33", "34", "36", "4"];
    let printed = printed.replace("\r\u{1b}[K", "");
    colors.iter().fold(printed, |text, color| text.replace(&format!("\u{1b}[{color}m"), ""))
}

#[track_caller]
fn check(what: &[&str], printed: &str) {
    let steers = |one: char| {
        one.is_control() && one != '\n' && one != '\t'
            || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let printed = without_colors(printed);
    if let Some(at) = printed.find(steers) {
        let near: String = printed[at..].chars().take(40).collect();
        panic!("{what:?} steers the terminal: {near:?}");
    }
}

#[test]
fn no_command_prints_what_steers_a_terminal() {
    let stage = Stage::new();
    let long = format!("{NASTY}{}", format!("long{NASTY} ").repeat(2_000));
    let path = "a\u{1b}[2J\u{202e}\u{9b}.txt";
    let printing = format!("printf '%s' '{NASTY}'; printf '%s' '{NASTY}' >&2; exit 3");
    let replies = json!([
        {"text": NASTY, "reasoning": NASTY, "calls": [{"name": "write_file", "arguments": {"path": path, "text": long}}]},
        {"text": long, "calls": [{"name": format!("no{NASTY}"), "arguments": {"x": NASTY}}]},
        {"calls": [{"name": "shell", "arguments": {"command": printing}}]},
        {"calls": [{"name": "shell", "arguments": {"command": printing, "rollback_on_error": true}}]},
        {"calls": [{"name": "read_file", "arguments": {"path": path}}]},
        {"calls": [{"name": "edit_file", "arguments": {"path": path, "old": NASTY, "new": NASTY}}]},
        {"text": format!("Done. {NASTY}")},
    ]);
    let model = scripted(&stage, &replies);
    let run = |arguments: &[&str]| {
        let printed = on_terminal(&stage, arguments);
        check(arguments, &printed);
        printed
    };
    let mission = format!("Do {NASTY}");
    let printed = run(&["run", &mission, "--model", &model]);
    assert!(printed.contains("Done.\n\\u001b]0;title"), "a long word has a line of its own: {printed}");
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    for json in [&[][..], &["--json"]] {
        let commands: [&[&str]; 22] = [
            &["ls"],
            &["log"],
            &["log", "--all"],
            &["show"],
            &["show", "--state", "--files"],
            &["show", "--turns"],
            &["diff", &session, "start"],
            &["diff", &session, "start", "--names"],
            &["request", &session],
            &["request", &session, "--raw"],
            &["resume"],
            &["rewind", &session, "start", "--reason", NASTY],
            &["log"],
            &["undo", &session],
            &["fork", &session],
            &["send", &session, NASTY],
            &["cancel", &session],
            &["pause", &session],
            &["verify"],
            &["gc", "--dry-run"],
            &["show", NASTY],
            &["resolve", &session, NASTY, "approve"],
        ];
        for command in commands {
            run(&[command, json].concat());
        }
    }
}

#[test]
fn a_pause_does_not_steer_a_terminal() {
    let stage = Stage::new();
    let replies = json!([
        {"text": NASTY, "calls": [{"name": "shell", "arguments": {"command": format!("echo '{NASTY}'")}}]},
        {"text": "Done."},
    ]);
    let model = scripted(&stage, &replies);
    let run = |arguments: &[&str]| {
        let printed = on_terminal(&stage, arguments);
        check(arguments, &printed);
        printed
    };
    let printed = run(&["run", "Do it", "--approve", "ask", "--model", &model]);
    assert!(printed.contains("\\u202eevil"), "{printed}");
    for arguments in [&["show"][..], &["log"], &["resume"], &["show", "--json"], &["resume", "--json"]] {
        run(arguments);
    }
}

#[test]
fn failures_of_providers_and_programs_do_not_steer_a_terminal() {
    let stage = Stage::new();
    let model = scripted(
        &stage,
        &json!([{"text": "x", "fail": [{"kind": "server", "message": NASTY, "times": 9, "retry_after_ms": 1}]}]),
    );
    let arguments = ["run", "Do it", "--model", &model];
    check(&arguments, &on_terminal(&stage, &arguments));
    let program = stage.write("program.clj", "(println \"\\u001b[2J\\u202e\") \"\\u001b[2J\\u202e\"");
    let arguments = ["lisp", "run", &program];
    check(&arguments, &on_terminal(&stage, &arguments));
    let broken = stage.write("broken.clj", &format!("(unknown-{NASTY})"));
    let arguments = ["lisp", "run", &broken];
    check(&arguments, &on_terminal(&stage, &arguments));
    let missing = format!("scripted:no{NASTY}.toml");
    let arguments = ["run", "Do it", "--model", &missing];
    check(&arguments, &on_terminal(&stage, &arguments));
}

#[test]
fn what_is_piped_is_exact() {
    let stage = Stage::new();
    let text = format!("Done. {NASTY}");
    let replies = json!([
        {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "text": format!("{NASTY}\n")}}]},
        {"text": text},
    ]);
    let model = scripted(&stage, &replies);
    assert_eq!(stage.run(&["run", "Do it", "--model", &model]).worked_quietly(), format!("{text}\n"));
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let diff = stage.run(&["diff", &session, "start"]).worked();
    // A carriage return ends a line, too.
    let (first, second) = NASTY.split_once('\r').unwrap();
    assert!(diff.contains(&format!("+{first}\r+{second}\n")), "{diff:?}");
}
