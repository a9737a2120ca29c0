//! Child processes that a tool may start, and their outcome.
//!
//! A [`ProcessSpec`] is plain data. Its executor ensures that the process and its children form a group of
//! their own without a terminal, that the group is in the journal before the program does anything, and that all
//! of them are killed at the end of the program, of the call, and of the runtime, even after a crash. An executor
//! that is the parent of the process and adopts its orphans finds all of them. Any other one finds a process that
//! left its group (`setsid`) by a mark that it has inherited, unless it erased its environment.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::FilePath;
use super::sandbox::{Sandbox, SandboxRefusal};
use crate::code::ErrorCode;
use crate::secrets::Secrets;
use crate::session::BoxError;

/// A program to run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program: a name that is looked up in `PATH`, or a path. A relative path starts at `directory`.
    pub program: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Variables in addition to the runtime's environment; those without a value are removed from it.
    pub environment: BTreeMap<String, Option<String>>,
    /// Working directory below the workspace. Without one it is the root of the system, and the program gets
    /// no files.
    pub directory: Option<FilePath>,
    /// Standard input.
    pub input: Vec<u8>,
    /// Limits of the captured output.
    pub caps: OutputCaps,
    /// Time limit. After it the program and all of its child processes are killed, and the output so far is
    /// returned.
    pub timeout: Option<Duration>,
    /// Limits of the program and all of its child processes.
    pub sandbox: Sandbox,
}

impl ProcessSpec {
    /// Creates a program without arguments that runs at the root of the workspace.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: Some(FilePath::root()),
            input: Vec::new(),
            caps: OutputCaps::default(),
            timeout: None,
            sandbox: Sandbox::off(),
        }
    }

    /// Creates a shell command.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::new("/bin/sh").arg("-c").arg(command)
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), Some(value.into()));
        self
    }

    /// Removes a variable of the runtime's environment, such as an API key.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<String>) -> Self {
        self.environment.insert(name.into(), None);
        self
    }

    /// Sets the working directory within the workspace.
    #[must_use]
    pub fn in_directory(mut self, directory: FilePath) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Runs the program outside of the workspace, at the root of the system.
    #[must_use]
    pub fn without_files(mut self) -> Self {
        self.directory = None;
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the limits of the captured output.
    #[must_use]
    pub fn caps(mut self, caps: OutputCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Confines the program and all of its child processes.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }
}

/// Limits of the captured output of each stream: bytes of its beginning and of its end.
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

/// The outcome of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// Exit status.
    pub exit: ProcessExit,
    /// Standard output.
    pub stdout: ProcessOutput,
    /// Standard error.
    pub stderr: ProcessOutput,
    /// What the sandbox refused, as far as the output shows it.
    pub refused: Vec<SandboxRefusal>,
}

impl ProcessOutcome {
    /// Returns whether the exit code is 0.
    pub fn success(&self) -> bool {
        self.exit == ProcessExit::Code(0)
    }

    /// Replaces keys in the output, including a part of a key at a cut.
    #[must_use]
    pub fn redacted(mut self, secrets: &Secrets) -> Self {
        if !secrets.is_empty() {
            for ProcessOutput { head, cut, tail } in [&mut self.stdout, &mut self.stderr] {
                secrets.redact_pieces(head, *cut > 0, tail);
            }
            for refusal in &mut self.refused {
                use SandboxRefusal::{Missing, Read, Write};
                if let Write(path) | Missing(path) | Read(path) = refusal {
                    *path = secrets.redact(&path.to_string_lossy()).into_owned().into();
                }
            }
        }
        self
    }
}

/// Exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// The process exited with this code.
    Code(i32),
    /// This signal killed the process.
    Signal(i32),
    /// The process exceeded its time limit, and was killed with all of its child processes.
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

/// Captured output of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The beginning; everything if nothing was omitted.
    pub head: Vec<u8>,
    /// Number of bytes omitted after the beginning.
    pub cut: u64,
    /// The end, after the omitted bytes.
    pub tail: Vec<u8>,
}

impl ProcessOutput {
    /// Returns the captured output as text, with a line in place of omitted bytes.
    pub fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        match self.cut {
            0 => String::from_utf8_lossy(&[&*self.head, &*self.tail].concat()).into_owned(),
            cut => format!("{head}\n[{cut} bytes left out]\n{tail}"),
        }
    }
}

/// A process could not be started or killed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The call has ended or was stopped.
    #[error("the call has ended; it can start nothing more")]
    Ended,
    /// The program does not exist.
    #[error("there is no program {program:?} that can be run")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The directory is not a directory of the workspace.
    #[error("{directory:?} is not a directory to run in: {reason}")]
    Directory {
        /// The directory.
        directory: String,
        /// Reason for the refusal.
        reason: String,
    },
    /// An argument or a variable cannot be passed to a process.
    #[error("{what} cannot be given to a process: {reason}")]
    Invalid {
        /// The argument or variable.
        what: String,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// The system refused to start the program.
    #[error("{program:?} could not be started")]
    Start {
        /// The program.
        program: String,
        /// Error of the system.
        #[source]
        source: BoxError,
    },
    /// The start could not be recorded, so the program was not started.
    #[error("{program:?} was not started, because that could not be recorded")]
    NotRecorded {
        /// The program.
        program: String,
        /// Reason for the failure.
        #[source]
        source: BoxError,
    },
    /// The limits of the program cannot be enforced as they were set, so it was not started.
    #[error("the sandbox cannot be set up: {reason}")]
    Sandbox {
        /// Reason for the failure.
        reason: String,
    },
    /// The process group was killed but still exists.
    #[error("process group {group} was killed and is still there")]
    Survives {
        /// Id of the group, or of the one process of it that was found.
        group: u32,
    },
    /// The host does not support processes.
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
            | Self::Sandbox { .. }
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
                    refused: Vec::new(),
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
