//! Which programs are installed, in which version, and which versions can be engines.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstitch_runtime::EngineError;

use crate::program::Program;
use crate::relay::RelayCommand;

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

/// What an engine needs of its program.
struct ProgramNeed {
    program: Program,
    command: &'static str,
    install: &'static str,
    oldest: Version,
    /// The variables with the API keys or tokens that it uses if it is not logged in.
    keys: [&'static str; 2],
}

const CLAUDE_CODE: ProgramNeed = ProgramNeed {
    program: Program::ClaudeCode,
    command: "claude",
    install: "Install it with `npm install -g @anthropic-ai/claude-code`, and log in with `claude`",
    oldest: Version(2, 1, 0),
    keys: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
};

const CODEX: ProgramNeed = ProgramNeed {
    program: Program::Codex,
    command: "codex",
    install: "Install it with `npm install -g @openai/codex`, and log in with `codex login`",
    oldest: Version(0, 160, 0),
    keys: ["OPENAI_API_KEY", "CODEX_API_KEY"],
};

/// Returns the programs of all engines, with their versions. It starts those that are found.
pub fn installations() -> Vec<Installation> {
    Program::ALL.into_iter().map(|program| need_of(program).installation()).collect()
}

/// A program that is an engine.
pub(crate) struct InstalledProgram {
    pub(crate) program: Program,
    pub(crate) path: PathBuf,
    /// The variables with keys, which are not in the environment of this process.
    pub(crate) keys: Vec<(&'static str, String)>,
    /// The command by which it reaches the tools of its agent.
    pub(crate) relay: RelayCommand,
}

impl InstalledProgram {
    /// Finds a program, in a version that can be used. `key` returns the API key in an environment variable.
    pub(crate) fn find(
        program: Program,
        key: fn(&str) -> Option<String>,
        relay: RelayCommand,
    ) -> Result<Self, EngineError> {
        let need = need_of(program);
        let keys = need.keys.iter().filter_map(|name| Some((*name, key(name)?))).collect();
        Ok(Self { program, path: need.find()?, keys, relay })
    }
}

fn need_of(program: Program) -> &'static ProgramNeed {
    match program {
        Program::ClaudeCode => &CLAUDE_CODE,
        Program::Codex => &CODEX,
    }
}

impl ProgramNeed {
    fn installation(&self) -> Installation {
        let path = find(self.command, std::env::var_os("PATH").as_deref());
        let version = path.as_deref().and_then(version_of);
        let problem = match (&path, version) {
            (Some(_), None) => Some("it does not print its version".to_owned()),
            (Some(_), Some(version)) if version < self.oldest => {
                Some(format!("{} or newer is needed", self.oldest))
            }
            _ => None,
        };
        let version = version.map(|version| version.to_string());
        Installation { engine: self.program.name(), title: self.program.title(), path, version, problem }
    }

    fn find(&self) -> Result<PathBuf, EngineError> {
        let title = self.program.title().to_owned();
        let Some(path) = find(self.command, std::env::var_os("PATH").as_deref()) else {
            let (program, install) = (self.command.to_owned(), self.install.to_owned());
            return Err(EngineError::Missing { title, program, install });
        };
        let needed = self.oldest.to_string();
        match version_of(&path) {
            Some(version) if version >= self.oldest => Ok(path),
            Some(version) => Err(EngineError::Version { title, found: version.to_string(), needed }),
            None => {
                let reason = format!("{} does not print its version", path.display());
                Err(EngineError::Start { title, reason })
            }
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
    let places = std::env::split_paths(path?).filter(|place| place.is_absolute());
    places.map(|place| place.join(program)).find(can_run)
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
