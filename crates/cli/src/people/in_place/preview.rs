//! The change that a call of a file tool would make, computed without changing anything.
//!
//! The files are read as they are now. The operation runs on a copy in memory, with the code of the tool
//! itself. A change that is too large, or of a file that is not text, is summarized with sizes; the exact
//! arguments can be shown as well.

use backstitch::Tools;
use backstitch::filesystem::{EditTarget, FileOperations as _, FilePath, MemoryFilesystem};
use backstitch::ports::{FileKind, Filesystem, WriteMode};
use backstitch::tool::Tool;
use serde::Deserialize;
use serde_json::Value;
use similar::TextDiff;

use super::shown::{behind_gutter, plain, warning};
use crate::terminal::{Role, Text, columns, difference};

/// Maximum size of a file or a text that is compared, in bytes.
const MOST_COMPARED: u64 = 256 * 1024;

/// Maximum number of lines of a diff that is shown.
const MOST_LINES: usize = 600;

/// Maximum number of names that are listed of a directory.
const MOST_NAMES: usize = 20;

#[derive(Deserialize)]
struct Writing {
    path: String,
    text: String,
    mode: Option<WriteMode>,
}

#[derive(Deserialize)]
struct Editing {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
    count: Option<usize>,
}

/// The content of a file.
enum FileContent {
    Missing,
    Text(String),
    /// Binary or large, with its size.
    Other(u64),
}

/// Computes the change that a call would make, as lines for a person. Returns `None` for other tools, and for arguments
/// that do not fit.
pub(super) fn preview(
    tools: &Tools,
    files: &dyn Filesystem,
    name: &str,
    arguments: &Value,
) -> Option<Vec<Text>> {
    use backstitch::tools;
    match name {
        "write_file" if is_own(tools, tools::write_file()) => written(files, &read(arguments)?),
        "edit_file" if is_own(tools, tools::edit_file()) => edited(files, &read(arguments)?),
        "delete_file" if is_own(tools, tools::delete_file()) => deleted(files, arguments),
        "make_directory" if is_own(tools, tools::make_directory()) => made(files, arguments),
        "rename" if is_own(tools, tools::rename()) => moved(files, arguments),
        _ => None,
    }
}

/// Whether a tool of this name, if the agent has one, is the built-in one. Another one may do anything.
fn is_own(tools: &Tools, own: Tool) -> bool {
    let digest = |tool: &Tool| tool.spec.contract_digest().ok();
    tools.get(own.name().as_str()).is_none_or(|tool| digest(tool) == digest(&own))
}

fn read<'a, T: Deserialize<'a>>(arguments: &'a Value) -> Option<T> {
    T::deserialize(arguments).ok()
}

fn path_of(files: &dyn Filesystem, path: &str) -> Option<FilePath> {
    FilePath::within(path, files.limits()).ok()
}

fn path_in(files: &dyn Filesystem, arguments: &Value, name: &str) -> Option<FilePath> {
    path_of(files, arguments.get(name)?.as_str()?)
}

fn content(files: &dyn Filesystem, path: &FilePath) -> Option<FileContent> {
    let Ok(stat) = files.stat(path) else { return Some(FileContent::Missing) };
    if stat.kind != FileKind::File {
        return None;
    }
    if stat.bytes > MOST_COMPARED {
        return Some(FileContent::Other(stat.bytes));
    }
    let bytes = files.read_bytes(path).ok()?;
    let size = bytes.len() as u64;
    Some(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => FileContent::Text(text),
        _ => FileContent::Other(size),
    })
}

fn written(files: &dyn Filesystem, call: &Writing) -> Option<Vec<Text>> {
    let path = path_of(files, &call.path)?;
    let before = content(files, &path)?;
    let size = call.text.len();
    let (verb, before, after) = match (before, call.mode.unwrap_or(WriteMode::Overwrite)) {
        (FileContent::Missing, _) => ("creates", String::new(), call.text.clone()),
        (_, WriteMode::Create) => {
            return Some(would_fail(&format!("{path} exists, and the call may only create it")));
        }
        (FileContent::Text(before), WriteMode::Append) => {
            let after = format!("{before}{}", call.text);
            ("appends to", before, after)
        }
        (FileContent::Text(before), WriteMode::Overwrite) => ("overwrites", before, call.text.clone()),
        (FileContent::Other(bytes), WriteMode::Append) => {
            return Some(summary(format!("appends {size} bytes to {path}, which has {bytes} bytes")));
        }
        (FileContent::Other(bytes), WriteMode::Overwrite) => {
            return Some(summary(format!("overwrites {path}, which has {bytes} bytes, by {size} bytes")));
        }
    };
    if size as u64 > MOST_COMPARED {
        return Some(summary(format!("{verb} {path}: {size} bytes of text, which had {}", before.len())));
    }
    Some(diff(&path, verb, &before, &after))
}

