//! The process of a program, with its lines and the end of its standard error.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_runtime::{EngineError, ServerProcess, ServerStreams};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use crate::lines::JsonLines;

/// A variable that the programs of engines are started with. The guard's hooks do nothing where it is set: the engine's
/// calls are recorded already.
pub const ENGINE_VARIABLE: &str = "BACKSTITCH_ENGINE";

/// The most bytes of standard error that are kept.
const STDERR: usize = 2_000;

/// How long a program that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that reads and writes lines of JSON. Dropping it ends the program and all of its descendants.
pub(crate) struct EngineProcess {
    title: &'static str,
    process: ServerProcess,
    /// The identity of its process group.
    pub(crate) started: ProcessStarted,
    lines: JsonLines<ChildStdout>,
    /// The sender of its input, unless that was closed.
    pub(crate) input: Option<LineSender>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

/// Sends lines to a program. The input of the program ends with the last of them.
#[derive(Clone)]
pub(crate) struct LineSender(mpsc::UnboundedSender<Value>);

impl LineSender {
    /// Sends a line. A program that is gone receives nothing.
    pub(crate) fn send(&self, line: Value) {
        let _ = self.0.send(line);
    }
}

impl EngineProcess {
    /// Starts a program in a directory.
    pub(crate) async fn start(
        title: &'static str,
        spec: ProcessSpec,
        directory: PathBuf,
        mark: CallId,
    ) -> Result<Self, EngineError> {
        let program = spec.program.clone();
        let (process, streams) = ServerProcess::start(spec, Some(directory), mark)
            .await
            .map_err(|error| EngineError::Start { title: title.to_owned(), reason: error.to_string() })?;
        let ServerStreams { stdin, stdout, stderr } = streams;
        let started = process.identity(mark, &program);
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(keep_stderr(stderr, kept.clone()));
        let (send, receive) = mpsc::unbounded_channel();
        tokio::spawn(write_lines(stdin, receive));
        let (lines, input) = (JsonLines::new(stdout), Some(LineSender(send)));
        Ok(Self { title, process, started, lines, input, stderr: kept })
    }

    /// Sends a line, unless its input was closed.
    pub(crate) fn send(&self, line: Value) {
        if let Some(input) = &self.input {
            input.send(line);
        }
    }

    /// Returns the next line, or `None` when the program has closed its output. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, EngineError> {
        let title = self.title.to_owned();
        self.lines.next().await.map_err(|reason| EngineError::Protocol { title, reason })
    }

    /// Returns the error of a program that has ended too early.
    pub(crate) async fn early_end_error(&mut self) -> EngineError {
        // What it wrote last may not have been read yet.
        let _ = tokio::time::timeout(PATIENCE, self.process.wait_for_exit()).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        EngineError::Ended { title: self.title.to_owned(), stderr: self.stderr() }
    }

    /// Returns the end of what it wrote to its standard error.
    pub(crate) fn stderr(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept.iter().copied().collect::<Vec<u8>>()).trim().to_owned()
    }

    /// Closes its input, gives it some time to end by itself, and ends it with all of its descendants.
    pub(crate) async fn end(mut self) {
        // It ends once no clone of the sender is left.
        self.input = None;
        let _ = tokio::time::timeout(PATIENCE, async {
            // It may wait until its output is read.
            while let Ok(Some(_)) = self.lines.next().await {}
            self.process.wait_for_exit().await;
        })
        .await;
        if let Err(error) = self.process.end().await {
            tracing::warn!(%error, program = self.title, "processes of an engine could not be ended");
        }
    }
}

async fn keep_stderr(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..read]);
        let excess = kept.len().saturating_sub(STDERR);
        kept.drain(..excess);
    }
}

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<Value>) {
    while let Some(line) = lines.recv().await {
        let mut text = line.to_string();
        text.push('\n');
        if stdin.write_all(text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            // The program is gone, which its output shows.
            return;
        }
    }
}

/// Allows a program to write its own state, as far as it exists. Links are followed, unless the agent could have made
/// them.
pub(crate) fn allow_state(sandbox: &mut Sandbox, state: impl IntoIterator<Item = PathBuf>) {
    for path in state {
        let Ok(found) = path.canonicalize() else { continue };
        let around = path.parent().and_then(|parent| parent.canonicalize().ok());
        let is_agents = around.is_some_and(|around| sandbox.write.iter().any(|own| around.starts_with(own)));
        if !is_agents || !path.is_symlink() {
            sandbox.write.push(found);
        }
    }
}
