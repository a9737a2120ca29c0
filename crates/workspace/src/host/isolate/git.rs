//! Gives a copy a repository of its own.
//!
//! HEAD, the index, references, configuration and hooks are copied. Objects are borrowed through `objects/info/alternates`, so
//! that git works in the copy, writes only there, and costs no space. The `.git` of a linked worktree or of a submodule is a file
//! that names a directory; the copy gets a plain directory with the same content, and configuration that makes git use it.
//! Linked worktrees of the original, lock files, and the content of LFS and annex (unless it can be copied by reference) are
//! left out.
//!
//! The copy depends on the objects of the original: if those are pruned there, they are missing here.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use backstitch_core::ports::UncoveredReason;

use super::IsolateError;
use super::copy::CopyWalk;
use crate::host::sys::is_gone;

/// Entries of a repository that belong to the original alone, or that are handled apart.
const OWN: [&str; 7] = ["objects", "worktrees", "modules", "commondir", "gitdir", "gc.pid", "index.lock"];

/// Directories with large content.
const LARGE: [&str; 2] = ["lfs", "annex"];

/// Most levels of names below `modules`.
const MOST_DEPTH: usize = 16;

/// Creates the repository of a copy at `target`, which is going to be renamed to `directory`.
pub(super) fn repository(
    copying: &mut CopyWalk,
    project: &Path,
    target: &Path,
    directory: &Path,
) -> Result<(), IsolateError> {
    let dot = project.join(".git");
    let Ok(found) = fs::symlink_metadata(&dot) else { return Ok(()) };
    let broken = |reason: &str| IsolateError::Repository { path: dot.clone(), reason: reason.to_owned() };
    let git = if found.is_file() {
        let content = fs::read(&dot).map_err(IsolateError::at(&dot))?;
        let named = content.strip_prefix(b"gitdir:").ok_or_else(|| broken("the file names no directory"))?;
        project.join(OsStr::from_bytes(named.trim_ascii()))
    } else {
        dot.clone()
    };
    let git = fs::canonicalize(&git).map_err(|error| broken(&format!("{}: {error}", git.display())))?;
    if !git.is_dir() {
        return Err(broken("it is not a directory"));
    }
    let common = match fs::read(git.join("commondir")) {
        Ok(named) => {
            let named = git.join(OsStr::from_bytes(named.trim_ascii()));
            fs::canonicalize(&named).map_err(|error| broken(&format!("{}: {error}", named.display())))?
        }
        Err(_) => git.clone(),
    };
    let target = target.join(".git");
    entries(copying, &git, &target)?;
    if common != git {
        entries(copying, &common, &target)?;
    }
    borrow(&common, &target)?;
    modules(copying, &common.join("modules"), &target.join("modules"), 0)?;
    let config = fs::read(target.join("config")).unwrap_or_default();
    let names_files = config.to_ascii_lowercase().windows(8).any(|word| word == b"worktree");
    if !found.is_dir() || names_files {
        for file in ["config", "config.worktree"].map(|name| target.join(name)) {
            if file.exists() {
                claim(&file, directory).map_err(IsolateError::at(&file))?;
            }
        }
    }
    Ok(())
}

/// Copies the entries of a repository, except for objects and what belongs to the original alone. What exists already stays.
fn entries(copying: &mut CopyWalk, git: &Path, target: &Path) -> Result<(), IsolateError> {
    fs::create_dir_all(target).map_err(IsolateError::at(target))?;
    let mut directories = Vec::new();
    for entry in fs::read_dir(git).map_err(IsolateError::at(git))? {
        let entry = entry.map_err(IsolateError::at(git))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(IsolateError::at(&path))?;
        let is_own = OWN.iter().any(|own| name == **own) || name.as_bytes().ends_with(b".lock");
        let to = target.join(&name);
        if is_own || (to.symlink_metadata().is_ok() && !kind.is_dir()) {
            continue;
        } else if kind.is_dir() {
            directories.push((path, to, name));
        } else if kind.is_symlink() {
            if let Some(link) = unless_gone(fs::read_link(&path)).map_err(IsolateError::at(&path))? {
                std::os::unix::fs::symlink(link, &to).map_err(IsolateError::at(&to))?;
            }
        } else if kind.is_file() {
            unless_gone(fs::copy(&path, &to)).map_err(IsolateError::at(&path))?;
        }
    }
    for (path, to, name) in directories {
        let shown = format!(".git/{}", name.to_string_lossy());
        if LARGE.iter().any(|large| name == **large) && copying.reflinks != Some(true) {
            copying.leave_out(shown.as_bytes(), UncoveredReason::IgnoredBudget, None);
            continue;
        }
        copying.repository(&path, &to, &shown)?;
    }
    Ok(())
}

/// Returns `None` for a file that git has removed since its directory was read.
fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if is_gone(&error) => Ok(None),
        done => done.map(Some),
    }
}

/// Makes a repository use the objects of another.
fn borrow(git: &Path, target: &Path) -> Result<(), IsolateError> {
    let objects = target.join("objects");
    let objects_of = fs::canonicalize(git.join("objects")).map_err(IsolateError::at(&git.join("objects")))?;
    for directory in ["info", "pack"].map(|name| objects.join(name)) {
        fs::create_dir_all(&directory).map_err(IsolateError::at(&directory))?;
    }
    let mut lenders = vec![objects_of.clone()];
    // Paths of these are relative to the directory of the original.
    let further = fs::read(objects_of.join("info/alternates")).unwrap_or_default();
    for line in further.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
        lenders.extend(fs::canonicalize(objects_of.join(OsStr::from_bytes(line))).ok());
    }
    let mut text = Vec::new();
    for lender in lenders {
        let bytes = lender.into_os_string().into_vec();
        if bytes.contains(&b'\n') || bytes.starts_with(b"\"") || bytes.starts_with(b"#") {
            let reason = "git cannot borrow objects from a path with this name".to_owned();
            return Err(IsolateError::Repository { path: git.to_owned(), reason });
        }
        text.extend(bytes);
        text.push(b'\n');
    }
    let alternates = objects.join("info/alternates");
    fs::write(&alternates, text).map_err(IsolateError::at(&alternates))
}

/// Copies the repositories of submodules, which lie in the repository around them.
fn modules(copying: &mut CopyWalk, from: &Path, target: &Path, depth: usize) -> Result<(), IsolateError> {
    let Ok(found) = fs::read_dir(from) else { return Ok(()) };
    for entry in found.flatten().filter(|entry| entry.path().is_dir()) {
        let (path, to) = (entry.path(), target.join(entry.file_name()));
        if path.join("HEAD").is_file() && path.join("objects").is_dir() {
            entries(copying, &path, &to)?;
            borrow(&path, &to)?;
            modules(copying, &path.join("modules"), &to.join("modules"), depth + 1)?;
        } else if depth < MOST_DEPTH {
            modules(copying, &path, &to, depth + 1)?;
        }
    }
    Ok(())
}

/// Makes git use the directory of the copy, whatever the configuration of the original says.
fn claim(config: &Path, directory: &Path) -> std::io::Result<()> {
    let mut quoted = Vec::new();
    for byte in PathBuf::from(directory).into_os_string().into_vec() {
        match byte {
            b'\n' => quoted.extend(b"\\n"),
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            _ => quoted.push(byte),
        }
    }
    let mut file = fs::OpenOptions::new().append(true).open(config)?;
    file.write_all(b"\n# Of this copy.\n[core]\n\tbare = false\n\tworktree = \"")?;
    file.write_all(&quoted)?;
    file.write_all(b"\"\n")
}
