//! Checks before a process is started.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use backstitch_core::id::CallId;
use backstitch_core::ports::{ProcessError, ProcessSpec};
use backstitch_filesystem::FilePath;

use super::Directories;
use super::identity::MARK;
use super::sandbox::{Confinement, SharedDirectory};

/// The search path of programs without a `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A checked program, with its arguments and environment.
pub(super) struct PreparedProcess {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, Option<String>)>,
    pub(super) directory: PathBuf,
    pub(super) input: Vec<u8>,
    pub(super) confinement: Option<Confinement>,
    /// The beginning of the path of the file about when it ran, and the directory of the files that it may write.
    pub(super) times: Option<(PathBuf, PathBuf)>,
}

impl PreparedProcess {
    pub(super) fn new(
        call: CallId,
        spec: ProcessSpec,
        directories: &Directories,
        temporary: &SharedDirectory,
    ) -> Result<Self, ProcessError> {
        let root = directories.root.as_deref();
        let place = ProgramPlace::of(&spec, root);
        for (number, argument) in std::iter::once(&spec.program).chain(&spec.arguments).enumerate() {
            refuse_nul(argument, || format!("argument {number}"))?;
        }
        let mut environment: Vec<_> = spec.environment.into_iter().collect();
        for (name, value) in &environment {
            let what = || format!("the variable {name:?}");
            if name.is_empty() || name.contains('=') {
                return Err(ProcessError::Invalid {
                    what: what(),
                    reason: "this is not a name of a variable",
                });
            }
            refuse_nul(name, what)?;
            value.as_ref().map_or(Ok(()), |value| refuse_nul(value, what))?;
        }
        let ProgramPlace { program, directory } = place?;
        environment.push((MARK.to_owned(), Some(call.to_string())));
        let own = directories.own.as_deref();
        let confinement = Confinement::new(&spec.sandbox, root, own, (call, temporary))?;
        if let Some(confinement) = &confinement
            && !environment.iter().any(|(name, _)| name == "TMPDIR")
        {
            let path = confinement.temporary.path().display().to_string();
            environment.push(("TMPDIR".to_owned(), Some(path)));
        }
        let times = directories.times.clone().zip(directories.root.clone());
        let (arguments, input) = (spec.arguments, spec.input);
        Ok(Self { program, arguments, environment, directory, input, confinement, times })
    }
}

impl PreparedProcess {
    /// Returns the mark of its call.
    pub(super) fn mark(&self) -> Option<&str> {
        let mark = self.environment.iter().find(|(name, _)| name == MARK);
        mark.and_then(|(_, value)| value.as_deref()).filter(|mark| !mark.is_empty())
    }
}

/// What a process starts, as it is found now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPlace {
    /// The file of the program. Links are not followed.
    pub program: PathBuf,
    /// The directory that it runs in.
    pub directory: PathBuf,
}

impl ProgramPlace {
    /// Finds the program of a process below this workspace, as if it were started now.
    pub fn of(spec: &ProcessSpec, workspace: Option<&Path>) -> Result<Self, ProcessError> {
        let directory = match &spec.directory {
            None => PathBuf::from("/"),
            Some(directory) => directory_below(workspace, directory)?,
        };
        let path = match spec.environment.get("PATH") {
            Some(value) => value.as_ref().map(OsString::from),
            None => std::env::var_os("PATH"),
        };
        let program = find(&spec.program, &directory, path.as_deref());
        let program = program.ok_or_else(|| ProcessError::NotFound { program: spec.program.clone() })?;
        Ok(Self { program, directory })
    }
}

fn refuse_nul(text: &str, what: impl FnOnce() -> String) -> Result<(), ProcessError> {
    if text.contains('\0') {
        Err(ProcessError::Invalid { what: what(), reason: "it holds a NUL byte" })
    } else {
        Ok(())
    }
}

/// Resolves a directory of the workspace. Links are followed as long as they stay inside.
fn directory_below(root: Option<&Path>, directory: &FilePath) -> Result<PathBuf, ProcessError> {
    let refuse = |reason: &str| ProcessError::Directory {
        directory: directory.to_string(),
        reason: reason.to_owned(),
    };
    let root = root.ok_or_else(|| refuse("these files are not on the disk, so no process can see them"))?;
    let root = root.canonicalize().map_err(|error| refuse(&error.to_string()))?;
    let found = root.join(directory.as_str()).canonicalize().map_err(|error| refuse(&error.to_string()))?;
    match (found.starts_with(&root), found.is_dir()) {
        (false, _) => Err(refuse("it leads out of the workspace")),
        (_, false) => Err(refuse("it is not a directory")),
        _ => Ok(found),
    }
}

fn find(program: &str, directory: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let can_run = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    match program {
        "" => None,
        _ if program.contains('/') => Some(directory.join(program)).filter(can_run),
        _ => std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
            .map(|place| directory.join(place).join(program))
            .find(can_run),
    }
}
