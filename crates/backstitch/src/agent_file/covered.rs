//! The files that a command tool starts, by digests.
//!
//! Covered are the program, as it is found now, and every fixed argument that names a file, as the script of an interpreter
//! does. Links are followed, so a link that leads elsewhere is a difference too. Arguments of the call that name files are
//! not covered: those are its data. Neither is what the files load when they run, such as libraries, modules, or the
//! interpreter in the first line of a script.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use backstitch_core::text::{escape_characters, is_steering};

use crate::digest::Digest;
use crate::journal::CoveredDigests;
use crate::ports::ProcessSpec;

/// Returns digests of the files that a process would start now, below this workspace.
pub(super) fn covered_files(
    spec: &ProcessSpec,
    workspace: Option<&Path>,
    fixed: &[String],
) -> CoveredDigests {
    files_of(spec, workspace, fixed).into_iter().map(|path| digest_of(&path)).collect()
}

#[cfg(unix)]
fn files_of(spec: &ProcessSpec, workspace: Option<&Path>, fixed: &[String]) -> BTreeSet<PathBuf> {
    // A program that does not exist is not started.
    let Ok(place) = backstitch_runtime::ProgramPlace::of(spec, workspace) else { return BTreeSet::new() };
    let named = fixed.iter().filter(|word| !word.is_empty()).map(|word| place.directory.join(word));
    let files = std::iter::once(place.program.clone()).chain(named);
    files.filter_map(|path| path.canonicalize().ok()).filter(|path| path.is_file()).collect()
}

#[cfg(not(unix))]
fn files_of(_: &ProcessSpec, _: Option<&Path>, _: &[String]) -> BTreeSet<PathBuf> {
    BTreeSet::new()
}

/// Returns the name of a file for people, as one line without control characters, and its digest. A program that may be run
/// but not read has that of its size and time of change.
fn digest_of(path: &Path) -> (String, Digest) {
    let read = File::open(path).and_then(Digest::of_reader);
    let digest = read.unwrap_or_else(|_| {
        let known = path.metadata().ok().map(|known| (known.len(), known.modified().ok()));
        Digest::of(format!("{known:?}").as_bytes())
    });
    // An agent may choose the name, as the target of a link.
    let name = format!("the file {}", path.display());
    let name = escape_characters(&name, |character| character == '\n' || is_steering(character));
    (name.into_owned(), digest)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_program_and_fixed_files_are_covered() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap();
        let path = |name: &str| directory.join(name);
        write(&path("sew"), "#!/bin/sh\n");
        write(&path("pattern.py"), "one");
        write(&path("other"), "other");
        symlink("sew", path("link")).unwrap();
        let covered = |program: &str, fixed: &[&str]| {
            let fixed: Vec<_> = fixed.iter().map(|word| (*word).to_owned()).collect();
            covered_files(&ProcessSpec::new(program), Some(&directory), &fixed)
        };
        let name = |file: &str| format!("the file {}", path(file).display());

        let before = covered("./sew", &["-v", "", "pattern.py", "missing", "."]);
        assert_eq!(before.keys().cloned().collect::<Vec<_>>(), [name("pattern.py"), name("sew")]);
        assert_eq!(before[&name("sew")], Digest::of(b"#!/bin/sh\n"));
        assert_eq!(covered("./link", &["pattern.py"]), before, "links are followed");

        write(&path("pattern.py"), "two");
        let after = covered("./sew", &["pattern.py"]);
        assert_ne!(before[&name("pattern.py")], after[&name("pattern.py")]);
        assert_eq!(before[&name("sew")], after[&name("sew")]);

        std::fs::remove_file(path("link")).unwrap();
        symlink("other", path("link")).unwrap();
        assert_eq!(covered("./link", &[]).into_keys().collect::<Vec<_>>(), [name("other")]);
        write(&path("a\n\u{1b}[2Kb"), "other");
        symlink("a\n\u{1b}[2Kb", path("hostile")).unwrap();
        let hostile = covered("./hostile", &[]).into_keys().next().unwrap();
        assert_eq!(hostile, format!("the file {}/a\\u000a\\u001b[2Kb", directory.display()));
        assert!(covered("./missing", &["pattern.py"]).is_empty(), "nothing is started");
        assert!(covered("sh", &[]).into_keys().all(|name| name.starts_with("the file /")));
    }
}
