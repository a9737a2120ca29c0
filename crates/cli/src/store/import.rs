//! `import`: takes a session from a bundle, and optionally gives it a directory on this machine.
//!
//! The bundle is checked completely before anything is written. With `--workspace`, the files of the session
//! are written to a directory that is new, empty, or holds nothing but files of the session; then the
//! directory is recorded. Each step can be interrupted and the command repeated.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::AgentDefinition;
use backstitch::approval::{ApprovalRule, ApprovalVerdict};
use backstitch::code::ErrorCode;
use backstitch::host::latest_files;
use backstitch::id::SessionId;
use backstitch::journal::WorkspaceRevision;
use backstitch::ports::{ChangeKind, ObjectOverlay, Sandbox, SessionRole, TransferReport, Workspace};
use backstitch::stores::{self, StoreAddress};
use backstitch::workspace;
use backstitch::{SystemClock, WorkspaceSpec};
use clap::Args;
use serde_json::json;

use super::moving::{TransferLines, as_json, print};
use crate::common::{Common, quoted};
use crate::error::CommandError;
use crate::open::definition::{changed, definition_of};
use crate::open::holder::{WhenDriven, set_free};
use crate::open::place::{OpenStore, short};
use crate::open::rights::{confine, imported, rights};
use crate::usage::Usage;

#[derive(Args)]
pub(crate) struct Import {
    /// Bundle that `export --bundle` has written.
    file: PathBuf,
    /// Directory in which the session continues. It must be new or empty, or hold nothing but files of the
    /// session; the missing files are written to it. Default: the recorded directory, and no file is written.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl Import {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let mut lines = TransferLines::new();
        let bundle = stores::open_bundle(&self.file, &mut |step| lines.report(step))
            .with_context(|| format!("{} cannot be imported", self.file.display()))?;
        let session = bundle.session();
        let as_store = OpenStore::reading(&StoreAddress::File(bundle.path().to_owned()))?;
        let definition = recorded_definition(&as_store, session).await?;
        drop(as_store);
        let here = std::env::current_dir()?;
        if let Some(directory) = &self.workspace {
            if definition.as_ref().is_none_or(|definition| definition.workspace.path.is_none()) {
                let message = "the session has no files, so `--workspace` does not apply".to_owned();
                return Err(Usage(message).into());
            }
            std::fs::create_dir_all(directory)
                .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
        }
        let place = OpenStore::existing_or_new_for(
            common,
            self.workspace.as_deref().unwrap_or(&here),
            self.workspace.as_deref(),
        )?;
        let mut lines = TransferLines::new();
        let mut step = |step| lines.report(step);
        let report = place.admin.import_bundle(&*bundle, &mut step).await;
        let report = report.with_context(|| format!("{} cannot be imported", self.file.display()))?;
        drop(bundle);
        let common = &common.naming(&place.address);
        // The session may have been there before, with a directory on this machine.
        let mut definition = recorded_definition(&place, session).await?;
        if let (Some(directory), Some(definition)) = (&self.workspace, &mut definition) {
            give_directory(common, &place, session, definition, directory).await?;
        }
        let rules = distrust(common, &place, &report).await?;
        // With the limits of this user.
        let definition = recorded_definition(&place, session).await?;
        tell(common, &place, &report, definition.as_ref(), &rules);
        Ok(ExitCode::SUCCESS)
    }
}

/// Removes the rules of imported sessions that let calls run without a question, and limits their sandbox to that of
/// this user: another person decided about both. That is also done for a session that is here already, because an
/// import may have been interrupted before this.
async fn distrust(
    common: &Common,
    place: &OpenStore,
    report: &TransferReport,
) -> anyhow::Result<Vec<ApprovalRule>> {
    let own = common.config.strongest(|settings| settings.sandbox.clone());
    let limit = own.unwrap_or_else(Sandbox::workspace);
    let mut removed = Vec::new();
    // An ancestor has only its records before the fork, which no process drives.
    for one in report.sessions.iter().filter(|one| one.role != SessionRole::Ancestor) {
        let view = place.view(one.session).await?;
        let rules = view.session(Arc::new(SystemClock::new())).all::<ApprovalRule>()?;
        let has_rules = rules.iter().any(|rule| rule.verdict == ApprovalVerdict::Allow);
        let is_wider = match recorded_definition(place, one.session).await? {
            Some(definition) => {
                let mut confined = definition.clone();
                confine(&mut confined, &limit);
                confined != definition
            }
            None => false,
        };
        if !has_rules && !is_wider {
            continue;
        }
        removed.extend(place.runtime.remove_allowing_rules(one.session).await?);
        if is_wider {
            place.runtime.add_note(one.session, imported(&limit)).await?;
        }
    }
    Ok(removed)
}

