//! Child processes: what a tool may start, and what comes of it.
//!
//! A [`ProcessSpec`] is plain data. Whoever starts it sees to it that the process and its children form a group of their own,
//! that the group is in the journal before the program does anything, and that it ends with the program, with the call, and
//! with the runtime, however that ends. A process that leaves its group (`setsid`) is ended with the call, by the mark that it
//! has inherited; one that erased its environment and whose parent has ended is out of reach.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::FilePath;
use crate::code::ErrorCode;
use crate::secrets::Secrets;
use crate::session::BoxError;

/// A program to run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program: a name that is looked up in `PATH`, or a path. A relative path starts at the directory below.
    pub program: String,
    /// What it is given.
    pub arguments: Vec<String>,
    /// What its environment has besides the runtime's own, or lacks where the value is none.
    pub environment: BTreeMap<String, Option<String>>,
    /// Where it runs, below the workspace. Without one it runs at the root of the system and is given no files.
    pub directory: Option<FilePath>,
    /// What it reads.
    pub input: Vec<u8>,
    /// How much of what it writes is kept.
    pub caps: OutputCaps,
    /// How long it may take. It and all that it started are then killed, and what it wrote so far is given.
    pub timeout: Option<Duration>,
}

impl ProcessSpec {
    /// A program without arguments that runs at the root of the workspace.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: Some(FilePath::root()),
            input: Vec::new(),
            caps: OutputCaps::default(),
            timeout: None,
        }
    }

    /// A command for the shell.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::new("/bin/sh").arg("-c").arg(command)
    }

    /// Gives one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Gives more arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), Some(value.into()));
        self
    }

    /// Keeps a variable of the runtime from it, such as a key.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<String>) -> Self {
        self.environment.insert(name.into(), None);
        self
    }

    /// Runs it in a directory of the workspace.
    #[must_use]
    pub fn in_directory(mut self, directory: FilePath) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Runs it outside of the workspace, at the root of the system.
    #[must_use]
    pub fn without_files(mut self) -> Self {
        self.directory = None;
        self
    }

    /// Gives it something to read.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Says how much of what it writes is kept.
    #[must_use]
    pub fn caps(mut self, caps: OutputCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Says how long it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// How much of each stream is kept: so many bytes of its beginning and so many of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputCaps {
    /// Bytes of the beginning.
    pub head: usize,
    /// Bytes of the end.
    pub tail: usize,
}

impl Default for OutputCaps {
    fn default() -> Self {
        Self { head: 32 * 1024, tail: 32 * 1024 }
    }
}

/// What came of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// How it ended.
    pub exit: ProcessExit,
    /// What it wrote as its result.
    pub stdout: ProcessOutput,
    /// What it wrote beside its result.
    pub stderr: ProcessOutput,
}

impl ProcessOutcome {
    /// Whether it ended with code 0.
    pub fn success(&self) -> bool {
        self.exit == ProcessExit::Code(0)
    }

    /// Replaces keys in the output, also the half of one that was cut in two.
    #[must_use]
    pub fn redacted(mut self, secrets: &Secrets) -> Self {
        if !secrets.is_empty() {
            for ProcessOutput { head, cut, tail } in [&mut self.stdout, &mut self.stderr] {
                secrets.redact_pieces(head, *cut > 0, tail);
            }
        }
        self
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It took longer than it might, and was killed with all that it had started.
    TimedOut,
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "killed by signal {signal}"),
            Self::TimedOut => formatter.write_str("killed, because it took too long"),
        }
    }
}

/// What a process wrote to one stream, as much as was to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The beginning; all of it when nothing was left out.
    pub head: Vec<u8>,
    /// How many bytes after the beginning were left out.
    pub cut: u64,
    /// The end, after what was left out.
    pub tail: Vec<u8>,
}

impl ProcessOutput {
    /// What was kept as text, with a line in place of what was left out.
    pub fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        match self.cut {
            0 => String::from_utf8_lossy(&[&*self.head, &*self.tail].concat()).into_owned(),
            cut => format!("{head}\n[{cut} bytes left out]\n{tail}"),
        }
    }
}

/// A process could not be started, or could not be ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The call has ended or was stopped.
    #[error("the call has ended; it can start nothing more")]
    Ended,
    /// There is no such program.
    #[error("there is no program {program:?} that can be run")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The directory is no directory of the workspace.
    #[error("{directory:?} is no directory to run in: {reason}")]
    Directory {
        /// The directory.
        directory: String,
        /// Why not.
        reason: String,
    },
    /// An argument or a variable cannot be given to a process.
    #[error("{what} cannot be given to a process: {reason}")]
    Invalid {
        /// Which one.
        what: String,
        /// Why not.
        reason: &'static str,
    },
    /// The system refused.
    #[error("{program:?} could not be started")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: BoxError,
    },
    /// That it was about to start could not be recorded, so it was not started.
    #[error("{program:?} was not started, because that could not be recorded")]
    NotRecorded {
        /// The program.
        program: String,
        /// What happened.
        #[source]
        source: BoxError,
    },
    /// It was killed and does not go away.
    #[error("process group {group} was killed and is still there")]
    Survives {
        /// The group, or the one process of it that was found.
        group: u32,
    },
    /// There are no processes here.
    #[error("processes are not supported here")]
    Unsupported,
}

impl ProcessError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Ended
            | Self::NotFound { .. }
            | Self::Directory { .. }
            | Self::Invalid { .. }
            | Self::Start { .. }
            | Self::NotRecorded { .. }
            | Self::Survives { .. } => ErrorCode::Process,
            Self::Unsupported => ErrorCode::PlatformUnsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SHORTEST;

    const KEY: &str = "sk-test-0123456789abcdef";

    #[test]
    fn a_key_that_was_cut_in_two_is_replaced_as_well() {
        let secrets = Secrets::new([KEY]);
        let bytes = format!("begin {KEY} end").into_bytes();
        for at in 0..=bytes.len() {
            for cut in [0, 10] {
                let (head, tail) = bytes.split_at(at);
                let output = ProcessOutput { head: head.to_vec(), cut, tail: tail.to_vec() };
                let outcome = ProcessOutcome {
                    exit: ProcessExit::Code(0),
                    stdout: output.clone(),
                    stderr: ProcessOutput::default(),
                };
                let text = outcome.redacted(&secrets).stdout.text();
                assert!(!text.contains(&KEY[..SHORTEST]), "{at} {cut}: {text}");
                assert!(!text.contains(&KEY[KEY.len() - SHORTEST..]), "{at} {cut}: {text}");
                if cut == 0 {
                    assert_eq!(text, "begin [secret] end", "{at}");
                }
            }
        }
    }
}
