//! Instructions of a new session whose agent has none of its own.
//!
//! They are a short default text about coding work, which names only tools that the agent is offered; the date,
//! the directory and the platform; and the instructions that the user and the project keep in `AGENTS.md` and
//! `CLAUDE.md`. They are composed once, when the session is started, and recorded as the `system` text of its
//! definition. Every later request has the same text, also on another day.
//!
//! Files of a project are read as text for the model, so they need no trust. They cannot name files elsewhere.

mod documents;
mod guidance;

use std::path::Path;

use jiff::Zoned;

use crate::project;

/// The text of a new session's system message, and what a person should know about it.
pub(crate) struct Instructions {
    pub(crate) text: String,
    /// One line for each file that is part of the text, or was left out.
    pub(crate) notes: Vec<String>,
}

/// Composes the instructions for work in a directory with these tools. `own` is the directory of the user's
/// configuration.
pub(crate) fn compose(directory: Option<&Path>, tools: &[String], own: Option<&Path>) -> Instructions {
    let mut text = guidance::of(tools);
    text.push_str(&environment(directory, &Zoned::now()));
    let mut found = documents::Documents::default();
    if let Some(own) = own {
        found.add_directory(own, own);
    }
    if let Some(directory) = directory {
        let root = project::root(directory);
        let between: Vec<_> = directory.ancestors().take_while(|above| above.starts_with(&root)).collect();
        for above in between.into_iter().rev() {
            found.add_directory(above, &root);
        }
    }
    text.push_str(&found.rendered());
    Instructions { text, notes: found.notes }
}

/// Describes when and where the session was started.
fn environment(directory: Option<&Path>, now: &Zoned) -> String {
    let mut text = format!("\n# Surroundings\n\n- Date: {}\n", now.strftime("%Y-%m-%d (%A)"));
    if let Some(directory) = directory {
        let kind = if project::is_repository(directory) { ", in a git repository" } else { "" };
        text.push_str(&format!("- Working directory: {}{kind}\n", documents::in_a_line(directory)));
    }
    text.push_str(&format!("- Platform: {} {}\n", std::env::consts::OS, std::env::consts::ARCH));
    text
}
