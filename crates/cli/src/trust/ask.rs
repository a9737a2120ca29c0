//! The question on a terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use rustix::termios::{QueueSelector, tcflush};

use super::subject::{Subject, TrustState};
use crate::common::Common;
use crate::terminal::{
    self,
    style::{Role, Text},
};

/// Whether a person can be asked.
pub(super) fn is_possible(common: &Common) -> bool {
    !common.json && !common.no_input && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks whether the files are trusted. Everything but `y` and `yes` means no.
pub(super) fn about(subject: &Subject, standing: &TrustState) -> io::Result<bool> {
    let root = subject.root.to_string_lossy();
    let heading = match standing {
        TrustState::Changed(_) => "changed since you trusted it",
        TrustState::New(_) | TrustState::Trusted => "is not trusted yet",
    };
    terminal::error_line(&Text::new().add(Role::Emphasis, &*root).plain(format!(" {heading}.")));
    let marked: &[String] = match standing {
        TrustState::Changed(files) | TrustState::New(files) => files,
        TrustState::Trusted => &[],
    };
    for name in subject.files.keys() {
        let mark = match standing {
            TrustState::Changed(_) if marked.contains(name) => "  changed",
            TrustState::New(_) if marked.contains(name) => "  new",
            _ => "",
        };
        terminal::error_line(&Text::new().plain("  ").add(Role::Id, name).add(Role::Warning, mark));
    }
    for detail in &subject.details {
        terminal::error_line(&Text::new().plain("    ").add(Role::Dim, detail));
    }
    eprintln!("These files can run commands as you, and choose the address that your key is sent to.");
    is_affirmed("Trust them as they are now? [y/N] ")
}

/// Asks whether the key of the user may be sent to an address.
pub(super) fn about_address(action: &str, url: &str, question: &str) -> io::Result<bool> {
    let heading = Text::new().plain(format!("The session {action} ")).add(Role::Emphasis, url);
    terminal::error_line(&heading.plain(", and you did not choose that address."));
    is_affirmed(&format!("{question} [y/N] "))
}

/// Asks a question. Everything but `y` and `yes` means no.
fn is_affirmed(question: &str) -> io::Result<bool> {
    // What was typed before the question was shown does not answer it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    terminal::to_stderr(format_args!("{question}"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