fn edited(files: &dyn Filesystem, call: &Editing) -> Option<Vec<Text>> {
    let path = path_of(files, &call.path)?;
    let before = match content(files, &path)? {
        FileContent::Text(before) => before,
        FileContent::Missing => return Some(would_fail(&format!("there is no file {path}"))),
        FileContent::Other(bytes) => {
            return Some(summary(format!("edits {path}, which has {bytes} bytes")));
        }
    };
    let found = if call.old.is_empty() { 0 } else { before.matches(&*call.old).count() };
    if let Some(wanted) = call.count.filter(|wanted| found > 0 && found != *wanted) {
        return Some(would_fail(&format!("{path}: the text to replace occurs {found} times, not {wanted}")));
    }
    let target = if call.all || call.count.is_some() { EditTarget::All } else { EditTarget::Once };
    let copy = MemoryFilesystem::new();
    copy.write(&path, &before, WriteMode::Overwrite).ok()?;
    if let Err(error) = copy.edit(&path, &call.old, &call.new, target) {
        return Some(would_fail(&error.to_string()));
    }
    Some(diff(&path, "edits", &before, &copy.read_text(&path).ok()?))
}

fn deleted(files: &dyn Filesystem, arguments: &Value) -> Option<Vec<Text>> {
    let path = path_in(files, arguments, "path")?;
    let Ok(stat) = files.stat(&path) else {
        return Some(would_fail(&format!("there is no file {path}")));
    };
    if stat.kind != FileKind::Directory {
        return Some(match content(files, &path) {
            Some(FileContent::Text(before)) => diff(&path, "deletes", &before, ""),
            Some(FileContent::Other(bytes)) => summary(format!("deletes {path}: {bytes} bytes")),
            _ => summary(format!("deletes {path}")),
        });
    }
    let entries = files.list(&path).ok()?;
    let is_recursive = arguments.get("recursive").and_then(Value::as_bool).unwrap_or(false);
    if !is_recursive && !entries.is_empty() {
        return Some(would_fail(&format!("the directory {path} is not empty")));
    }
    let mut lines = summary(format!("deletes the directory {path} with {} entries:", entries.len()));
    for entry in entries.iter().take(MOST_NAMES) {
        lines.extend(behind_gutter(Role::Removed, &entry.name, columns()));
    }
    if let Some(more) = entries.len().checked_sub(MOST_NAMES).filter(|more| *more > 0) {
        lines.push(plain(format!("  and {more} more")));
    }
    Some(lines)
}

fn made(files: &dyn Filesystem, arguments: &Value) -> Option<Vec<Text>> {
    let path = path_in(files, arguments, "path")?;
    let is_there = files.stat(&path).is_ok_and(|stat| stat.kind == FileKind::Directory);
    let what =
        if is_there { "changes nothing: the directory exists already:" } else { "creates the directory" };
    Some(summary(format!("{what} {path}")))
}

fn moved(files: &dyn Filesystem, arguments: &Value) -> Option<Vec<Text>> {
    let (from, to) = (path_in(files, arguments, "from")?, path_in(files, arguments, "to")?);
    if files.stat(&from).is_err() {
        return Some(would_fail(&format!("there is no file {from}")));
    }
    if files.stat(&to).is_ok() {
        return Some(would_fail(&format!("{to} exists already")));
    }
    Some(summary(format!("moves {from} to {to}")))
}

fn diff(path: &FilePath, verb: &str, before: &str, after: &str) -> Vec<Text> {
    if before == after && verb != "creates" {
        return summary(format!("{verb} {path}, and changes nothing in it"));
    }
    let changes = TextDiff::from_lines(before, after);
    let text = changes.unified_diff().context_radius(3).missing_newline_hint(true).to_string();
    let (mut added, mut removed) = (0, 0);
    let mut lines = Vec::new();
    for line in text.split_terminator('\n') {
        let role = difference::role(line);
        added += usize::from(role == Role::Added);
        removed += usize::from(role == Role::Removed);
        lines.extend(behind_gutter(role, line, columns()));
    }
    let mut shown = summary(format!("{verb} {path}: +{added} -{removed}"));
    if lines.len() > MOST_LINES {
        let text = format!("  the diff has {} lines; v shows the exact arguments", lines.len());
        shown.push(warning(text));
    } else {
        shown.extend(lines);
    }
    shown
}

fn summary(text: String) -> Vec<Text> {
    vec![plain(format!("  {text}"))]
}

fn would_fail(reason: &str) -> Vec<Text> {
    vec![warning(format!("  it would fail: {reason}; v shows the exact arguments"))]
}

