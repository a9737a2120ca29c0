//! The help of the command: its commands in groups, by what people want to do. On a terminal, its lines are broken between words.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use clap::Command;

use crate::terminal;

/// The commands, in the order and under the headings of the help.
const GROUPS: &[(&str, &[&str])] = &[
    ("Work", &["quickstart", "chat", "run", "resume", "ask"]),
    ("Look", &["ls", "log", "show", "diff", "blame", "cat", "request", "stats", "query"]),
    ("Go back", &["rewind", "undo", "redo", "restore", "fork", "apply"]),
    ("Steer", &["inbox", "approve", "deny", "resolve", "send", "compact", "pause", "cancel", "name", "tag"]),
    ("Workers", &["enqueue", "worker", "queue", "schedule", "signal"]),
    ("Store", &["export", "import", "copy", "backup", "verify", "salvage", "size", "gc", "redact", "rm"]),
    ("Other programs", &["serve", "ui", "guard", "acp", "mcp", "lisp"]),
    (
        "Set up",
        &["init", "config", "models", "trust", "commands", "doctor", "completions", "man", "explain", "help"],
    ),
];

/// Lists the commands of a program in groups. A command without a group is listed in the last one.
pub(crate) fn group(mut command: Command) -> Command {
    let columns = std::io::stdout().is_terminal().then(terminal::columns);
    // 0 breaks no line.
    command = command.term_width(columns.unwrap_or_default());
    command.build();
    let shown = |name: &str| command.find_subcommand(name).filter(|found| !found.is_hide_set());
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = command.get_subcommands().map(Command::get_name).filter(|name| !is_grouped(name));
    let others: Vec<&str> = others.collect();
    let names = command.get_subcommands().filter(|found| !found.is_hide_set()).map(Command::get_name);
    let width = names.map(str::len).max().unwrap_or_default();
    let (heading, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = String::new();
    for (place, (title, names)) in GROUPS.iter().enumerate() {
        let rest = if place + 1 == GROUPS.len() { others.as_slice() } else { &[] };
        let found: Vec<&Command> = names.iter().chain(rest).filter_map(|name| shown(name)).collect();
        if found.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{heading}{title}:{heading:#}");
        for found in found {
            let (name, about) = (found.get_name(), found.get_about().map(ToString::to_string));
            let about = about.unwrap_or_default();
            let mut lines = match columns {
                Some(columns) => terminal::wrapped(&about, columns.saturating_sub(width + 4)),
                None => vec![about],
            }
            .into_iter();
            let first = lines.next().unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<width$}{literal:#}  {first}");
            lines.for_each(|line| {
                let _ = writeln!(text, "{:indent$}{line}", "", indent = width + 4);
            });
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_has_a_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = crate::Arguments::command();
        for found in command.get_subcommands().map(Command::get_name) {
            assert_eq!(grouped.iter().filter(|name| **name == found).count(), 1, "{found}");
        }
    }
}
