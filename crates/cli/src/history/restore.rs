//! `restore`: restores single files to their state at a point. The conversation stays.

use std::process::ExitCode;

use backstitch::filesystem::format;
use backstitch::ports::{Objects, PathChange};
use backstitch::{PointSpec, RewindReport};
use clap::Args;
use serde_json::json;

use super::travel::SessionToRewind;
use crate::common::Common;
use crate::look::diff::print_name;
use crate::open::file_names::in_session_or_whole;
use crate::open::place::short;

#[derive(Args)]
pub(crate) struct Restore {
    /// Files and directories to restore, relative to the directory of the session. `.` is the current directory.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Point whose files are restored: a position, before:CALL, after:CALL, CALL, turn:N, start, head or rescue:POSITION.
    #[arg(long, value_name = "POINT")]
    from: PointSpec,
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Restore {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let mut opened = SessionToRewind::open(common, self.session.as_deref(), None).await?;
        let session = opened.session;
        let paths = self.paths.iter().map(|path| in_session_or_whole(&opened.view, path));
        let paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
        let restoring = opened.runtime().restore_with(session, self.from.clone(), paths, opened.options());
        let done = restoring.await?;
        let mut changed = changed(&*opened.place.objects, &done)?;
        let restored = opened.new_restores().await?;
        changed.retain(|change| !restored.iter().any(|restored| restored.has_left(&change.path)));
        let left: Vec<String> = restored.iter().flat_map(|restored| restored.left_alone()).collect();
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "session": session, "at": done.at, "from": self.from.to_string(), "files": changed,
                    "left_alone": left, "root": done.root, "rescue": done.rescue.map(|_| PointSpec::Rescue(done.at).to_string()),
                })
            );
        } else {
            changed.iter().for_each(print_name);
            left.iter().for_each(|line| println!("{line}"));
            println!(
                "restored from {}; `{}` undoes it",
                self.from,
                common.hint(format_args!("undo {}", short(session)))
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Lists the files that a restore changed.
fn changed(objects: &dyn Objects, done: &RewindReport) -> anyhow::Result<Vec<PathChange>> {
    match (done.rescue, done.root) {
        (Some(before), Some(after)) => Ok(format::diff(objects, before, after)?),
        _ => Ok(Vec::new()),
    }
}
