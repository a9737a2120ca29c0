//! Which programs are installed, and in which version.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstitch_runtime::EngineError;

use crate::claude_code::ClaudeCode;
use crate::codex::Codex;

/// The most time that a program may take to print its version.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program of an engine, as `doctor` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The name of the engine.
    pub engine: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Where the program is. `None` if it is not installed.
    pub path: Option<PathBuf>,
    /// The version that it prints.
    pub version: Option<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// A program that an engine needs.
pub(crate) struct ProgramNeed {
    pub(crate) engine: &'static str,
    pub(crate) title: &'static str,
    pub(crate) program: &'static str,
    pub(crate) install: &'static str,
    pub(crate) oldest: Version,
}

/// The programs of all engines.
const NEEDS: [&ProgramNeed; 2] = [&ClaudeCode::NEED, &Codex::NEED];

/// Returns the programs of all engines, with their versions. It starts those that are found.
pub fn installations() -> Vec<Installation> {
    NEEDS.iter().map(|need| need.installation()).collect()
}

impl ProgramNeed {
    fn installation(&self) -> Installation {
        let path = find(self.program, std::env::var_os("PATH").as_deref());
        let version = path.as_deref().and_then(version_of);
        let problem = match (&path, version) {
            (None, _) => None,
            (Some(_), None) => Some("it does not print its version".to_owned()),
            (Some(_), Some(version)) if version < self.oldest => {
                Some(format!("{} or newer is needed", self.oldest))
            }
            _ => None,
        };
        let version = version.map(|version| version.to_string());
        Installation { engine: self.engine, title: self.title, path, version, problem }
    }

    /// Finds the program, in a version that can be used.
    pub(crate) fn find(&self) -> Result<PathBuf, EngineError> {
        let Some(path) = find(self.program, std::env::var_os("PATH").as_deref()) else {
            return Err(EngineError::Missing {
                title: self.title.to_owned(),
                program: self.program.to_owned(),
                install: self.install.to_owned(),
            });
        };
        let needed = self.oldest.to_string();
        let refused = |found: String| EngineError::Version { title: self.title.to_owned(), found, needed };
        match version_of(&path) {
            Some(version) if version >= self.oldest => Ok(path),
            Some(version) => Err(refused(version.to_string())),
            None => Err(EngineError::Start {
                title: self.title.to_owned(),
                reason: format!("{} does not print its version", path.display()),
            }),
        }
    }
}

/// A version of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl Version {
    /// Finds the first version in a text, such as `codex-cli 0.166.0`.
    pub(crate) fn in_text(text: &str) -> Option<Self> {
        let words = text.split(|one: char| !(one.is_ascii_digit() || one == '.'));
        words.into_iter().find_map(|word| {
            let mut parts = word.split('.').map(|part| part.parse().ok());
            Some(Self(parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

fn find(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let can_run = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path?)
        .filter(|place| place.is_absolute())
        .map(|place| place.join(program))
        .find(can_run)
}

/// Asks a program for its version.
fn version_of(program: &Path) -> Option<Version> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(child.stdout.take()?, 4_096), &mut text).ok()?;
    Version::in_text(&String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_texts_and_compared_by_number() {
        assert_eq!(Version::in_text("2.1.197 (Claude Code)"), Some(Version(2, 1, 197)));
        assert_eq!(Version::in_text("codex-cli 0.166.0-alpha.2"), Some(Version(0, 166, 0)));
        assert_eq!(Version::in_text("v3.0"), Some(Version(3, 0, 0)));
        for text in ["", "unknown", "99999999999.1.1", "1..2"] {
            assert_eq!(Version::in_text(text), None, "{text}");
        }
        assert!(Version(2, 10, 0) > Version(2, 9, 9));
    }
}
