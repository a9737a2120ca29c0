//! Sessions that are copied to other stores and to bundles, and imported from bundles.
//!
//! A bundle is checked completely before anything is written. The files of the session can be written to a directory of this machine,
//! which has to be new, empty, or hold nothing but files of the session; then the directory is recorded. Each step can be interrupted,
//! and the import repeated.
//!
//! Another person may have defined the session. So its rules that let calls run without a question are removed, calls that were approved
//! and have not ended are asked about again, decisions that wait are left out, and its sandbox is limited to that of this user. The records
//! that say so are written in the transaction that makes a session visible. So no process can open a session with the rights of its author,
//! whatever becomes of the import afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backstitch_runtime::{DirectoryError, Withdrawal, WorkspaceSpec, latest_files, resolve_writable};
use backstitch_store::Bundle;
use backstitch_workspace::diff;

use super::blocking;
use crate::__private::in_place;
use crate::agent_file::{AgentDefinition, defining_records, exceeds, imported_note, recorded_definition};
use crate::approval::{ApprovalRule, ApprovalVerdict};
use crate::id::SessionId;
use crate::journal::{Batch, Note, WorkspaceRevision};
use crate::mode::AgentMode;
use crate::ports::{
    ChangeKind, ClaimMode, ImportChanges, ObjectOverlay, Objects, OpenBundle, OpenError, Progress, Sandbox,
    SessionRole, TransferOutcome, TransferProgress, TransferReport, Workspace,
};
use crate::report::{BundleExport, SessionCopy, SessionImport};
use crate::stores::{self, StoreAddress};
use crate::{Runtime, RuntimeError};

/// A bundle whose content was checked completely. What is imported is what was checked.
#[derive(Debug)]
pub struct SessionBundle {
    opened: Bundle,
    has_files: bool,
}

impl SessionBundle {
    /// Opens a bundle, and checks all of it: tables, checksums, journals, objects, references. The file is not changed.
    pub async fn open(path: &Path, progress: Progress<'_, TransferProgress>) -> Result<Self, RuntimeError> {
        let opened = in_place(|| Bundle::open(path, progress))?;
        let store = stores::open_read_only(&StoreAddress::File(opened.path().to_owned()))?;
        let definition = Runtime::over(store).agent_of(opened.session()).await?;
        let has_files = definition.is_some_and(|definition| definition.workspace.path.is_some());
        Ok(Self { opened, has_files })
    }

    /// Returns the session that the bundle was written for.
    pub fn session(&self) -> SessionId {
        self.opened.session()
    }

    /// Returns whether the session worked in a directory.
    pub fn has_files(&self) -> bool {
        self.has_files
    }

    /// Copies the content as it is to a store: to look at, not to continue. [`Runtime::import`] limits what it may do.
    pub async fn copy_to(
        &self,
        to: &Runtime,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<SessionCopy, RuntimeError> {
        let store = stores::open_read_only(&StoreAddress::File(self.opened.path().to_owned()))?;
        Runtime::over(store).copy(self.session(), to, progress).await
    }
}

/// Where an imported session continues, and what it may do.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportOptions {
    /// Directory for the files of the session, which is created if it is missing. By default no file is written, and the recorded
    /// directory is used.
    pub workspace: Option<PathBuf>,
    /// Limits of this user. A sandbox that allows more is confined to them.
    pub sandbox: Sandbox,
    /// The mode of this user. A session that asks less is asked about like others of this user.
    pub mode: AgentMode,
}

impl Default for ImportOptions {
    fn default() -> Self {
        let mode = AgentMode::default();
        Self { workspace: None, sandbox: mode.sandbox(), mode }
    }
}

/// What a user allows to sessions of other people.
struct UserLimits {
    sandbox: Sandbox,
    mode: AgentMode,
}

impl UserLimits {
    /// Builds the note that limits a session.
    fn note(&self) -> Note {
        imported_note(&self.sandbox, self.mode)
    }
}

