//! Instructions in files: `AGENTS.md` and `CLAUDE.md`.
//!
//! The files of a project may come from anyone. Their sizes are limited, and a link to a file outside of the
//! project is not followed: its content would be sent to the provider of the model.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Names of files with instructions, in the order in which they are read.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Maximum size of the text of a file, in bytes. More is left out.
const LONGEST: usize = 32 * 1024;

/// Maximum size of the text of all files, in bytes. Those farthest from the work are left out first.
const LONGEST_OF_ALL: usize = 96 * 1024;

/// Files with instructions, the nearest to the work last.
#[derive(Default)]
pub(super) struct Documents {
    found: Vec<Document>,
    /// What a person should know, a line for each file.
    pub(super) notes: Vec<String>,
}

struct Document {
    path: PathBuf,
    text: String,
    is_cut: bool,
}

impl Documents {
    /// Adds the files of a directory. Links that lead out of `root` are left out.
    pub(super) fn add_directory(&mut self, directory: &Path, root: &Path) {
        for name in NAMES {
            self.add(&directory.join(name), root);
        }
    }

    fn add(&mut self, path: &Path, root: &Path) {
        let Ok(target) = path.canonicalize() else { return };
        let is_inside = root.canonicalize().is_ok_and(|root| target.starts_with(root));
        if !is_inside {
            self.notes.push(format!("{} is not read: it leads out of the project", in_a_line(path)));
            return;
        }
        let Some((text, is_cut)) = beginning(&target) else {
            self.notes.push(format!("{} is not read: it is not a text file", in_a_line(path)));
            return;
        };
        // CLAUDE.md is often a copy of AGENTS.md, or a link to it.
        if text.trim().is_empty() || self.found.iter().any(|other| other.text == text) {
            return;
        }
        let end = if is_cut { ", up to the limit of 32 KiB" } else { "" };
        self.notes.push(format!("instructions: {}{end}", in_a_line(path)));
        self.found.push(Document { path: path.to_owned(), text, is_cut });
        while self.found.iter().map(|document| document.text.len()).sum::<usize>() > LONGEST_OF_ALL {
            let farthest = self.found.remove(0);
            let path = in_a_line(&farthest.path);
            self.notes.push(format!("{path} is left out: the instructions are longer than 96 KiB"));
        }
    }

    /// Renders the files as a part of the system message.
    pub(super) fn rendered(&self) -> String {
        if self.found.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n# Instructions in files\n\n\
             Follow these instructions of the user and of the project. Where two contradict each other, the later one, \
             which is nearer to the working directory, applies; a request of the user comes before all of them.\n",
        );
        for document in &self.found {
            let path = in_a_line(&document.path);
            // The text of a file cannot end its own quotation.
            let quoted = document.text.trim_end().replace("</instructions", "</ instructions");
            text.push_str(&format!("\n<instructions from=\"{path}\">\n{quoted}\n"));
            if document.is_cut {
                text.push_str("[The rest of the file is left out. Read it if you need it.]\n");
            }
            text.push_str("</instructions>\n");
        }
        text
    }
}

/// Formats a path in one line, without characters that could end a quotation.
pub(super) fn in_a_line(path: &Path) -> String {
    let plain = |one: char| if one.is_control() || "\"<>`".contains(one) { '?' } else { one };
    path.to_string_lossy().chars().map(plain).collect()
}

/// Reads the beginning of a regular file of text, and whether there is more. Returns `None` for everything else.
fn beginning(path: &Path) -> Option<(String, bool)> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST as u64 + 1).read_to_end(&mut bytes).ok()?;
    let is_cut = bytes.len() > LONGEST;
    bytes.truncate(LONGEST);
    let end = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        // A character that the limit has split.
        Err(error) if is_cut && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return None,
    };
    bytes.truncate(end);
    let text = String::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    (!text.contains('\0')).then_some((text, is_cut))
}
