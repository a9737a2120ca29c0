//! Tools that write files.

use super::files::Files;
use crate::filesystem::{EditTarget, FileOperations};
use crate::ports::WriteMode;
use crate::tool::{ToolContext, ToolError, ToolResult};

/// Writes a whole text file, and creates the missing directories above it.
#[crate::tool(crate = crate::__private, effect = "workspace")]
pub fn write_file(
    context: &ToolContext,
    /// The file, relative to the workspace.
    path: String,
    /// The text.
    text: String,
    /// Treatment of an existing file: `create` fails, `overwrite` replaces it, `append` adds to its end.
    #[arg(default = WriteMode::Overwrite)]
    mode: WriteMode,
) -> Result<ToolResult, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    Files::check_whole(context, &text)?;
    let existed = files.with(|files| Ok(files.stat(&path).is_ok()))?;
    files.with(|files| files.write(&path, &text, mode))?;
    let done = match (existed, mode) {
        (false, _) => "created",
        (true, WriteMode::Append) => "appended to",
        (true, WriteMode::Create | WriteMode::Overwrite) => "overwrote",
    };
    let counted =
        |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let (bytes, lines) = (counted(text.len(), "byte"), counted(text.lines().count(), "line"));
    Ok(ToolResult::ok(format!("{done} {path}: {bytes}, {lines}")))
}

/// Replaces text in a file. The text to replace has to match exactly, with its spaces and line ends, and has
/// to occur once, unless `all` or `count` is set.
#[crate::tool(crate = crate::__private, effect = "workspace", example(
    description = "Rename a function where it is defined",
    arguments = { "path": "src/seam.rs", "old": "fn parse_row(", "new": "fn read_row(" }
))]
pub fn edit_file(
    context: &ToolContext,
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, with enough context to be unique in the file.
    old: String,
    /// The replacement.
    new: String,
    /// Whether to replace every occurrence in the file.
    #[arg(default)]
    all: bool,
    /// Expected number of occurrences. All of them are replaced, or none if the number differs.
    count: Option<usize>,
) -> Result<ToolResult, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    Files::check_whole(context, &new)?;
    if let Some(wanted) = count
        && !old.is_empty()
    {
        let text = files.with(|files| files.read_text(&path))?;
        let found = text.matches(&*old).count();
        // The error for a text that does not occur at all is better below.
        if found > 0 && found != wanted {
            return Err(ToolError::of_kind(
                "edit_does_not_fit",
                format_args!(
                    "{path}: the text to replace occurs {found} times, not {wanted}; nothing was changed"
                ),
            ));
        }
    }
    let occurrence = if all || count.is_some() { EditTarget::All } else { EditTarget::Once };
    let edited = files.with(|files| files.edit(&path, &old, &new, occurrence))?;
    let places = match edited.replacements {
        1 => "1 place".to_owned(),
        several => format!("{several} places"),
    };
    Ok(ToolResult::ok(format!("{path}: replaced {places}, the first at line {}", edited.first_line)))
}
