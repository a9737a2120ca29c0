//! Tools that delete, create and move files.

use super::files::Files;
use crate::ports::Recursion;
use crate::tool::{ToolContext, ToolError, ToolResult};

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
