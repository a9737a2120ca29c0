//! Editing of a call in the editor of the user.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::id::CallId;
use backstitch::{SystemClock, entropy};

/// A private file that is removed when it is dropped.
struct PrivateFile(PathBuf);

impl Drop for PrivateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens a text in the editor of `VISUAL` or `EDITOR`, else `vi`, and returns it as it was saved. The ending
/// of the file tells the editor what it is.
pub(super) async fn edited(text: &str, ending: &str) -> anyhow::Result<String> {
    let id: CallId = entropy::fresh_ids(Arc::new(SystemClock::new()))?.next();
    let path = std::env::temp_dir().join(format!("backstitch-{id}.{ending}"));
    let file = private(&path, text)
        .with_context(|| format!("{} cannot be written for the editor", path.display()))?;
    let editor = editor();
    // As git does: the variable may hold arguments, so a shell splits it.
    let status = tokio::process::Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "editor"])
        .arg(&file.0)
        .status()
        .await
        .with_context(|| format!("the editor `{editor}` cannot be started"))?;
    if !status.success() {
        anyhow::bail!("the editor `{editor}` ended with {status}; VISUAL or EDITOR names another one");
    }
    std::fs::read_to_string(&file.0).context("the edited file cannot be read as text")
}

fn editor() -> String {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned())
}

fn private(path: &Path, text: &str) -> std::io::Result<PrivateFile> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let private = PrivateFile(path.to_owned());
    file.write_all(text.as_bytes())?;
    Ok(private)
}
