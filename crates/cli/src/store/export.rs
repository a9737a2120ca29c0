//! `export`: writes a session as a bundle, as a git repository or as Markdown.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::id::SessionId;
use backstitch::report::GitExport;
use clap::Args;
use serde_json::json;

use super::moving::{TransferLines, transfer_lines, written_to};
use crate::common::{Common, quoted};
use crate::open::new_file::write_new;
use crate::open::place::{OpenStore, short};
use crate::report::Report;
use crate::terminal;

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
    let lines = transfer_lines(&exported.transfer, "exported").into_iter();
    let report = lines.fold(Report::new(&exported), Report::line);
    let name = quoted(&path.to_string_lossy());
    report
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
    let mut report = Report::new(&exported).line(format!(
        "{} commits of session {id} in {}",
        commits.len(),
        path.display()
    ));
    for one in left_out {
        report = report.line(format!("left out: {} ({})", one.path, one.reason));
    }
    for one in uncovered {
        report = report.line(format!("not covered: {} ({})", one.path, one.reason));
    }
    if !pruned_calls.is_empty() {
        let calls = pruned_calls.len();
        report = report.line(format!("left out: the files of {calls} calls, which retention has deleted"));
    }
    report.print(common);
    Ok(())
}

fn unexported(session: SessionId) -> String {
    format!("session {session} cannot be exported")
}

async fn document(common: &Common, place: &OpenStore, session: SessionId, path: &Path) -> anyhow::Result<()> {
    let exported = place.runtime.export_markdown(session).await?;
    let text = &exported.markdown;
    if path != Path::new("-") {
        write_new(path, text, 0o600)?;
        let written = json!({"v": 1, "session": session, "file": path, "bytes": text.len()});
        Report::new(&written).line(written_to(path, text.len() as u64)).print(common);
    } else if common.json {
        Report::new(&exported).print(common);
    } else {
        terminal::data(text);
    }
    Ok(())
}
