//! A tool that searches the text of files.

use schemars::JsonSchema;
use serde::Serialize;

use super::MOST_TEXT;
use super::files::{Files, note};
use crate::filesystem::{FileOperations, GrepMatch, GrepOptions, SearchLimits};
use crate::tool::{ToolContext, ToolError};

/// Maximum number of matches in a result.
const MOST_MATCHES: usize = 1_000;

/// Matching lines.
#[derive(Serialize, JsonSchema)]
struct GrepOutput {
    /// The lines.
    matches: Vec<Line>,
    /// Number of files that were searched.
    searched: usize,
    /// What is left out or was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A matching line.
#[derive(Serialize, JsonSchema)]
struct Line {
    /// The file.
    path: String,
    /// The number of the line, from 1.
    line: usize,
    /// The line.
    text: String,
    /// The lines before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// The lines after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

/// Finds lines of files that match a regular expression (syntax of Rust's regex: no look-around, no
/// back-references).
#[crate::tool(crate = crate::__private, effect = "pure", example(
    description = "Where a function is used, in Rust files",
    arguments = { "pattern": "\\bparse_row\\(", "glob": "*.rs", "context_lines": 1 }
))]
pub fn grep(
    context: &ToolContext,
    /// The regular expression. It is matched against one line at a time.
    pattern: String,
    /// The directory or file to search, relative to the workspace. Default: the whole workspace.
    #[arg(default)]
    path: String,
    /// Pattern of the files to search: `*.rs` for names, `src/**/*.rs` for paths relative to `path`. Default:
    /// all.
    glob: Option<String>,
    /// Whether to ignore upper and lower case.
    #[arg(default)]
    ignore_case: bool,
    /// Number of lines to return before and after each match, at most 20.
    #[arg(default)]
    context_lines: usize,
    /// Maximum number of matches to return.
    #[arg(default = 100)]
    limit: usize,
) -> Result<GrepOutput, ToolError> {
    let files = Files::of(context)?;
    let options = GrepOptions {
        below: files.path(&path)?,
        glob,
        ignore_case,
        context_lines,
        limits: SearchLimits { matches: limit.clamp(1, MOST_MATCHES), ..SearchLimits::default() },
        ..GrepOptions::default()
    };
    let found = files.with(|files| files.grep(&pattern, &options))?;
    let mut notes = Vec::new();
    let (mut matches, mut bytes) = (Vec::new(), 0);
    let total = found.matches.len();
    for line in found.matches {
        bytes += size(&line);
        if bytes > MOST_TEXT && !matches.is_empty() {
            notes.push(format!("{} more matches are not shown", total - matches.len()));
            break;
        }
        matches.push(Line {
            path: line.path.to_string(),
            line: line.line,
            text: line.text,
            before: line.before,
            after: line.after,
        });
    }
    if found.truncated {
        notes.push(
            "there may be more: narrow the pattern, the path or the glob, or raise the limit".to_owned(),
        );
    }
    if found.skipped > 0 {
        notes.push(format!("{} binary, too large or unreadable files were skipped", found.skipped));
    }
    Ok(GrepOutput { matches, searched: found.searched, note: note(notes) })
}

fn size(line: &GrepMatch) -> usize {
    let around = line.before.iter().chain(&line.after).map(String::len).sum::<usize>();
    line.path.as_str().len() + line.text.len() + around
}