/// Returns the definition of a session's agent. A session of another program has none.
async fn recorded_definition(
    place: &OpenStore,
    session: SessionId,
) -> anyhow::Result<Option<AgentDefinition>> {
    let view = place.view(session).await?;
    if view.created().agent.is_null() {
        return Ok(None);
    }
    Ok(definition_of(place, &view, None).await.ok())
}

/// Writes the files of a session to a directory, and records that it continues there.
async fn give_directory(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    definition: &mut AgentDefinition,
    directory: &Path,
) -> anyhow::Result<()> {
    let directory = directory.canonicalize()?;
    if definition.workspace.path.as_ref() == Some(&directory) {
        return Ok(());
    }
    set_free(common, place, session, WhenDriven::Refuse).await?;
    let mut spec = WorkspaceSpec::new(&directory);
    spec.excludes.clone_from(&definition.workspace.excludes);
    spec.in_place = true;
    let files = place.runtime.open_workspace(&spec, session).await?.workspace;
    if let Some(wanted) = latest_files(&*place.store, session).await? {
        fill(common, place, session, (&*files, directory.as_path()), wanted)?;
    }
    definition.workspace.path = Some(directory);
    if let Some(sandbox) = &mut definition.sandbox {
        // The session starts anew here, and its paths were those of another machine.
        let missing = sandbox.missing.take().unwrap_or_default();
        sandbox.write.extend(missing);
        backstitch::host::resolve_writable(sandbox);
    }
    Ok(place.runtime.add_note(session, changed(definition)).await?)
}

/// Writes files to a directory, unless it holds anything else.
fn fill(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    (files, directory): (&dyn Workspace, &Path),
    wanted: WorkspaceRevision,
) -> anyhow::Result<()> {
    files.check_restorable(wanted.root, wanted.coverage, &[])?;
    let found = files.capture_covering(wanted.coverage)?;
    let objects = ObjectOverlay::new(found.objects, &*place.objects);
    let others: Vec<String> = workspace::diff(&objects, wanted.root, found.root)?
        .into_iter()
        // A file that is not there yet, or has another mode, is not an obstacle.
        .filter(|change| !matches!(change.change, ChangeKind::Deleted | ChangeKind::Mode))
        .map(|change| change.path)
        .collect();
    if !others.is_empty() {
        let shown = others.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let more = others.len().saturating_sub(5);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!(
            "{} holds files that are not those of the session: {shown}{more}. The session was imported, and no file was written",
            directory.display()
        );
        let adopt = format!("resume {} --workspace {}", short(session), quoted(&directory.to_string_lossy()));
        let hint = format!(
            "name an empty directory, or continue with the files as they are: `{}`",
            common.hint(adopt)
        );
        return Err(CommandError::new(ErrorCode::WorkspaceRefused, message).with_hint(hint).into());
    }
    files.restore_covering(wanted.root, wanted.coverage)?;
    Ok(())
}

/// Prints what was imported, what it would do here, and the command that continues it.
fn tell(
    common: &Common,
    place: &OpenStore,
    report: &TransferReport,
    definition: Option<&AgentDefinition>,
    rules: &[ApprovalRule],
) {
    let session = short(report.session);
    let directory = definition.and_then(|definition| definition.workspace.path.as_ref());
    let exists = directory.is_none_or(|directory| directory.is_dir());
    let next = match exists {
        true => common.hint(format_args!("resume {session}")),
        false => common.hint(format_args!("resume {session} --workspace DIR")),
    };
    let model = definition.and_then(|definition| definition.model.as_ref()).map(ToString::to_string);
    let address = definition.and_then(|definition| definition.base_url.clone());
    if common.json {
        let mut line = as_json(report);
        (line["store"], line["workspace"]) = (json!(place.address.to_string()), json!(directory));
        (line["model"], line["base_url"], line["next"]) = (json!(model), json!(address), json!(next));
        line["rights"] = json!(definition.map(rights).unwrap_or_default());
        line["removed_rules"] = rules.iter().map(ToString::to_string).collect();
        println!("{line}");
        return;
    }
    print(report, "imported");
    if let Some(definition) = definition {
        println!("its agent:");
        rights(definition).iter().for_each(|line| println!("  {line}"));
    }
    for rule in rules {
        println!("its rule about approvals does not hold here: {rule}");
    }
    match directory {
        Some(directory) if exists => println!("its files are in {}", directory.display()),
        Some(directory) => {
            println!(
                "it worked in {}, which does not exist here; DIR is a new directory",
                directory.display()
            );
        }
        None => {}
    }
    if definition.is_some() {
        println!(
            "`{next}` continues it, with your keys and permissions; `{}` shows it first",
            common.hint(format_args!("show {session}"))
        );
    } else {
        println!("another program started it, and has to continue it");
    }
}
