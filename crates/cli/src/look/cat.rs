//! `cat`: prints one file as it was at a point.

use std::process::ExitCode;

use backstitch::code::ErrorCode;
use backstitch::filesystem::format;
use backstitch::host::locate;
use clap::Args;
use serde_json::json;

use crate::common::Common;
use crate::error::CommandError;
use crate::open::file_names::{FileAtPoint, in_session};
use crate::open::place::OpenStore;
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
        let found = locate(&*place.store, &view, point).await?;
        let object = match found.files {
            Some(files) => format::read_at(&*place.objects, files.root, path.as_str().as_bytes())?,
            None => None,
        };
        let object = object.ok_or_else(|| {
            let message = format!("there is no file {path} at {point}");
            let list =
                common.hint(format_args!("show {} {point} --files", crate::open::place::short(session)));
            CommandError::new(ErrorCode::FileNotFound, message).with_hint(format!("`{list}` lists the files"))
        })?;
        let bytes = object.bytes();
        if common.json {
            let text = std::str::from_utf8(bytes).ok();
            let hex =
                text.is_none().then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            println!(
                "{}",
                json!({
                    "v": 1, "session": session, "point": point.to_string(), "path": path.as_str(),
                    "bytes": bytes.len(), "text": text, "hex": hex,
                })
            );
        } else {
            terminal::bytes(bytes);
        }
        Ok(ExitCode::SUCCESS)
    }
}
