//! What the guard has to know from the settings of Claude Code.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::{Scope, file_of};
use crate::program::Program;

/// Returns the settings files of a project and of the user that exist and can be read. What is nearer to the project comes first.
fn files(project: &Path) -> impl Iterator<Item = (PathBuf, Value)> {
    let files = [
        Some(project.join(".claude/settings.local.json")),
        Some(project.join(".claude/settings.json")),
        file_of(Program::ClaudeCode, Scope::User, project),
    ];
    files.into_iter().flatten().filter_map(|path| {
        let settings = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some((path, settings))
    })
}

/// Returns the settings file that turns all hooks off, if one does. What is nearer to the project counts more.
pub fn disabled_by(project: &Path) -> Option<PathBuf> {
    let mut flags = files(project)
        .filter_map(|(path, settings)| Some((path, settings.get("disableAllHooks")?.as_bool()?)));
    flags.next().and_then(|(path, is_disabled)| is_disabled.then_some(path))
}

/// Returns the directories beside a project that settings add to it. Those of a command line are not known.
pub fn added_directories(project: &Path) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for (_, settings) in files(project) {
        let added = settings.pointer("/permissions/additionalDirectories").and_then(Value::as_array);
        let added =
            added.into_iter().flatten().filter_map(Value::as_str).map(|path| plain(&project.join(path)));
        directories.extend(added.filter(|path| !path.starts_with(project)));
    }
    directories.sort();
    directories.dedup();
    directories
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_nearer_to_the_project_counts_more() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path();
        fs::create_dir(project.join(".claude")).unwrap();
        let shared = project.join(".claude/settings.json");
        fs::write(
            &shared,
            r#"{"disableAllHooks": true, "permissions": {"additionalDirectories": ["../b", "in", 7]}}"#,
        )
        .unwrap();
        assert_eq!(disabled_by(project), Some(shared));
        let added = added_directories(project);
        assert!(added.contains(&project.parent().unwrap().join("b")), "{added:?}");
        assert!(!added.contains(&project.join("in")), "{added:?}");
        fs::write(project.join(".claude/settings.local.json"), r#"{"disableAllHooks": false}"#).unwrap();
        assert_eq!(disabled_by(project), None);
    }
}
