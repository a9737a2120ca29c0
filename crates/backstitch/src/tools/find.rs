//! Tools that find files, and search their text.

use schemars::JsonSchema;
use serde::Serialize;

use super::MOST_TEXT;
use super::files::{Files, name_of, note};
use crate::filesystem::{FileOperations, GrepMatch, GrepOptions, SearchLimits};
use crate::ports::FileKind;
use crate::tool::{ToolContext, ToolError};

/// Maximum number of names in a listing.
const MOST_NAMES: usize = 1_000;

/// Maximum number of paths in a result.
const MOST_PATHS: usize = 1_000;

/// Maximum number of matches in a result.
const MOST_MATCHES: usize = 1_000;

/// The content of a directory.
#[derive(Serialize, JsonSchema)]
struct DirectoryListing {
    /// The directory.
    path: String,
    /// Its entries, sorted by name.
    entries: Vec<ListEntry>,
    /// What is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// An entry of a directory.
#[derive(Serialize, JsonSchema)]
struct ListEntry {
    /// Its name.
    name: String,
    /// Its kind.
    kind: FileKind,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// Lists the entries of one directory, without those of the directories in it.
#[crate::tool(crate = crate::__private, effect = "pure")]
pub fn list_files(
    context: &ToolContext,
    /// The directory, relative to the workspace. Default: the workspace itself.
    #[arg(default)]
    path: String,
) -> Result<DirectoryListing, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    let mut found = files.with(|files| files.list(&path))?;
    found.sort_by(|left, right| left.name.cmp(&right.name));
    let left_out = found.len().saturating_sub(MOST_NAMES);
    found.truncate(MOST_NAMES);
    let entries = found.into_iter().map(|entry| ListEntry {
        name: entry.name,
        kind: entry.kind,
        bytes: (entry.kind == FileKind::File).then_some(entry.bytes),
    });
    let note = (left_out > 0)
        .then(|| format!("{left_out} more are not shown: list a directory in it, or search by a pattern"));
    Ok(DirectoryListing { path: path.to_string(), entries: entries.collect(), note })
}

/// Matching paths.
#[derive(Serialize, JsonSchema)]
struct Paths {
    /// The paths, relative to the workspace. Those of directories end in `/`.
    paths: Vec<String>,
    /// What is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Finds files and directories whose path matches a pattern. `*` and `?` match inside one name, `**` matches
/// across directories; `[a-z]` and `{a,b}` are supported.
#[crate::tool(crate = crate::__private, effect = "pure", example(
    description = "All Rust files below src",
    arguments = { "pattern": "**/*.rs", "path": "src" }
))]
pub fn glob(
    context: &ToolContext,
    /// The pattern, matched against paths relative to `path`.
    pattern: String,
    /// The directory to search, relative to the workspace. Default: the workspace itself.
    #[arg(default)]
    path: String,
    /// Maximum number of paths to return.
    #[arg(default = 200)]
    limit: usize,
) -> Result<Paths, ToolError> {
    let files = Files::of(context)?;
    let below = files.path(&path)?;
    let limits = SearchLimits { matches: limit.clamp(1, MOST_PATHS), ..SearchLimits::default() };
    let found = files.with(|files| files.glob(&pattern, &below, limits))?;
    let mut notes = Vec::new();
    if found.truncated {
        notes.push("there may be more: narrow the pattern or the path, or raise the limit".to_owned());
    }
    if found.skipped > 0 {
        notes.push(format!("{} directories could not be listed", found.skipped));
    }
    let paths = found.matches.iter().map(|found| name_of(found.path.as_str(), found.kind));
    Ok(Paths { paths: paths.collect(), note: note(notes) })
}

/// Matching lines.
#[derive(Serialize, JsonSchema)]
struct GrepOutput {
    /// The lines.
    matches: Vec<GrepMatch>,
    /// Number of files that were searched.
    searched: usize,
    /// What is left out or was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
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
        matches.push(line);
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
