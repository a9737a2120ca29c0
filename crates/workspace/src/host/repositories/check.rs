//! Compares the guarded files of repositories before and after a call, and decides what is restored.
//!
//! Entries of settings that git itself writes are kept, and named. Everything else that changed in a known
//! repository is restored. A new repository loses the sensitive entries of its settings, and its hooks. A
//! repository is known by its path, or by its directory if that was moved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backstitch_filesystem::format::names::{join, split};

use super::find::Repositories;
use super::guarded::{Bytes, GuardedFile, GuardedFiles, GuardedRepository};
use super::settings::Settings;

/// A change of a guarded file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GuardedChange {
    pub(super) path: Vec<u8>,
    /// Keys of the settings that changed, if they are known.
    pub(super) keys: Vec<String>,
    pub(super) repair: Repair,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// The change is harmless, or cannot be undone.
    None,
    Write(GuardedFile),
    Remove,
}

/// Compares two states. `found` belongs to the later one.
pub(super) fn compare(
    root: &Path,
    before: &GuardedFiles,
    after: &GuardedFiles,
    found: &Repositories,
) -> Vec<GuardedChange> {
    let mut changes = Vec::new();
    for (path, repository) in &after.repositories {
        let moved = || before.repositories.values().find(|known| known.identity == repository.identity);
        match before.repositories.get(path).or_else(moved) {
            Some(known) => compare_known(&path.0, known, repository, &mut changes),
            None => check_new(&path.0, repository, &mut changes),
        }
    }
    let own = Bytes(b".git".to_vec());
    if before.repositories.contains_key(&own)
        && !after.repositories.contains_key(&own)
        && !after.pointers.contains_key(&own)
    {
        changes.push(GuardedChange { path: own.0.clone(), keys: Vec::new(), repair: Repair::None });
    }
    let worktrees =
        |pointer: &[u8]| -> Option<PathBuf> { Some(found.pointers.get(pointer)?.as_ref()?.parent()?.into()) };
    for (path, pointer) in &after.pointers {
        let repair = match before.pointers.get(path) {
            Some(known) if known == pointer => continue,
            Some(known) => Repair::Write(known.clone()),
            // A new worktree of the same repository, or a repository that is checked itself.
            None if worktrees(&path.0).is_some_and(|above| {
                above.starts_with(root)
                    || before.pointers.contains_key(&own) && worktrees(&own.0) == Some(above)
            }) =>
            {
                continue;
            }
            None => Repair::Remove,
        };
        changes.push(GuardedChange { path: path.0.clone(), keys: Vec::new(), repair });
    }
    // What is in the place of a directory has to be removed before the directory is filled.
    changes.sort_by_key(|change| matches!(change.repair, Repair::Write(_)));
    changes
}

fn compare_known(
    path: &[u8],
    before: &GuardedRepository,
    after: &GuardedRepository,
    changes: &mut Vec<GuardedChange>,
) {
    let names: BTreeSet<_> = before.files.keys().chain(after.files.keys()).collect();
    for name in names {
        let (then, now) = (before.files.get(name), after.files.get(name));
        if then == now {
            continue;
        }
        let parsed = |file| Settings::parse(GuardedFile::text(file)?, is_module(path)).ok();
        let settings = if is_settings(&name.0) { parsed(then).zip(parsed(now)) } else { None };
        let is_harmless = settings.as_ref().is_some_and(|(then, now)| then.is_as_sensitive(now));
        let repair = match then {
            _ if is_harmless => Repair::None,
            Some(then) => Repair::Write(then.clone()),
            None => Repair::Remove,
        };
        let keys = settings.map(|(then, now)| then.changed_keys(&now)).unwrap_or_default();
        // Another spelling or order of harmless entries is not worth a word.
        if !(is_harmless && keys.is_empty()) {
            changes.push(GuardedChange { path: join(path, &name.0), keys, repair });
        }
    }
}

fn check_new(path: &[u8], repository: &GuardedRepository, changes: &mut Vec<GuardedChange>) {
    for (name, file) in &repository.files {
        let (repair, keys) = match (&*name.0, file) {
            (name, file) if is_settings(name) => match settings_without(path, file) {
                Ok(None) => continue,
                Ok(Some((bytes, mode, keys))) => {
                    (Repair::Write(GuardedFile::File { mode, bytes: Bytes(bytes) }), keys)
                }
                Err(()) => (Repair::Remove, Vec::new()),
            },
            (b"commondir", GuardedFile::File { bytes, .. })
                if bytes.0.trim_ascii() == b"../.." && split(split(path).0).1 == b"worktrees" =>
            {
                continue;
            }
            (name, _) if name.starts_with(b"info") => continue,
            _ => (Repair::Remove, Vec::new()),
        };
        changes.push(GuardedChange { path: join(path, &name.0), keys, repair });
    }
}

/// Returns a settings file without its sensitive entries, and their keys. `None` if it has none.
#[allow(clippy::type_complexity, reason = "its only caller takes it apart at once")]
fn settings_without(path: &[u8], file: &GuardedFile) -> Result<Option<(Vec<u8>, u32, Vec<String>)>, ()> {
    let GuardedFile::File { mode, bytes } = file else { return Err(()) };
    let settings = Settings::parse(&bytes.0, is_module(path)).map_err(|_| ())?;
    let keys: Vec<_> = settings.sensitive().map(|entry| entry.key.clone()).collect();
    Ok((!keys.is_empty()).then(|| (settings.without_sensitive(&bytes.0), *mode, keys)))
}

fn is_settings(name: &[u8]) -> bool {
    matches!(name, b"config" | b"config.worktree")
}

/// True for the repository of a submodule, whose settings name its working tree.
fn is_module(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|name| name == b"modules")
}
