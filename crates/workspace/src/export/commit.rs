//! Commits in git's format.

use backstitch_core::object::{Object, ObjectId, ObjectKind};

use super::ExportCommit;

/// Encodes a commit as an object.
pub(super) fn encode(commit: &ExportCommit, tree: ObjectId, parents: &[ObjectId]) -> Object {
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text.push_str(&format!("parent {parent}\n"));
    }
    let seconds = commit.time.unix_micros().div_euclid(1_000_000).max(0);
    let name = plain(&commit.author.name, "unknown");
    let email = plain(&commit.author.email, "unknown");
    for role in ["author", "committer"] {
        text.push_str(&format!("{role} {name} <{email}> {seconds} +0000\n"));
    }
    text.push('\n');
    text.push_str(&commit.message.replace('\0', ""));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Object::new(ObjectKind::Commit, text.into_bytes())
}

/// Removes characters that would end a name or an address.
fn plain(text: &str, otherwise: &str) -> String {
    let kept: String =
        text.chars().filter(|character| !matches!(character, '<' | '>') && !character.is_control()).collect();
    let kept =
        kept.trim_matches(|character: char| character.is_whitespace() || ".,:;\"\\'".contains(character));
    if kept.is_empty() { otherwise.to_owned() } else { kept.to_owned() }
}

/// Returns whether git accepts this name for a branch. The check refuses some names that git would accept.
pub(super) fn is_branch(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('-')
        && name.split('/').all(|part| {
            !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.ends_with(".lock")
        })
        && !name.contains("..")
        && name.chars().all(|character| character.is_alphanumeric() || "-_./+".contains(character))
}
