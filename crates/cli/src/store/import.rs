//! `import`: takes a session from a bundle, and optionally gives it a directory on this machine.
//!
//! The bundle is checked completely before a store is created or anything is written.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::RuntimeError;
use backstitch::code::ErrorCode;
use backstitch::host::{DirectoryError, ImportOptions, SessionBundle};
use backstitch::id::SessionId;
use backstitch::ports::Sandbox;
use backstitch::report::SessionImport;
use clap::Args;
use serde::Serialize;

use super::moving::{TransferLines, transfer_lines};
use crate::common::{Common, quoted};
use crate::error::CommandError;
use crate::open::holder;
use crate::open::place::{OpenStore, short};
use crate::report::Report;
use crate::usage;

#[derive(Args)]
pub(crate) struct Import {
    /// Bundle that `export --bundle` has written.
    file: PathBuf,
    /// Directory in which the session continues. It must be new or empty, or hold nothing but files of the
    /// session; the missing files are written to it. Default: the recorded directory, and no file is written.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

/// What was imported, and the command that continues it.
#[derive(Serialize)]
struct ImportedSession<'a> {
    #[serde(flatten)]
    imported: &'a SessionImport,
    next: &'a str,
}

impl Import {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let mut lines = TransferLines::new();
        let bundle = SessionBundle::open(&self.file, &mut |step| lines.report(step)).await;
        let bundle = bundle.with_context(|| self.unimported())?;
        let here = std::env::current_dir()?;
        if let Some(directory) = &self.workspace {
            if !bundle.has_files() {
                return usage::refuse("the session has no files, so `--workspace` does not apply");
            }
            std::fs::create_dir_all(directory)
                .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
        }
        let place = OpenStore::existing_or_new_for(
            common,
            self.workspace.as_deref().unwrap_or(&here),
            self.workspace.as_deref(),
        )?;
        let common = &common.naming(&place.address);
        let own = common.config.strongest(|settings| settings.sandbox.clone());
        let sandbox = own.unwrap_or_else(Sandbox::workspace);
        let options = ImportOptions { workspace: self.workspace.clone(), sandbox };
        let mut lines = TransferLines::new();
        let imported = place.runtime.import(&bundle, options, &mut |step| lines.report(step)).await;
        let imported = imported.map_err(|error| self.explain(common, bundle.session(), error))?;
        Ok(report(common, &imported).print(common))
    }

    fn unimported(&self) -> String {
        format!("{} cannot be imported", self.file.display())
    }

    /// Adds the commands that help to an error.
    fn explain(&self, common: &Common, session: SessionId, error: RuntimeError) -> anyhow::Error {
        let id = short(session);
        if let RuntimeError::OpenDirectory(DirectoryError::OtherFiles { directory, .. }) = &error {
            let message = format!("{error}. The session was imported, and no file was written");
            let adopt = format!("resume {id} --workspace {}", quoted(&directory.to_string_lossy()));
            let hint = format!(
                "name an empty directory, or continue with the files as they are: `{}`",
                common.hint(adopt)
            );
            return CommandError::new(error.code(), message).with_hint(hint).into();
        }
        if error.code() == ErrorCode::SessionHeld {
            let hint = holder::hint(common, session);
            return CommandError::new(error.code(), error.to_string()).with_hint(hint).into();
        }
        anyhow::Error::from(error).context(self.unimported())
    }
}

/// Describes what was imported, what it would do here, and the command that continues it.
fn report(common: &Common, imported: &SessionImport) -> Report {
    let session = short(imported.transfer.content.session);
    let directory = imported.workspace.as_ref();
    let exists = directory.is_none_or(|directory| directory.is_dir());
    let next = match exists {
        true => common.hint(format_args!("resume {session}")),
        false => common.hint(format_args!("resume {session} --workspace DIR")),
    };
    let mut lines = transfer_lines(&imported.transfer, "imported");
    if !imported.rights.is_empty() {
        lines.push("its agent:".to_owned());
        lines.extend(imported.rights.iter().map(|line| format!("  {line}")));
    }
    for rule in &imported.removed_rules {
        lines.push(format!("its rule about approvals does not hold here: {rule}"));
    }
    match directory {
        Some(directory) if exists => lines.push(format!("its files are in {}", directory.display())),
        Some(directory) => lines.push(format!(
            "it worked in {}, which does not exist here; DIR is a new directory",
            directory.display()
        )),
        None => {}
    }
    lines.push(match imported.rights.is_empty() {
        true => "another program started it, and has to continue it".to_owned(),
        false => format!(
            "`{next}` continues it, with your keys and permissions; `{}` shows it first",
            common.hint(format_args!("show {session}"))
        ),
    });
    let report = Report::new(&ImportedSession { imported, next: &next });
    lines.into_iter().fold(report, Report::line)
}
