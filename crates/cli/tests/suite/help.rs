//! Help texts, the version, and errors about wrong usage.

use crate::command::backstitch;

const COMMANDS: &[&str] = &[
    "lisp",
    "quickstart",
    "run",
    "resume",
    "ask",
    "ls",
    "log",
    "show",
    "request",
    "stats",
    "query",
    "blame",
    "diff",
    "cat",
    "restore",
    "rewind",
    "undo",
    "redo",
    "fork",
    "guard",
    "inbox",
    "name",
    "tag",
    "resolve",
    "approve",
    "deny",
    "send",
    "compact",
    "cancel",
    "pause",
    "enqueue",
    "worker",
    "queue",
    "schedule",
    "signal",
    "verify",
    "salvage",
    "backup",
    "export",
    "import",
    "copy",
    "size",
    "gc",
    "redact",
    "rm",
    "apply",
    "config",
    "commands",
    "init",
    "doctor",
    "models",
    "trust",
    "explain",
    "completions",
    "man",
];

const LISP_COMMANDS: [&str; 3] = ["run", "repl", "eval"];

#[test]
fn help_names_every_command() {
    let output = backstitch(&["--help"]).worked();
    for command in COMMANDS {
        assert!(output.contains(&format!("\n  {command} ")), "{command}: {output}");
    }
    let output = backstitch(&["lisp", "--help"]).worked();
    for command in LISP_COMMANDS {
        assert!(output.contains(&format!("\n  {command} ")), "{output}");
    }
}

/// `docs/library.md` has a section for each group of these commands, and a row for each command.
#[test]
fn operations_have_every_command_about_sessions_and_stores() {
    let page = include_str!("../../../../docs/library.md");
    let help = backstitch(&["--help"]).worked();
    let (mut section, mut found) = (None, 0);
    for line in help.lines() {
        if let Some(group) = line.strip_suffix(':') {
            let is_about = ["Work", "Look", "Go back", "Steer", "Store"].contains(&group);
            let after = is_about.then(|| page.split_once(&format!("\n## {group}\n")));
            section = after.map(|after| after.unwrap_or_else(|| panic!("there is no section {group}")).1);
            section = section.map(|rest| rest.split_once("\n## ").map_or(rest, |(section, _)| section));
        }
        let command = line.strip_prefix("  ").and_then(|line| line.split(' ').next());
        let (Some(section), Some(command)) = (section, command) else { continue };
        // Both are made of the others.
        if ["quickstart", "chat"].contains(&command) {
            continue;
        }
        let is_there =
            [format!("`{command}`"), format!("`{command} ")].iter().any(|text| section.contains(text));
        assert!(is_there, "docs/library.md has no row for `{command}`");
        found += 1;
    }
    assert!(found > 25, "there are more commands than {found}");
}

#[test]
fn help_of_every_command_has_an_example() {
    for command in COMMANDS {
        let output = backstitch(&[command, "--help"]).worked();
        assert!(output.contains(&format!("\n  backstitch {command}")), "{command}: {output}");
    }
    for command in LISP_COMMANDS {
        let output = backstitch(&["lisp", command, "--help"]).worked();
        let example = output.split_once("Example:\n").map(|(_, example)| example);
        let is_of_command = example.is_some_and(|example| example.contains(&format!("lisp {command}")));
        assert!(is_of_command, "{command}: {output}");
    }
}

#[test]
fn help_of_each_command_names_its_options() {
    let cases: &[(&str, &[&str])] = &[
        ("run", &["<FILE>", "--data <NAME=FILE.json>", "--fuel <FUEL>", "--json"]),
        ("repl", &["--data <NAME=FILE.json>", "--fuel <FUEL>"]),
        ("eval", &["--jsonl", "turn_history", "signal"]),
    ];
    for (command, mentioned) in cases {
        let output = backstitch(&["lisp", command, "--help"]).worked();
        for words in *mentioned {
            assert!(output.contains(words), "{command} does not mention {words}:\n{output}");
        }
    }
}

#[test]
fn help_of_run_names_the_options_of_an_agent() {
    let output = backstitch(&["run", "--help"]).worked();
    for words in [
        "--model <PROVIDER:MODEL>",
        "--base-url <URL>",
        "--agent <FILE>",
        "--system <TEXT>",
        "--tools <NAMES>",
        "--approve <WHICH>",
        "--max-turns <N>",
        "--budget <LIMITS>",
        "--answers <FORM>",
        "--data <NAME=FILE.json>",
        "--signature <TEXT>",
        "--compression <NAME|off>",
    ] {
        assert!(output.contains(words), "{words}: {output}");
    }
}

#[test]
fn the_version_is_known() {
    let first = format!("backstitch {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(backstitch(&["-V"]).worked(), first);
    let output = backstitch(&["--version"]).worked();
    let rest = output.strip_prefix(&first).expect("the version comes first");
    let names: Vec<_> = rest.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(names, ["commit", "features", "target"], "{output}");
    assert!(rest.contains("features: acp, bridge, "), "{output}");
}

#[test]
fn wrong_calls_exit_with_2() {
    let wrong: &[&[&str]] = &[
        &[],
        &["nope"],
        &["lisp"],
        &["lisp", "nope"],
        &["lisp", "run"],
        &["lisp", "eval"],
        &["lisp", "run", "-", "--nope"],
        &["lisp", "run", "-", "--fuel", "much"],
    ];
    for arguments in wrong {
        let ran = backstitch(arguments);
        assert_eq!((ran.code, ran.output.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.errors.contains("--help"), "{arguments:?}: {}", ran.errors);
    }
}

#[test]
fn a_command_nearly_right_is_suggested() {
    let ran = backstitch(&["lsip"]);
    assert!(ran.errors.contains("lisp"), "{}", ran.errors);
}
