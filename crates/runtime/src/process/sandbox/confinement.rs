//! The limits of one process, resolved for this system.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::ports::{ProcessError, ProcessOutcome, Sandbox, SandboxMode, SandboxSockets};

use super::paths::{self, GivenPath};
use super::refusals;
use super::support::{SandboxSupport, probe};
use super::temporary::{PrivateDirectory, SharedDirectory};
#[cfg(target_os = "linux")]
use super::{Limits, enter};

/// The limits of a process, and its temporary directory.
pub(in super::super) struct Confinement {
    /// Paths that may be written, without links.
    writable: Vec<PathBuf>,
    /// Paths of `write` that did not exist.
    missing: Vec<PathBuf>,
    /// Paths whose content cannot be read.
    hidden: Vec<PathBuf>,
    /// Paths that can be read although they may lie in hidden ones.
    readable: Vec<PathBuf>,
    network: bool,
    /// As far as this system can tell sockets apart.
    sockets: SandboxSockets,
    terminals: bool,
    /// Whether the process gets namespaces of its own, if it has a supervisor and the system allows them.
    namespaces: bool,
    support: SandboxSupport,
    pub(in super::super) temporary: Arc<PrivateDirectory>,
}

impl Confinement {
    /// Resolves the limits of a process below `root`, which holds no links. `own` is the runtime's own directory, which
    /// is never writable. Returns `None` if the process is not confined, or the system cannot confine it at all.
    pub(in super::super) fn new(
        sandbox: &Sandbox,
        root: Option<&Path>,
        own: Option<&Path>,
        (call, temporary): (CallId, &SharedDirectory),
    ) -> Result<Option<Self>, ProcessError> {
        let failed = |reason: String| ProcessError::Sandbox { reason };
        sandbox.check().map_err(|error| failed(error.to_string()))?;
        let support = probe();
        if sandbox.is_off() || !(support.limits_files() || support.seccomp) {
            return Ok(None);
        }
        let temporary = temporary
            .of_call(call)
            .map_err(|error| failed(format!("no temporary directory can be created: {error}")))?;
        let mut writable = vec![temporary.path().to_owned()];
        let mut missing = sandbox.missing.clone().unwrap_or_default();
        for path in &sandbox.write {
            let given = match sandbox.missing {
                Some(_) => GivenPath::Found(path.clone()),
                None => paths::check_given(path).map_err(failed)?,
            };
            let GivenPath::Found(path) = given else {
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
            writable.extend(root.map(Path::to_owned));
        }
        let readable: Vec<PathBuf> =
            root.map(Path::to_owned).into_iter().chain(sandbox.read.iter().cloned()).collect();
        // The agent works in the workspace, so nothing there is hidden, and neither is what was allowed by its path.
        let is_outside = |path: &&PathBuf| !readable.iter().any(|root| path.starts_with(root));
        // The store is hidden with the places of secrets, wherever it is, unless its directory holds such places itself, as
        // the home directory does.
        let is_own = |own: &&Path| {
            !sandbox.hide.is_empty() && !sandbox.hide.iter().any(|hidden| hidden.starts_with(own))
        };
        let own = own.filter(is_own).map(Path::to_owned);
        let hidden = sandbox.hide.iter().chain(&own).filter(is_outside).cloned().collect();
        let Sandbox { network, terminals, .. } = *sandbox;
        let sockets = support.sockets(sandbox);
        let namespaces = true;
        Ok(Some(Self {
            writable,
            missing,
            hidden,
            readable,
            network,
            sockets,
            terminals,
            namespaces,
            support,
            temporary,
        }))
    }

    /// Lets the process stay in the namespaces of this one.
    pub(in super::super) fn share_namespaces(&mut self) {
        self.namespaces = false;
    }

    /// Returns the limits as data, for a program that enters them itself.
    #[cfg(target_os = "linux")]
    pub(in super::super) fn limits(&self) -> Limits {
        Limits {
            writable: self.writable.clone(),
            hidden: self.hidden.clone(),
            readable: self.readable.clone(),
            network: self.network,
            sockets: self.sockets,
            terminals: self.terminals,
            landlock: self.support.limits_files(),
            seccomp: self.support.seccomp,
            namespaces: self.namespaces,
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
            let confined = move || enter(&limits).map(|()| start());
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
            hidden: &self.hidden,
            network: self.network,
            sockets: self.sockets,
            terminals: self.terminals,
            directory,
        };
        outcome.refused = rules.find(outcome);
    }
}
