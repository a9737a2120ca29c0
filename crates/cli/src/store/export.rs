//! `export`: writes a session as a bundle, as a git repository or as Markdown. `import`: reads a bundle.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::RuntimeError;
use backstitch::host::{DirectoryError, ImportOptions, SessionBundle};
use backstitch::id::SessionId;
use backstitch::mode::AgentMode;
use backstitch::report::{GitExport, SessionImport};
use clap::Args;
use serde::Serialize;

use super::moving::{TransferLines, transfer_lines, written_to};
use crate::common::{Common, quoted};
use crate::error::{CommandError, ErrorCode};
use crate::open::confinement::hide_secrets;
use crate::open::{OpenStore, holder, short, write_new};
use crate::report::Report;
use crate::{terminal, usage};

#[derive(Args)]
pub(crate) struct Export {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Form {
    /// Write a bundle: one new file with the session, the sessions that it was forked from, its sub-agents
    /// and all of their files. `import` reads it on another machine.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Write a new bare git repository with one commit for each call that may have changed files.
    #[arg(long, value_name = "DIR")]
    git: Option<PathBuf>,
    /// Write the conversation as Markdown to a new file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    markdown: Option<PathBuf>,
}

impl Export {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        match (&self.form.bundle, &self.form.git, &self.form.markdown) {
            (Some(path), ..) => bundle(common, &place, session, path).await?,
            (_, Some(path), _) => repository(common, &place, session, path).await?,
            (.., Some(path)) => document(common, &place, session, path).await?,
            (None, None, None) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn bundle(common: &Common, place: &OpenStore, session: SessionId, path: &Path) -> anyhow::Result<()> {
    let mut lines = TransferLines::new();
    let exported = place.runtime.export(session, path, &mut |step| lines.report(step)).await;
    let exported = exported.with_context(|| unexported(session))?;
    if let Some(owner) = &exported.driver {
        eprintln!("session {} is driven by {owner}: the bundle holds its records of now", short(session));
    }
    let name = quoted(&path.to_string_lossy());
    Report::new(&exported)
        .lines(transfer_lines(&exported.transfer, "exported"))
        .line(written_to(path, exported.bytes))
        .line(format!("`backstitch import {name}` imports it elsewhere"))
        .print(common);
    Ok(())
}

async fn repository(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    path: &Path,
) -> anyhow::Result<()> {
    let exported = place.runtime.export_git(session, path).await.with_context(|| unexported(session))?;
    let GitExport { commits, left_out, uncovered, pruned_calls, .. } = &exported;
    let id = short(session);
    let calls = pruned_calls.len();
    let pruned = format!("left out: the files of {calls} calls, which retention has deleted");
    Report::new(&exported)
        .line(format!("{} commits of session {id} in {}", commits.len(), path.display()))
        .lines(left_out.iter().map(|one| format!("left out: {} ({})", one.path, one.reason)))
        .lines(uncovered.iter().map(|one| format!("not covered: {} ({})", one.path, one.reason)))
        .lines((calls > 0).then_some(pruned))
        .print(common);
    Ok(())
}

fn unexported(session: SessionId) -> String {
    format!("session {session} cannot be exported")
}

async fn document(common: &Common, place: &OpenStore, session: SessionId, path: &Path) -> anyhow::Result<()> {
    let exported = place.runtime.export_markdown(session).await?;
    let text = &exported.markdown;
    if path != Path::new("-") {
        // Only this user can read it: conversations may hold secrets.
        write_new(path, text, 0o600)?;
        let report = Report::new(&exported).with("file", path.to_string_lossy()).with("bytes", text.len());
        report.line(written_to(path, text.len() as u64)).print(common);
    } else if common.json {
        Report::new(&exported).print(common);
    } else {
        terminal::data(text);
    }
    Ok(())
}

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
        // The bundle is checked completely before a store is created or anything is written.
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
        let rights = common.config.rights().resolve(backstitch::host::probe().confines());
        let mut sandbox = common.config.sandbox(false).unwrap_or_else(|| AgentMode::Auto.sandbox());
        hide_secrets(&common.config, &mut sandbox);
        let options = ImportOptions { workspace: self.workspace.clone(), sandbox, mode: rights.mode };
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
    Report::new(&ImportedSession { imported, next: &next }).lines(lines)
}
