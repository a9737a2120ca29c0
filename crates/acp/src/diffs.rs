//! Changes of files as an editor shows them: the text before and after.
//!
//! What a call changed is read from the files around it, which the store keeps. What a call would change is computed on a copy in
//! memory, with the code of the tool itself, and nothing is written.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::v1::schema::Diff;
use backstitch::Tools;
use backstitch::filesystem::{EditTarget, FileOperations as _, MemoryFilesystem, format};
use backstitch::journal::{CallFinished, CallStarted, CallVerdict, ChangeKind};
use backstitch::ports::{FileKind, FilePath, Filesystem, Objects, WriteMode};
use backstitch::tool::Tool;
use serde_json::Value;

/// Maximum size of a text that is shown, in bytes.
const MOST_TEXT: usize = 256 * 1024;

/// Maximum number of files of a call that are shown.
const MOST_FILES: usize = 50;

/// Returns what a call has changed. Files that are not text, that are large or that are not stored any more are left out.
pub(crate) async fn of_finished(
    objects: Arc<dyn Objects>,
    directory: &Path,
    started: &CallStarted,
    finished: &CallFinished,
) -> Vec<Diff> {
    let roots = started.root.zip(finished.root).filter(|(before, after)| before != after);
    let (Some((before, after)), CallVerdict::Succeeded) = (roots, finished.outcome) else {
        return Vec::new();
    };
    let (changes, directory) = (finished.changes.clone(), directory.to_owned());
    let reading = move || {
        let paths: Vec<String> = match changes.as_ref().and_then(|changes| changes.paths()) {
            Some(listed) => {
                let content = listed.iter().filter(|changed| changed.change != ChangeKind::Mode);
                content.take(MOST_FILES).map(|changed| changed.path.clone()).collect()
            }
            None => {
                let changed = format::diff(&*objects, before, after).unwrap_or_default();
                changed.into_iter().take(MOST_FILES).map(|change| change.path).collect()
            }
        };
        let text_at = |root, path: &str| -> Option<Option<String>> {
            match format::read_at(&*objects, root, path.as_bytes()).ok()? {
                Some(object) => text_of(object.bytes().to_vec()).map(Some),
                None => Some(None),
            }
        };
        let diff = |path: &String| {
            let (old, new) = (text_at(before, path)?, text_at(after, path)?);
            // A directory has no text before and after.
            (old != new).then(|| Diff::new(directory.join(path), new.unwrap_or_default()).old_text(old))
        };
        paths.iter().filter_map(diff).collect()
    };
    tokio::task::spawn_blocking(reading).await.unwrap_or_default()
}

/// Returns what a call of a built-in file tool would change; `None` for others, and if it would fail.
pub(crate) fn of_planned(
    tools: &Tools,
    files: &dyn Filesystem,
    directory: &Path,
    name: &str,
    arguments: &Value,
) -> Option<Diff> {
    use backstitch::tools;
    let own = match name {
        "write_file" => tools::write_file(),
        "edit_file" => tools::edit_file(),
        "delete_file" => tools::delete_file(),
        _ => return None,
    };
    // Another tool of this name may do anything.
    let digest = |tool: &Tool| tool.spec.contract_digest().ok();
    if tools.get(name).is_some_and(|tool| digest(tool) != digest(&own)) {
        return None;
    }
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = FilePath::within(text("path")?, files.limits()).ok()?;
    let old = match files.stat(&path) {
        Ok(stat) if stat.kind == FileKind::File && stat.bytes <= MOST_TEXT as u64 => {
            Some(text_of(files.read_bytes(&path).ok()?)?)
        }
        Ok(_) => return None,
        Err(_) => None,
    };
    let new = match (name, &old) {
        ("write_file", _) => {
            let mode = arguments.get("mode").and_then(Value::as_str).unwrap_or_default();
            match (mode, &old) {
                ("create", Some(_)) => return None,
                ("append", Some(old)) => format!("{old}{}", text("text")?),
                _ => text("text")?.to_owned(),
            }
        }
        ("edit_file", Some(old)) => {
            let is_all = arguments.get("all").and_then(Value::as_bool).unwrap_or_default();
            let has_count = arguments.get("count").is_some_and(|count| !count.is_null());
            let target = if is_all || has_count { EditTarget::All } else { EditTarget::Once };
            let copy = MemoryFilesystem::new();
            copy.write(&path, old, WriteMode::Overwrite).ok()?;
            copy.edit(&path, text("old")?, text("new")?, target).ok()?;
            copy.read_text(&path).ok()?
        }
        ("delete_file", Some(_)) => String::new(),
        _ => return None,
    };
    (new.len() <= MOST_TEXT).then(|| Diff::new(directory.join(path.as_str()), new).old_text(old))
}

fn text_of(bytes: Vec<u8>) -> Option<String> {
    let is_small = bytes.len() <= MOST_TEXT;
    String::from_utf8(bytes).ok().filter(|text| is_small && !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn planned(name: &str, arguments: Value) -> Option<(Option<String>, String)> {
        let files = MemoryFilesystem::new();
        let write = |path: &str, bytes: &[u8]| {
            files.write_bytes(&FilePath::new(path).unwrap(), bytes, WriteMode::Overwrite).unwrap();
        };
        write("hem.txt", b"one\ntwo\n");
        write("seam.bin", &[0, 159, 146, 150]);
        let diff = of_planned(&Tools::default(), &files, Path::new("/shop"), name, &arguments)?;
        assert!(diff.path.starts_with("/shop"));
        Some((diff.old_text, diff.new_text))
    }

    #[test]
    fn changes_of_file_tools_are_shown_before_they_are_made() {
        let old = || Some("one\ntwo\n".to_owned());
        let edit = json!({"path": "hem.txt", "old": "two", "new": "2"});
        assert_eq!(planned("edit_file", edit), Some((old(), "one\n2\n".to_owned())));
        let write = json!({"path": "new.txt", "text": "a"});
        assert_eq!(planned("write_file", write), Some((None, "a".to_owned())));
        let append = json!({"path": "hem.txt", "text": "three\n", "mode": "append"});
        assert_eq!(planned("write_file", append), Some((old(), "one\ntwo\nthree\n".to_owned())));
        assert_eq!(planned("delete_file", json!({"path": "hem.txt"})), Some((old(), String::new())));
    }

    #[test]
    fn what_cannot_be_shown_has_no_diff() {
        for (name, arguments) in [
            ("edit_file", json!({"path": "hem.txt", "old": "ten", "new": "x"})),
            ("edit_file", json!({"path": "gone.txt", "old": "t", "new": "x"})),
            ("write_file", json!({"path": "../a", "text": "x"})),
            ("write_file", json!({"path": "seam.bin", "text": "x"})),
            ("write_file", json!({"path": "hem.txt", "text": "x", "mode": "create"})),
            ("write_file", json!("text")),
            ("shell", json!({"command": "true"})),
        ] {
            assert_eq!(planned(name, arguments.clone()), None, "{name} {arguments}");
        }
    }
}
