//! Commands of a conversation: lines that begin with a slash.

use backstitch_lisp::did_you_mean;

/// A command of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    Rewind,
    Undo,
    Redo,
    Fork,
    Diff,
    Show,
    Log,
    Model,
    Mode,
    Name,
    Reasoning,
    Cost,
    Compact,
    Resume,
    Init,
    Status,
    Context,
    Permissions,
    Export,
    Skill,
    New,
    Clear,
    Exit,
}

/// A command, its parameters and its description.
struct SlashEntry(&'static str, Slash, &'static str, &'static str);

const ENTRIES: &[SlashEntry] = &[
    SlashEntry("/help", Slash::Help, "", "list these commands"),
    SlashEntry(
        "/rewind",
        Slash::Rewind,
        "[N | POINT]",
        "undo the last N messages and their files, or return to a point; `--only files` or `--only conversation` moves one half",
    ),
    SlashEntry("/undo", Slash::Undo, "", "undo the latest rewind"),
    SlashEntry("/redo", Slash::Redo, "", "repeat the rewind that was undone last"),
    SlashEntry("/fork", Slash::Fork, "[POINT]", "start another session from here, in its own directory"),
    SlashEntry("/diff", Slash::Diff, "[A] [B]", "show what changed since the start, or between two points"),
    SlashEntry("/show", Slash::Show, "[POINT]", "show the conversation, calls and state"),
    SlashEntry("/log", Slash::Log, "", "show the events of the session"),
    SlashEntry("/model", Slash::Model, "[NAME [EFFORT]]", "show or change the model"),
    SlashEntry("/mode", Slash::Mode, "[NAME]", "show or change what runs without a question"),
    SlashEntry("/name", Slash::Name, "[NAME]", "show the name of the conversation, or change it"),
    SlashEntry("/reasoning", Slash::Reasoning, "", "show the reasoning of the model, or no longer"),
    SlashEntry("/cost", Slash::Cost, "", "show what the session has spent"),
    SlashEntry(
        "/compact",
        Slash::Compact,
        "[FOCUS]",
        "replace earlier answers with a summary, which pays most attention to what is named",
    ),
    SlashEntry("/resume", Slash::Resume, "", "continue a turn that was interrupted or paused"),
    SlashEntry("/init", Slash::Init, "[TEXT]", "let the agent write a draft of AGENTS.md"),
    SlashEntry("/status", Slash::Status, "", "show session, model, rights, directory and spending"),
    SlashEntry("/context", Slash::Context, "", "show what fills the window of the model"),
    SlashEntry(
        "/permissions",
        Slash::Permissions,
        "",
        "show the mode and the rules, and where each comes from",
    ),
    SlashEntry("/export", Slash::Export, "[FILE]", "write the conversation as Markdown to a new file"),
    SlashEntry("/skill", Slash::Skill, "[NAME] [TEXT]", "list the skills, or send one with a message"),
    SlashEntry("/new", Slash::New, "", "start another conversation"),
    SlashEntry("/clear", Slash::Clear, "", "start another conversation; this one stays"),
    SlashEntry("/exit", Slash::Exit, "", "leave; the conversation can be continued later"),
    SlashEntry("/quit", Slash::Exit, "", "leave"),
];

/// Returns the names of all commands.
pub(super) fn names<'a>() -> impl Iterator<Item = &'a str> {
    ENTRIES.iter().map(|SlashEntry(name, ..)| *name)
}

/// Returns the text of `/help`.
pub(super) fn help() -> String {
    let mut text = String::new();
    for SlashEntry(name, _, parameters, about) in ENTRIES.iter().take(ENTRIES.len() - 1) {
        text.push_str(&format!("{:<20} {about}\n", format!("{name} {parameters}")));
    }
    text + "\n@PATH attaches a file, an image or the listing of a directory; Tab completes it. Write \\@ for a plain @.\n\
            Alt-Enter, or a backslash at the end of a line, continues the message on the next line.\n\
            Shift-Tab continues in the next mode: plan, ask, auto.\n\
            !COMMAND runs a command of yours; the next message takes its output with it.\n\
            While the agent works, a line that you type is sent to it, and Esc or Ctrl-C interrupts it.\n\
            Ctrl-O continues what was interrupted here. Ctrl-D leaves."
}

/// A line that begins with a slash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlashLine {
    Known(Slash, Vec<String>),
    /// The command of a file, or a mistake.
    Other,
}

/// Splits a line into a command and its arguments. `None` if the line is a message.
pub(super) fn parse(line: &str) -> Option<SlashLine> {
    if !line.starts_with('/') {
        return None;
    }
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let known = ENTRIES.iter().find(|SlashEntry(known, ..)| *known == name);
    Some(match known {
        Some(SlashEntry(_, command, ..)) => SlashLine::Known(*command, words.map(str::to_owned).collect()),
        None => SlashLine::Other,
    })
}

/// Says that there is no such command, and suggests one. `others` are the commands of files.
pub(super) fn unknown(name: &str, others: &[String]) -> String {
    let all = || names().chain(others.iter().map(String::as_str));
    let begun = name.to_lowercase();
    let begun = all().find(|known| begun.len() > 1 && known.starts_with(&begun));
    let suggestion = begun.map(|known| format!("did you mean `{known}`?"));
    let suggestion = suggestion.or_else(|| did_you_mean(name, all()));
    let suggestion = suggestion.unwrap_or_else(|| "/help lists the commands.".to_owned());
    let shown: String = name.chars().take(40).collect();
    format!(
        "there is no command {shown}; {suggestion} A message that begins with a slash needs a space before it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_messages() {
        assert!(parse("hello /help").is_none());
        assert!(parse(" /usr/bin is full").is_none());
        assert_eq!(
            parse("/rewind 2 turns"),
            Some(SlashLine::Known(Slash::Rewind, vec!["2".to_owned(), "turns".to_owned()]))
        );
        assert_eq!(parse("/quit"), Some(SlashLine::Known(Slash::Exit, Vec::new())));
        assert_eq!(parse("/mend it"), Some(SlashLine::Other));
    }

    #[test]
    fn unknown_commands_get_a_suggestion() {
        let suggested = |name: &str| unknown(name, &["/mend".to_owned()]);
        assert!(suggested("/mned").contains("did you mean `/mend`"));
        assert!(suggested("/rewnid").contains("did you mean `/rewind`?"));
        assert!(suggested("/HLEP").contains("did you mean `/help`?"));
        assert!(suggested("/dif").contains("did you mean `/diff`?"));
        assert!(suggested("/usr/bin").contains("/help lists"));
        assert!(suggested("/").contains("/help lists"));
        assert!(suggested(&format!("/{}", "x".repeat(10_000))).len() < 200);
    }
}
