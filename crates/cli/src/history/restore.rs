//! `restore`: restores single files to their state at a point. The conversation stays.

use std::process::ExitCode;

use backstitch::PointSpec;
use clap::Args;

use super::idle::IdleSession;
use super::restores::left_alone;
use crate::common::Common;
use crate::look::diff::named;
use crate::open::file_names::in_session_or_whole;
use crate::open::place::short;
use crate::report::Report;

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
        let opened = IdleSession::open(common, self.session.as_deref(), None).await?;
        let paths = self.paths.iter().map(|path| in_session_or_whole(&opened.view, path));
        let paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
        let restoring = opened.place.runtime.restore_with(opened.session, self.from, paths, opened.options());
        let done = restoring.await?;
        let undo = common.hint(format_args!("undo {}", short(opened.session)));
        let left: Vec<String> = left_alone(&done.kept).collect();
        Ok(Report::new(&done)
            .with("left_alone", left.clone())
            .lines(done.files.iter().map(named))
            .lines(left)
            .line(format!("restored from {}; `{undo}` undoes it", done.from))
            .print(common))
    }
}
