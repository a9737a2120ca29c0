//! Parses the arguments of the command, and prints help and errors about them.
//!
//! Errors about the syntax of the arguments look like all others: they end with the code `usage`, and exit with 2.
//! They quote what was typed, so they are escaped. Help that is longer than the screen goes through the pager.

use std::ffi::OsString;
use std::process::ExitCode;

use backstitch::code::ErrorCode;
use clap::error::ErrorKind;
use clap::{Parser, ValueEnum as _};

use crate::error::{print_code, print_event};
use crate::terminal::{ColorChoice, Pager, Role, Text, pager, style};
use crate::{help, terminal};

/// Parses the arguments. If there is nothing to run, the reason is printed, and its exit code is returned.
pub(crate) fn parse<P: Parser>(words: &[OsString]) -> Result<P, ExitCode> {
    // Grouping the help needs all commands with their options, which takes longer than some commands run.
    let parsed = P::command().try_get_matches_from(words);
    let parsed = parsed.or_else(|error| match error.kind() {
        ErrorKind::DisplayVersion => Err(error),
        _ => help::group(P::command()).try_get_matches_from(words),
    });
    parsed.and_then(|found| P::from_arg_matches(&found)).map_err(|error| {
        // The options that say how to print were not parsed.
        style::choose(color_of(words));
        if has(words, "--no-pager") {
            pager::refuse();
        }
        report(&error, has(words, "--json"))
    })
}

fn report(error: &clap::Error, events: bool) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _pager = Pager::new();
            terminal::own_text(&error.render());
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => terminal::own_error_text(&error.render()),
        _ => {
            let text = error.render().to_string();
            if events {
                let message = text.lines().next().unwrap_or_default();
                let message = message.strip_prefix("error: ").unwrap_or(message);
                print_event(ErrorCode::Usage, message);
            }
            text.trim_end().split('\n').for_each(|line| terminal::error_line(&colored(line)));
            print_code(ErrorCode::Usage);
        }
    }
    ExitCode::from(2)
}

/// Colours the word with which a line starts.
fn colored(line: &str) -> Text {
    let words = [("error:", Role::Failure), ("Usage:", Role::Heading), ("  tip:", Role::Accent)];
    for (word, role) in words {
        if let Some(rest) = line.strip_prefix(word) {
            return Text::new().add(role, word).plain(rest);
        }
    }
    line.into()
}

fn has(words: &[OsString], option: &str) -> bool {
    words.iter().any(|word| word == option)
}

/// The value of `--color` among arguments that could not be parsed.
fn color_of(words: &[OsString]) -> ColorChoice {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut value = None;
    while let Some(word) = words.next() {
        if word == "--color" {
            value = words.next();
        } else if let Some(given) = word.strip_prefix("--color=") {
            value = Some(given);
        }
    }
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_chosen_by_arguments_that_cannot_be_parsed() {
        let of = |line: &str| color_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("backstitch nope --color never"), ColorChoice::Never);
        assert_eq!(of("backstitch --color=always nope"), ColorChoice::Always);
        assert_eq!(of("backstitch --color"), ColorChoice::Auto);
        assert_eq!(of("backstitch --color purple"), ColorChoice::Auto);
    }
}
