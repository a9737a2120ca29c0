//! `cat`: prints one file as it was at a point.

use std::process::ExitCode;

use backstitch::code::ErrorCode;
use clap::Args;

use crate::common::Common;
use crate::error::CommandError;
use crate::open::file_names::{FileAtPoint, in_session};
use crate::open::place::{OpenStore, short};
use crate::report::Report;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Cat {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    /// Point and path of the file: turn:2:src/main.rs, before:CALL:PATH, 12:PATH, rescue:POSITION:PATH and so on. Without
    /// a point: the file at the head.
    #[arg(value_name = "POINT:PATH")]
    file: FileAtPoint,
}

impl Cat {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(self.session.as_deref()).await?;
        let view = place.view(session).await?;
        let FileAtPoint { point, path } = &self.file;
        let path = in_session(&view, path)?;
        let report = place.runtime.file(&view, point, &path).await?.ok_or_else(|| {
            let message = format!("there is no file {path} at {point}");
            let list = common.hint(format_args!("show {} {point} --files", short(session)));
            CommandError::new(ErrorCode::FileNotFound, message).with_hint(format!("`{list}` lists the files"))
        })?;
        if common.json {
            return Ok(Report::new(&report).print(common));
        }
        // Its bytes, which need not be text.
        terminal::bytes(&report.content());
        Ok(ExitCode::SUCCESS)
    }
}