impl Runtime {
    /// Copies a session, with everything that it depends on, to another store. What that has already is not written again.
    pub async fn copy(
        &self,
        session: SessionId,
        to: &Runtime,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<SessionCopy, RuntimeError> {
        let report = self.store.admin.copy_session(session, &*to.store.admin, progress).await?;
        Ok(SessionCopy { transfer: report.into(), store: to.store.address.to_string() })
    }

    /// Writes a session, with everything that it depends on, to a new file, at which nothing may exist. [`Runtime::import`] reads it on
    /// another machine. A process may drive the session: the bundle has the records of this moment.
    pub async fn export(
        &self,
        session: SessionId,
        to: &Path,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<BundleExport, RuntimeError> {
        let driver = self.store().holder(session).await?;
        let report = self.store.admin.export_bundle(session, to, progress).await?;
        Ok(BundleExport {
            transfer: report.content.into(),
            bundle: to.to_owned(),
            bytes: report.bytes,
            driver: driver.map(|owner| owner.to_string()),
        })
    }

    /// Imports a session, with everything that it depends on. What the store has already is not written again. Fails with
    /// [`BundleError::Conflict`](crate::ports::BundleError::Conflict) if it has another session of the same id, with
    /// [`RuntimeError::NoFiles`] if a directory is named for a session without files, and with [`DirectoryError::OtherFiles`] if the
    /// directory holds anything else. In the last case, and if the directory cannot be opened or written, the session itself was imported,
    /// with the limits of this user.
    pub async fn import(
        &self,
        bundle: &SessionBundle,
        options: ImportOptions,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<SessionImport, RuntimeError> {
        let session = bundle.session();
        let directory = match options.workspace {
            Some(_) if !bundle.has_files => return Err(RuntimeError::NoFiles { session }),
            Some(directory) => Some(blocking(move || create(&directory)).await?),
            None => None,
        };
        let limits = UserLimits { sandbox: options.sandbox, mode: options.mode };
        let (changes, mut removed) = in_place(|| self.limiting_changes(&bundle.opened, &limits))?;
        let report = self.store.admin.import_bundle(&bundle.opened, &changes, progress).await?;
        let is_new = |id: &SessionId| {
            report.sessions.iter().any(|one| one.session == *id && one.outcome != TransferOutcome::Present)
        };
        removed.retain(|id, _| is_new(id));
        let mut rules: Vec<ApprovalRule> = removed.into_values().flatten().collect();
        rules.extend(self.limit_present(&report, &limits).await?);
        // The session may have been here before, with a directory on this machine.
        let definition = self.agent_of(session).await?;
        if let (Some(directory), Some(definition)) = (directory, definition) {
            self.give_directory(session, definition, directory, &limits).await?;
        }
        let definition = self.agent_of(session).await?;
        let definition = definition.as_ref();
        let model = definition.and_then(|definition| definition.model.as_ref());
        Ok(SessionImport {
            transfer: report.into(),
            store: self.store.address.to_string(),
            workspace: definition.and_then(|definition| definition.workspace.path.clone()),
            model: model.map(ToString::to_string),
            base_url: definition.and_then(|definition| definition.base_url.clone()),
            rights: definition.map(AgentDefinition::rights).unwrap_or_default(),
            removed_rules: rules.iter().map(ToString::to_string).collect(),
        })
    }

    /// Returns the definition of a session's agent. A session of another program has none.
    async fn agent_of(&self, session: SessionId) -> Result<Option<AgentDefinition>, RuntimeError> {
        let view = self.view(session).await?;
        if view.created().agent.is_null() {
            return Ok(None);
        }
        Ok(recorded_definition(&*self.store.store, &view, None).await.ok())
    }

    /// Builds the records that limit the sessions of a bundle, and returns them with the rules that they remove. An ancestor has only its
    /// records before the fork, but it is a session too.
    fn limiting_changes(
        &self,
        bundle: &Bundle,
        limits: &UserLimits,
    ) -> Result<(ImportChanges, BTreeMap<SessionId, Vec<ApprovalRule>>), RuntimeError> {
        let mut changes = ImportChanges { leaves_out_decisions: true, ..ImportChanges::default() };
        let mut removed = BTreeMap::new();
        bundle.each_session(|view, records| {
            let withdrawal = Withdrawal::of(view, self.clock().clone())?;
            let mut batch = Batch::at(self.clock().now());
            for record in withdrawal.records {
                batch.push(record);
            }
            if exceeds(records, &limits.sandbox, limits.mode) {
                batch.push(limits.note());
            }
            if !batch.is_empty() {
                changes.additions.insert(view.session_id(), batch);
            }
            removed.insert(view.session_id(), withdrawal.rules);
            Ok::<_, RuntimeError>(())
        })?;
        Ok((changes, removed))
    }

    /// Limits imported sessions that were here already, and returns the rules that are removed. Another version may have left them without
    /// limits. Their ancestors may be sessions of this user.
    async fn limit_present(
        &self,
        report: &TransferReport,
        limits: &UserLimits,
    ) -> Result<Vec<ApprovalRule>, RuntimeError> {
        let mut removed = Vec::new();
        let present = report.sessions.iter().filter(|one| one.outcome == TransferOutcome::Present);
        for one in present.filter(|one| one.role != SessionRole::Ancestor) {
            let session = one.session;
            if self.view(session).await?.pending_calls().any(|call| call.approval.is_some()) {
                self.withdraw_approvals(session).await?;
            }
            let has_rules = {
                let rules = self.state(session).await?.all::<ApprovalRule>()?;
                rules.iter().any(|rule| rule.verdict == ApprovalVerdict::Allow)
            };
            if has_rules {
                removed.extend(self.remove_allowing_rules(session).await?);
            }
            let defining = defining_records(&**self.store(), session, None).await?;
            if exceeds(&defining, &limits.sandbox, limits.mode) {
                self.add_note(session, limits.note()).await?;
            }
        }
        Ok(removed)
    }

    /// Writes the files of a session to a directory, and records that it continues there.
    async fn give_directory(
        &self,
        session: SessionId,
        mut definition: AgentDefinition,
        directory: PathBuf,
        limits: &UserLimits,
    ) -> Result<(), RuntimeError> {
        if definition.workspace.path.as_ref() == Some(&directory) {
            return Ok(());
        }
        // Fails if a process drives the session, before a file is written.
        let claim = self.store().claim(session, self.owner().clone(), ClaimMode::IfFree).await;
        self.store().release(claim?).await?;
        let mut spec = WorkspaceSpec::new(&directory);
        spec.excludes.clone_from(&definition.workspace.excludes);
        spec.in_place = true;
        let files = self.open_workspace(&spec, session).await?.workspace;
        if let Some(wanted) = latest_files(&**self.store(), session).await? {
            let (objects, directory) = (self.store.objects.clone(), directory.clone());
            blocking(move || fill(&*objects, &*files, directory, session, wanted)).await?;
        }
        definition.workspace.path = Some(directory);
        if let Some(sandbox) = &mut definition.sandbox {
            // The session starts anew here, and its paths were those of another machine.
            let missing = sandbox.missing.take().unwrap_or_default();
            sandbox.write.extend(missing);
            resolve_writable(sandbox);
        }
        // Of the paths that were missing, too, only those remain that this user allows.
        definition.confine(&limits.sandbox, Some(limits.mode));
        self.add_note(session, definition.change_note()).await
    }
}

/// Creates a directory if it is missing, and returns its path without links.
fn create(directory: &Path) -> Result<PathBuf, RuntimeError> {
    let created = std::fs::create_dir_all(directory).and_then(|()| directory.canonicalize());
    created.map_err(|source| OpenError::Io { path: directory.to_owned(), source }.into())
}

/// Writes files to a directory, unless it holds anything else.
fn fill(
    objects: &dyn Objects,
    files: &dyn Workspace,
    directory: PathBuf,
    session: SessionId,
    wanted: WorkspaceRevision,
) -> Result<(), RuntimeError> {
    files.check_restorable(wanted.root, wanted.coverage, &[])?;
    let found = files.capture_covering(wanted.coverage)?;
    let objects = ObjectOverlay::new(found.objects, objects);
    let others: Vec<String> = diff(&objects, wanted.root, found.root)?
        .into_iter()
        // A file that is not there yet, or has another mode, is not an obstacle.
        .filter(|change| !matches!(change.change, ChangeKind::Deleted | ChangeKind::Mode))
        .map(|change| change.path)
        .collect();
    if !others.is_empty() {
        return Err(DirectoryError::OtherFiles { directory, session, files: others }.into());
    }
    files.restore_covering(wanted.root, wanted.coverage)?;
    Ok(())
}
