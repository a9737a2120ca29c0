//! Editing of a call in the editor of the user.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use backstitch::host::PrivateDirectory;

/// Opens a text in the editor of `VISUAL` or `EDITOR`, else `vi`, and returns it as it was saved. The ending
/// of the file tells the editor what it is.
pub(super) async fn edit_text(text: &str, ending: &str) -> anyhow::Result<String> {
    let directory = PrivateDirectory::new().context("the editor needs a temporary directory")?;
    let path = directory.path().join(format!("call.{ending}"));
    write(&path, text).with_context(|| format!("{} cannot be written for the editor", path.display()))?;
    let editor = editor();
    // As git does: the variable may hold arguments, so a shell splits it.
    let status = tokio::process::Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "editor"])
        .arg(&path)
        .status()
        .await
        .with_context(|| format!("the editor `{editor}` cannot be started"))?;
    if !status.success() {
        anyhow::bail!("the editor `{editor}` ended with {status}; VISUAL or EDITOR names another one");
    }
    std::fs::read_to_string(&path).context("the edited file cannot be read as text")
}

fn editor() -> String {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
