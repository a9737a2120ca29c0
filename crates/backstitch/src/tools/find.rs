//! Tools that find files.

use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Files, name_of, note};
use crate::filesystem::{FileOperations, SearchLimits};
use crate::ports::FileKind;
use crate::tool::{ToolContext, ToolError};

/// Maximum number of names in a listing.
const MOST_NAMES: usize = 1_000;

/// Maximum number of paths in a result.
const MOST_PATHS: usize = 1_000;

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
