//! Tools that read files and their metadata.

use std::num::NonZeroUsize;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::MOST_TEXT;
use super::files::{Files, note};
use crate::filesystem::{FileOperations, FilePath, LineWindow, TextWindow};
use crate::message::{MediaPart, MediaType, Modality};
use crate::ports::{FileKind, FilesystemError};
use crate::tool::{Tool, ToolContext, ToolError, ToolOutcome, ToolResult, schema_of};

/// Maximum size of an image or a document in bytes: 5 MiB in base64, which every provider accepts.
const MOST_MEDIA: usize = 5 * 1024 * 1024 / 4 * 3;

/// The content of a file.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum FileContent {
    Lines(Lines),
    Media(MediaFile),
}

/// Lines of a file.
#[derive(Serialize, JsonSchema)]
struct Lines {
    /// The lines, exactly as they are in the file.
    text: String,
    /// Number of the first returned line, from 1.
    first_line: usize,
    /// Number of the last returned line.
    last_line: usize,
    /// Number of lines of the file.
    total_lines: usize,
    /// What is left out, and how to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// An image or a document, which is shown beside this.
#[derive(Serialize, JsonSchema)]
struct MediaFile {
    /// Type of the file, such as `image/png`.
    media: String,
    /// Size of the file in bytes.
    bytes: usize,
}

/// A file as it was read.
enum ReadFile {
    Text(TextWindow),
    Binary(Vec<u8>),
}

/// Returns lines of a text file, an image (PNG, JPEG, GIF, WebP), or a PDF document.
pub fn read_file() -> Tool {
    let mut tool = read();
    Arc::make_mut(&mut tool.spec).output = Some(schema_of::<FileContent>());
    tool
}

/// Returns lines of a text file, exactly as they are. Long files are returned in parts. Images (PNG, JPEG, GIF, WebP)
/// and PDF documents are returned as such.
#[crate::tool(crate = crate::__private, name = "read_file", effect = "pure", example(
    description = "Lines 100 to 149 of a long file",
    arguments = { "path": "src/main.rs", "from_line": 100, "lines": 50 }
))]
fn read(
    context: &ToolContext,
    /// The file, relative to the workspace.
    path: String,
    /// The first line to return, counted from 1.
    #[arg(default = NonZeroUsize::MIN)]
    from_line: NonZeroUsize,
    /// Maximum number of lines to return.
    #[arg(default = 2000)]
    lines: usize,
) -> ToolOutcome {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    let window = LineWindow { offset: from_line.get() - 1, limit: lines };
    let read = files.with(|files| match files.read(&path, window) {
        Err(FilesystemError::NotText { .. }) => files.read_bytes(&path).map(ReadFile::Binary),
        read => read.map(ReadFile::Text),
    })?;
    match read {
        ReadFile::Text(read) => Ok(ToolResult::default().with_value(FileContent::Lines(shown(read, lines)))?),
        ReadFile::Binary(bytes) => media(&path, bytes),
    }
}

/// Returns lines with notes about what is left out.
fn shown(mut read: TextWindow, lines: usize) -> Lines {
    let mut notes = Vec::new();
    if read.text.len() > MOST_TEXT {
        cut(&mut read, &mut notes);
    }
    let last_line = read.first_line + read.lines - usize::from(read.lines > 0);
    if read.truncated && notes.is_empty() {
        notes.push(format!("the file has more lines: read on from_line {}", read.first_line + read.lines));
    }
    if read.lines == 0 && read.total_lines > 0 && lines > 0 {
        notes.push(format!("the file ends at line {}", read.total_lines));
    }
    Lines {
        text: read.text,
        first_line: read.first_line,
        last_line,
        total_lines: read.total_lines,
        note: note(notes),
    }
}

/// Returns an image or a document, by its first bytes. Other files that are not text are refused.
fn media(path: &FilePath, bytes: Vec<u8>) -> ToolOutcome {
    let known = MediaType::of_bytes(&bytes)
        .filter(|known| matches!(known.modality, Modality::Image | Modality::Document));
    let Some(MediaType { modality, mime }) = known else {
        return Err(ToolError::of_kind(
            "not_text",
            format_args!(
                "{path}: it is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP) nor a PDF document, so it \
                 cannot be shown; stat returns its size"
            ),
        ));
    };
    let size = bytes.len();
    if size > MOST_MEDIA {
        let advice = match modality {
            Modality::Image => "make a smaller copy, such as a scaled one or a JPEG, and read that",
            _ => "extract the text or the pages that you need, and read those",
        };
        return Err(ToolError::of_kind(
            "too_large",
            format_args!("{path}: {size} bytes are more than the {MOST_MEDIA} that can be shown; {advice}"),
        ));
    }
    let (part, object) = MediaPart::held(modality, bytes);
    let value = FileContent::Media(MediaFile { media: mime.to_owned(), bytes: size });
    let result = ToolResult::default().with_value(value)?;
    Ok(result.with_media((part.with_mime(mime).with_hint(path.to_string()), object)))
}

/// Truncates the text to whole lines, or to the beginning of the first line if that one alone is too long.
fn cut(read: &mut TextWindow, notes: &mut Vec<String>) {
    let kept = &read.text[..read.text.floor_char_boundary(MOST_TEXT)];
    match kept.rfind('\n') {
        Some(end) => {
            read.text.truncate(end + 1);
            read.lines = read.text.matches('\n').count();
            let next = read.first_line + read.lines;
            notes.push(format!("a result has at most {MOST_TEXT} bytes: read on from_line {next}"));
        }
        None => {
            let whole = read.text.find('\n').unwrap_or(read.text.len());
            read.text.truncate(kept.len());
            read.lines = 1;
            let line = read.first_line;
            notes.push(format!(
                "line {line} has {whole} bytes and is truncated; search it for what you need, and read on from_line {}",
                line + 1
            ));
        }
    }
}

/// Metadata of a path.
#[derive(Serialize, JsonSchema)]
struct PathInfo {
    /// The path.
    path: String,
    /// Its kind: `file`, `directory`, `link` or `other`.
    kind: FileKind,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Whether a file is executable.
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<bool>,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

/// Returns the kind of a path and its time of change, and for a file its size and whether it is executable.
/// Links are not followed.
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
        kind: stat.kind,
        bytes: is_file.then_some(stat.bytes),
        executable: is_file.then_some(stat.executable),
        modified: stat.modified.map(|at| at.to_string()),
    })
}
