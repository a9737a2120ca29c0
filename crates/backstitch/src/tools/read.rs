//! Reading files, and what is known of them.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Serialize;

use super::MOST_TEXT;
use super::files::{Files, first_bytes, note};
use crate::filesystem::{FileOperations, LineWindow};
use crate::ports::FileKind;
use crate::tool::{ToolContext, ToolError};

/// Lines of a file.
#[derive(Serialize, JsonSchema)]
struct Lines {
    /// The lines, exactly as they are in the file.
    text: String,
    /// The number of the first of them, from 1.
    first_line: usize,
    /// The number of the last of them.
    last_line: usize,
    /// How many lines the file has.
    total_lines: usize,
    /// What is not shown, and how to see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Gives lines of a text file, exactly as they are. Long files come in parts.
#[crate::tool(crate = crate::__private, effect = "pure", example(
    description = "Lines 100 to 149 of a long file",
    arguments = { "path": "src/main.rs", "from_line": 100, "lines": 50 }
))]
pub fn read_file(
    context: &ToolContext,
    /// The file, relative to the workspace.
    path: String,
    /// The first line to give, counted from 1.
    #[arg(default = NonZeroUsize::MIN)]
    from_line: NonZeroUsize,
    /// How many lines to give at most.
    #[arg(default = 2000)]
    lines: usize,
) -> Result<Lines, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    let window = LineWindow { offset: from_line.get() - 1, limit: lines };
    let mut read = files.with(|files| files.read(&path, window))?;
    let mut notes = Vec::new();
    if read.text.len() > MOST_TEXT {
        cut(&mut read, &mut notes);
    }
    let last_line = read.first_line + read.lines - usize::from(read.lines > 0);
    if read.truncated && notes.is_empty() {
        notes.push(format!("the file goes on: read it from_line {}", read.first_line + read.lines));
    }
    if read.lines == 0 && read.total_lines > 0 && lines > 0 {
        notes.push(format!("the file ends at line {}", read.total_lines));
    }
    Ok(Lines {
        text: read.text,
        first_line: read.first_line,
        last_line,
        total_lines: read.total_lines,
        note: note(notes),
    })
}

/// Leaves whole lines, or the beginning of the first if it alone is too long.
fn cut(read: &mut crate::filesystem::TextWindow, notes: &mut Vec<String>) {
    let kept = first_bytes(&read.text, MOST_TEXT);
    match kept.rfind('\n') {
        Some(end) => {
            read.text.truncate(end + 1);
            read.lines = read.text.matches('\n').count();
            let next = read.first_line + read.lines;
            notes
                .push(format!("more than {MOST_TEXT} bytes are not given at once: read on from_line {next}"));
        }
        None => {
            let whole = read.text.find('\n').unwrap_or(read.text.len());
            read.text.truncate(kept.len());
            read.lines = 1;
            let line = read.first_line;
            notes.push(format!(
                "line {line} has {whole} bytes and is cut here; look into it with grep, and read on from_line {}",
                line + 1
            ));
        }
    }
}

/// What is known of a path.
#[derive(Serialize, JsonSchema)]
struct PathInfo {
    /// The path.
    path: String,
    /// What it is: `file`, `directory`, `link` or `other`.
    kind: Kind,
    /// How many bytes a file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Whether a file may be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<bool>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

/// What is at a path.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl From<FileKind> for Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::File => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Link => Self::Link,
            FileKind::Other => Self::Other,
        }
    }
}

/// Tells what is at a path: its kind, and a file's size. Links are not followed.
#[crate::tool(crate = crate::__private, effect = "pure")]
pub fn stat(
    context: &ToolContext,
    /// The path, relative to the workspace.
    path: String,
) -> Result<PathInfo, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    let stat = files.with(|files| files.stat(&path))?;
    let is_file = stat.kind == FileKind::File;
    Ok(PathInfo {
        path: path.to_string(),
        kind: stat.kind.into(),
        bytes: is_file.then_some(stat.bytes),
        executable: is_file.then_some(stat.executable),
        modified: stat.modified.map(|at| at.to_string()),
    })
}
