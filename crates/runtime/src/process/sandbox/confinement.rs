//! The limits of one process, resolved for this system.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::ports::{ProcessError, ProcessOutcome, Sandbox, SandboxMode};

use super::refusals;
use super::support::{SandboxSupport, probe};
use super::temporary::{PrivateDirectory, SharedDirectory};

/// The limits of a process, and its temporary directory.
pub(in super::super) struct Confinement {
    /// Canonical paths that may be written.
    writable: Vec<PathBuf>,
    /// Paths that may be written and do not exist.
    missing: Vec<PathBuf>,
    network: bool,
    support: SandboxSupport,
    temporary: Arc<PrivateDirectory>,
}

impl Confinement {
    /// Resolves the limits of a process below `root`. `own` is the runtime's own directory, which is never
    /// writable. Returns `None` if the process is not confined, or the system cannot confine it at all.
    pub(in super::super) fn new(
        sandbox: &Sandbox,
        root: Option<&Path>,
        own: Option<&Path>,
        (call, temporary): (CallId, &SharedDirectory),
    ) -> Result<Option<Self>, ProcessError> {
        let failed = |reason: String| ProcessError::Sandbox { reason };
        sandbox.check().map_err(|error| failed(error.to_string()))?;
        let support = probe();
        if sandbox.is_off() || !(support.limits_files() || support.seccomp && !sandbox.network) {
            return Ok(None);
        }
        let temporary = temporary
            .of_call(call)
            .map_err(|error| failed(format!("no temporary directory can be created: {error}")))?;
        let mut writable = vec![temporary.path().to_owned()];
        let mut missing = Vec::new();
        for path in &sandbox.write {
            let Ok(path) = path.canonicalize() else {
                missing.push(path.clone());
                continue;
            };
            if let Some(own) = own.filter(|own| own.starts_with(&path) || path.starts_with(own)) {
                let reason = format!(
                    "`write` allows {}, which holds the store {}; allow directories beside it",
                    path.display(),
                    own.display()
                );
                return Err(failed(reason));
            }
            writable.push(path);
        }
        if sandbox.mode == SandboxMode::Workspace {
            writable.extend(root.and_then(|root| root.canonicalize().ok()));
        }
        Ok(Some(Self { writable, missing, network: sandbox.network, support, temporary }))
    }

    /// Returns the temporary directory.
    pub(in super::super) fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Returns the limits, for the process that applies them.
    #[cfg(target_os = "linux")]
    pub(in super::super) fn limits(&self) -> super::system::Limits {
        super::system::Limits {
            writable: self.writable.clone(),
            network: self.network,
            landlock: self.support.landlock,
            seccomp: self.support.seccomp,
            files: self.support.limits_files(),
        }
    }

    /// Calls a function that starts a process, on a thread that is confined first.
    #[cfg(target_os = "linux")]
    pub(in super::super) fn start<T: Send>(
        &self,
        start: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> Result<std::io::Result<T>, ProcessError> {
        let failed = |reason: String| ProcessError::Sandbox { reason };
        let limits = self.limits();
        std::thread::scope(|scope| {
            let confined = move || super::system::enter(&limits).map(|()| start());
            let thread = std::thread::Builder::new().name("backstitch-sandbox".to_owned());
            let thread = thread.spawn_scoped(scope, confined).map_err(|error| failed(error.to_string()))?;
            match thread.join() {
                Ok(started) => started.map_err(failed),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Not reached: no system but Linux confines processes.
    #[cfg(not(target_os = "linux"))]
    pub(in super::super) fn start<T: Send>(
        &self,
        start: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> Result<std::io::Result<T>, ProcessError> {
        Ok(start())
    }

    /// Adds to an outcome what was refused. `directory` is where the process ran.
    pub(in super::super) fn explain(&self, outcome: &mut ProcessOutcome, directory: &Path) {
        let rules = refusals::Rules {
            writable: &self.writable,
            missing: &self.missing,
            network: self.network,
            directory,
        };
        outcome.refused = rules.find(outcome);
    }
}
