//! `ui`: the server with the inspector, in a browser.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::Runtime;
use backstitch::host::SessionBundle;
use backstitch_inspector::asset;
use backstitch_server::{Page, Pages};
use clap::Args;

use super::Serve;
use crate::common::Common;
use crate::store::moving::TransferLines;
use crate::usage;

#[derive(Args)]
pub(crate) struct Ui {
    /// Bundle to look at in place of the store (see `export`). It is not imported.
    #[arg(value_name = "FILE", conflicts_with = "write")]
    file: Option<PathBuf>,
    /// Print the link, and open no browser.
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    serve: Serve,
}

impl Ui {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.file.is_some() && common.store.is_some() {
            return usage::refuse("a bundle is served without a store; leave `--store` out".to_owned());
        }
        // The content of a bundle, for as long as it is served.
        let directory = self.file.as_ref().map(|_| tempfile::tempdir()).transpose()?;
        let bundle = match (&self.file, &directory) {
            (Some(file), Some(directory)) => Some(read_bundle(file, directory.path()).await?),
            _ => None,
        };
        let opens_browser = !self.no_open && !common.json;
        let serve = Serve { pages: Some(Arc::new(Inspector)), bundle, opens_browser, ..self.serve };
        serve.run(common).await
    }
}

async fn read_bundle(file: &Path, directory: &Path) -> anyhow::Result<Runtime> {
    let mut lines = TransferLines::new();
    let bundle = SessionBundle::open(file, &mut |step| lines.report(step)).await;
    let bundle = bundle.with_context(|| format!("{} cannot be read as a bundle", file.display()))?;
    let runtime = Runtime::at(directory.join("store.db"))?;
    bundle.copy_to(&runtime, &mut |step| lines.report(step)).await?;
    Ok(runtime)
}

/// The pages of the inspector.
struct Inspector;

impl Pages for Inspector {
    fn page(&self, path: &str) -> Option<Page> {
        let asset = asset(path)?;
        Some(Page { content_type: asset.content_type, bytes: Cow::Borrowed(asset.bytes) })
    }
}

/// Opens a link in the browser of the person. The link is passed in a file that only they can read and that is removed with the returned
/// value, since other users of the machine see the arguments of programs.
pub(super) fn open_browser(link: &str) -> Option<tempfile::TempPath> {
    let page = write_page(link);
    let opened = page.and_then(|page| {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut command = Command::new(opener);
        command.arg(&page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        // The program may stay until the browser ends.
        std::thread::spawn(move || child.wait());
        Ok(page)
    });
    if opened.is_err() {
        eprintln!("no browser could be opened: open the link yourself");
    }
    opened.ok()
}

fn write_page(link: &str) -> std::io::Result<tempfile::TempPath> {
    let mut file = tempfile::Builder::new().prefix("backstitch-").suffix(".html").tempfile()?;
    writeln!(
        file,
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>Backstitch</title>"
    )?;
    Ok(file.into_temp_path())
}
