//! Isolated workspaces: where the copies of projects are kept, and how they are made.
//!
//! The copies of a store lie together in one directory of the user's state directory, beside the stores. If the project is on
//! another file system, and that one copies by reference, they lie beside the project. Each copy is a directory with the id of
//! its session, and in it the files in a directory with the name of the project.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use backstitch_runtime::DirectoryError;
use backstitch_workspace::{
    CopyOptions, IgnoredBudget, ProjectCopy, UnclaimedCopy, copy_project, supports_reflinks, unclaimed_copies,
};

use crate::digest::Digest;
use crate::id::SessionId;
use crate::stores::{self, StoresError};

/// Name of the directory of all copies beside a project.
const BESIDE: &str = ".backstitch-copies";

/// Returns the directory of the copies of a store in the user's state directory. The store is named by its directory.
pub fn copies_of(store_directory: &Path) -> Result<PathBuf, StoresError> {
    Ok(stores::state_directory()?.join("copies").join(key(store_directory)))
}

/// Returns the directories that may hold copies of a project.
pub fn places(store_directory: &Path, project: &Path) -> Vec<PathBuf> {
    let own = copies_of(store_directory).ok();
    let beside = project.parent().map(|parent| parent.join(BESIDE).join(key(store_directory)));
    own.into_iter().chain(beside).filter(|place| place.is_dir()).collect()
}

/// Copies a project for a session to a directory of copies, by default to that of the store.
pub fn copy_for(
    place: Option<PathBuf>,
    store_directory: &Path,
    project: &Path,
    session: SessionId,
) -> Result<ProjectCopy, DirectoryError> {
    let place = match place {
        Some(place) => place,
        None => place_for(store_directory, project)
            .map_err(|error| DirectoryError::Copy { code: error.code(), source: error.into() })?,
    };
    let (name, ignored) = (session.to_string(), IgnoredBudget::default());
    copy_project(CopyOptions { project, place: &place, name: &name, store_directory, ignored })
        .map_err(|error| DirectoryError::Copy { code: error.code(), source: error.into() })
}

/// Returns the directory that a copy may be removed with: the one that is named after its session. `None` if the directory of
/// the session's files does not lie in a place of copies: a record may come from elsewhere.
pub fn copy_of(directory: &Path, session: SessionId) -> Option<&Path> {
    let copy = directory.parent()?;
    let is_plain =
        directory.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_own = copy.file_name().is_some_and(|name| *name == *session.to_string());
    let all = stores::state_directory().map(|state| state.join("copies")).ok();
    let all = all.into_iter().flat_map(|all| [all.canonicalize().ok(), Some(all)]).flatten();
    let is_beside = copy.parent()?.parent()?.file_name().is_some_and(|name| name == BESIDE);
    let is_in_place = is_beside || all.into_iter().any(|all| copy.starts_with(all));
    (is_plain && is_own && is_in_place).then_some(copy)
}

/// Returns the copies that no process is making or using. Those that belong to no session of the store, asked after this, may be
/// removed.
pub fn unclaimed(store_directory: &Path, project: &Path) -> Vec<UnclaimedCopy> {
    let places = places(store_directory, project);
    places.iter().flat_map(|place| unclaimed_copies(place)).collect()
}

fn place_for(store_directory: &Path, project: &Path) -> Result<PathBuf, StoresError> {
    let own = copies_of(store_directory)?;
    let device =
        |path: &Path| path.ancestors().find_map(|path| path.metadata().ok()).map(|found| found.dev());
    let parent = project.parent().filter(|parent| device(parent) == device(project));
    match parent {
        Some(parent) if device(&own) != device(project) && supports_reflinks(parent) => {
            Ok(parent.join(BESIDE).join(key(store_directory)))
        }
        _ => Ok(own),
    }
}

/// A name for the copies of a store: that of its directory, with a digest of its path.
fn key(store_directory: &Path) -> String {
    let path = store_directory.canonicalize().unwrap_or_else(|_| store_directory.to_owned());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String =
        name.chars().filter(|one| one.is_ascii_alphanumeric() || *one == '-').take(40).collect();
    let digest = Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
    format!("{name}-{}", &digest[digest.len() - 12..])
}