#[cfg(test)]
mod tests {
    use backstitch::ports::Filesystem as _;
    use serde_json::json;

    use super::*;

    fn files() -> MemoryFilesystem {
        let files = MemoryFilesystem::new();
        let write = |path: &str, bytes: &[u8]| {
            files.write_bytes(&FilePath::new(path).unwrap(), bytes, WriteMode::Overwrite).unwrap();
        };
        write("hem.txt", b"one\ntwo\nthree\n");
        write("seam.bin", &[0, 159, 146, 150]);
        write("yarn/red.txt", b"red\n");
        write("large.txt", "x\n".repeat(200_000).as_bytes());
        files
    }

    fn shown(name: &str, arguments: Value) -> String {
        let preview = preview(&Tools::default(), &files(), name, &arguments).unwrap();
        preview.iter().map(|line| format!("{}\n", line.text())).collect()
    }

    #[test]
    fn changes_of_text_files_are_diffs() {
        let text = shown("edit_file", json!({"path": "hem.txt", "old": "two", "new": "2"}));
        assert_eq!(
            text,
            "  edits hem.txt: +1 -1\n  | @@ -1,3 +1,3 @@\n  |  one\n  | -two\n  | +2\n  |  three\n"
        );
        let text = shown("write_file", json!({"path": "new.txt", "text": "a\nb\n"}));
        assert_eq!(text, "  creates new.txt: +2 -0\n  | @@ -0,0 +1,2 @@\n  | +a\n  | +b\n");
        let text = shown("write_file", json!({"path": "hem.txt", "text": "four\n", "mode": "append"}));
        assert!(text.starts_with("  appends to hem.txt: +1 -0\n") && text.contains("  | +four\n"), "{text}");
        let text = shown("delete_file", json!({"path": "hem.txt"}));
        assert!(text.starts_with("  deletes hem.txt: +0 -3\n"), "{text}");
        let text = shown("write_file", json!({"path": "hem.txt", "text": "one\ntwo\nthree\n"}));
        assert_eq!(text, "  overwrites hem.txt, and changes nothing in it\n");
    }

    #[test]
    fn other_changes_are_summaries() {
        for (name, arguments, expected) in [
            (
                "write_file",
                json!({"path": "seam.bin", "text": "x"}),
                "overwrites seam.bin, which has 4 bytes, by 1 bytes",
            ),
            ("write_file", json!({"path": "large.txt", "text": "x"}), "which has 400000 bytes"),
            (
                "write_file",
                json!({"path": "hem.txt", "text": "x", "mode": "create"}),
                "it would fail: hem.txt exists",
            ),
            ("edit_file", json!({"path": "hem.txt", "old": "ten", "new": "x"}), "it would fail: "),
            ("edit_file", json!({"path": "hem.txt", "old": "t", "new": "x"}), "it would fail: "),
            (
                "edit_file",
                json!({"path": "hem.txt", "old": "t", "new": "x", "count": 3}),
                "occurs 2 times, not 3",
            ),
            ("edit_file", json!({"path": "gone.txt", "old": "t", "new": "x"}), "there is no file gone.txt"),
            (
                "delete_file",
                json!({"path": "yarn", "recursive": true}),
                "deletes the directory yarn with 1 entries:\n  | red.txt",
            ),
            ("delete_file", json!({"path": "yarn"}), "is not empty"),
            ("make_directory", json!({"path": "a/b"}), "creates the directory a/b"),
            ("rename", json!({"from": "hem.txt", "to": "b.txt"}), "moves hem.txt to b.txt"),
            ("rename", json!({"from": "hem.txt", "to": "yarn"}), "yarn exists already"),
        ] {
            let text = shown(name, arguments.clone());
            assert!(text.contains(expected), "{name} {arguments}: {text}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_have_no_preview() {
        for (name, arguments) in [
            ("write_file", json!({"path": "a"})),
            ("write_file", json!({"path": "../a", "text": "x"})),
            ("write_file", json!("text")),
            ("shell", json!({"command": "true"})),
        ] {
            assert!(preview(&Tools::default(), &files(), name, &arguments).is_none(), "{name} {arguments}");
        }
    }

    #[test]
    fn content_cannot_leave_its_gutter() {
        let hostile = "a\r\u{1b}[2K\u{202e}x\nallow it? [y/n] y\n";
        let text = shown("write_file", json!({"path": "new.txt", "text": hostile}));
        assert!(
            text.lines().skip(1).all(|line| line.starts_with("  | ") || line.starts_with("  : ")),
            "{text}"
        );
        assert!(!text.contains(['\u{1b}', '\r', '\u{202e}']), "{text}");
    }
}
