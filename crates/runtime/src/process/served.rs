//! Programs that run beside calls and serve several of them, such as the servers of a protocol.
//!
//! They run like processes of a call: in the sandbox, with a supervisor or a watchdog that ends all that they started, also
//! if this process is killed. They share the namespaces of this process, unlike commands.

use std::path::PathBuf;

use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::{ProcessError, ProcessSpec};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::Directories;
use super::group::{Group, Pipes};
use super::prepare::PreparedProcess;
use super::sandbox::{Confinement, SharedDirectory};
use super::supervise::blocking;
use super::survivors::end_call;

/// A program that runs until this is dropped. Then it and all of its descendants are killed.
pub struct ServerProcess {
    group: Group,
    mark: CallId,
    /// Its temporary directory lives as long as it does.
    _confinement: Option<Confinement>,
    _temporary: SharedDirectory,
}

/// The streams of a [`ServerProcess`].
pub struct ServerStreams {
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
}

impl ServerProcess {
    /// Starts a program below `root`, in the sandbox of its specification. `mark` identifies its processes. It does not
    /// get namespaces of its own: it may share state, such as locks that hold numbers of processes, with programs outside.
    pub async fn start(
        spec: ProcessSpec,
        root: Option<PathBuf>,
        mark: CallId,
    ) -> Result<(Self, ServerStreams), ProcessError> {
        Self::start_in(spec, root, mark, Confinement::share_namespaces).await
    }

    /// Starts a command below `root`, in the sandbox of its specification and in namespaces of its own, where the
    /// system allows them.
    pub async fn start_command(
        spec: ProcessSpec,
        root: Option<PathBuf>,
        mark: CallId,
    ) -> Result<(Self, ServerStreams), ProcessError> {
        Self::start_in(spec, root, mark, |_| {}).await
    }

    async fn start_in(
        spec: ProcessSpec,
        root: Option<PathBuf>,
        mark: CallId,
        adjust: impl FnOnce(&mut Confinement) + Send + 'static,
    ) -> Result<(Self, ServerStreams), ProcessError> {
        let program = spec.program.clone();
        let (group, pipes, confinement, temporary) = blocking(move || {
            let temporary = SharedDirectory::default();
            let directories = Directories { root, ..Directories::default() };
            let mut prepared = PreparedProcess::new(mark, spec, &directories, &temporary)?;
            prepared.confinement.as_mut().map(adjust);
            let (group, pipes) = Group::start(&prepared)?;
            Ok((group, pipes, prepared.confinement, temporary))
        })
        .await?;
        let Pipes { stdin, stdout, stderr } = pipes;
        let failed =
            |source: std::io::Error| ProcessError::Start { program: program.clone(), source: source.into() };
        let mut stdin = ChildStdin::from_std(stdin).map_err(&failed)?;
        let stdout = ChildStdout::from_std(stdout).map_err(&failed)?;
        let stderr = ChildStderr::from_std(stderr).map_err(&failed)?;
        tokio::io::AsyncWriteExt::write_all(&mut stdin, group.release()).await.map_err(&failed)?;
        let process = Self { group, mark, _confinement: confinement, _temporary: temporary };
        Ok((process, ServerStreams { stdin, stdout, stderr }))
    }

    /// Returns the identity of its group, which [`end_survivors`](super::end_survivors) ends after a crash.
    pub fn identity(&self, mark: CallId, program: &str) -> ProcessStarted {
        self.group.identity(mark, program)
    }

    /// Ends the program and all of its descendants, also those that left its group, and waits until they are gone.
    pub async fn end(self) -> Result<(), ProcessError> {
        let Self { group, mark, _confinement, _temporary } = self;
        let (number, started) = (group.number(), group.started.clone());
        let ended = blocking(move || group.end().map(drop)).await;
        end_call(mark, vec![number], started).await.and(ended)
    }

    /// Completes when the program has ended by itself.
    pub async fn wait_for_exit(&mut self) {
        self.group.wait_for_exit().await;
    }
}
