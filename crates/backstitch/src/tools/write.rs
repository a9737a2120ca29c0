//! Tools that write, delete, create and move files.

use super::files::Files;
use crate::filesystem::{EditTarget, FileOperations};
use crate::ports::{Recursion, WriteMode};
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

/// Deletes a file, a link or a directory.
#[crate::tool(crate = crate::__private, effect = "workspace")]
pub fn delete_file(
    context: &ToolContext,
    /// The path, relative to the workspace.
    path: String,
    /// Whether to delete a directory with everything in it; otherwise it has to be empty.
    #[arg(default)]
    recursive: bool,
) -> Result<ToolResult, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    if path.is_root() {
        return Err(ToolError::of_kind(
            "invalid_path",
            "the workspace itself cannot be deleted; name a path inside it",
        ));
    }
    let recursion = if recursive { Recursion::All } else { Recursion::None };
    files.with(|files| files.delete(&path, recursion))?;
    Ok(ToolResult::ok(format!("deleted {path}")))
}

/// Creates a directory and the missing directories above it. An existing directory is left as it is.
#[crate::tool(crate = crate::__private, effect = "workspace")]
pub fn make_directory(
    context: &ToolContext,
    /// The directory, relative to the workspace.
    path: String,
) -> Result<ToolResult, ToolError> {
    let files = Files::of(context)?;
    let path = files.path(&path)?;
    files.with(|files| files.make_directory(&path))?;
    Ok(ToolResult::ok(format!("made {path}/")))
}

/// Moves or renames a file or a directory, and creates the missing directories above the new path.
#[crate::tool(crate = crate::__private, effect = "workspace")]
pub fn rename(
    context: &ToolContext,
    /// The current path, relative to the workspace.
    from: String,
    /// The new path, relative to the workspace. Nothing must exist there.
    to: String,
) -> Result<ToolResult, ToolError> {
    let files = Files::of(context)?;
    let (from, to) = (files.path(&from)?, files.path(&to)?);
    files.with(|files| {
        files.stat(&from)?;
        if let Some(above) = to.parent().filter(|above| !above.is_root()) {
            files.make_directory(&above)?;
        }
        files.rename(&from, &to)
    })?;
    Ok(ToolResult::ok(format!("moved {from} to {to}")))
}
