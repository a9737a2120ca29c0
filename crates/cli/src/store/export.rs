//! `export`: writes a session as a bundle, as a git repository or as Markdown.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use clap::Args;
use serde_json::json;

use super::moving::{TransferLines, as_json, print, written_to};
use super::{commits, markdown};
use crate::common::{Common, quoted};
use crate::error::CommandError;
use crate::open::place::{OpenStore, short};
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
            (_, Some(path), _) => commits::export(common, &place, session, path).await?,
            (.., Some(path)) => document(common, &place, session, path).await?,
            (None, None, None) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn bundle(common: &Common, place: &OpenStore, session: SessionId, path: &Path) -> anyhow::Result<()> {
    let driven = place.store.holder(session).await?;
    let mut lines = TransferLines::new();
    let mut step = |step| lines.report(step);
    let report = place.admin.export_bundle(session, path, &mut step).await;
    let report = report.with_context(|| format!("session {session} cannot be exported"))?;
    if let Some(owner) = driven {
        eprintln!("session {} is driven by {owner}: the bundle holds its records of now", short(session));
    }
    if common.json {
        let mut line = as_json(&report.content);
        (line["bundle"], line["bytes"]) = (json!(path), json!(report.bytes));
        println!("{line}");
    } else {
        print(&report.content, "exported");
        println!("{}", written_to(path, report.bytes));
        println!("`backstitch import {}` imports it elsewhere", quoted(&path.to_string_lossy()));
    }
    Ok(())
}

async fn document(common: &Common, place: &OpenStore, session: SessionId, path: &Path) -> anyhow::Result<()> {
    let text = markdown::render(place, session).await?;
    if path == Path::new("-") {
        if common.json {
            println!("{}", json!({"v": 1, "session": session, "markdown": text}));
        } else {
            terminal::data(&text);
        }
        return Ok(());
    }
    write_new(path, &text)?;
    let bytes = text.len() as u64;
    if common.json {
        println!("{}", json!({"v": 1, "session": session, "file": path, "bytes": bytes}));
    } else {
        println!("{}", written_to(path, bytes));
    }
    Ok(())
}

/// Writes a new file that only this user can read: conversations may hold secrets.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message =
                format!("{} already exists, and existing files are never overwritten", path.display());
            return Err(CommandError::new(ErrorCode::AlreadyExists, message).into());
        }
        opened => opened.with_context(|| format!("{} cannot be written", path.display()))?,
    };
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("{} cannot be written", path.display()))
}
