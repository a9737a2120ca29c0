//! The question on a terminal.

use std::io;

use super::subject::{Subject, TrustState};
use crate::terminal::{self, Role, Text};

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
    terminal::confirm("Trust them as they are now? [y/N] ")
}

/// Asks whether the key of the user may be sent to an address.
pub(super) fn about_address(action: &str, url: &str, question: &str) -> io::Result<bool> {
    let heading = Text::new().plain(format!("The session {action} ")).add(Role::Emphasis, url);
    terminal::error_line(&heading.plain(", and you did not choose that address."));
    terminal::confirm(&format!("{question} [y/N] "))
}
