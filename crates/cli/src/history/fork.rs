//! `fork`: starts a session from a point of another one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstitch::report::ForkReport;
use backstitch::view::JournalView;
use backstitch::{ForkOptions, PointSpec};
use clap::Args;

use super::idle::recorded_definition;
use super::neighbours;
use super::travel::effect_lines;
use crate::common::Common;
use crate::open::guarded::{CommandSession, GuardedSession};
use crate::open::{OpenStore, SessionPoints, short};
use crate::report::Report;
use crate::usage;

#[derive(Args)]
pub(crate) struct Fork {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Default: the latest session.
    session: Option<String>,
    /// Point to fork from: a position, before:CALL, after:CALL, CALL, turn:N, start or head. Default: head.
    point: Option<String>,
    /// Directory for the files of the fork, outside of the session's own. Default: a new one beside it.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Fork although another session around the directory may still change files.
    #[arg(long)]
    force: bool,
}

impl Fork {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let SessionPoints { session, points } = SessionPoints::of([self.session, self.point])?;
        let mut points = points.into_iter();
        let point = points.next().unwrap_or(PointSpec::Head);
        if points.next().is_some() {
            return usage::refuse("a fork has one point: the first of two words has to be a session");
        }
        if session.is_none() && point != PointSpec::Head && !common.can_ask() {
            // A short id of a script must not be taken for a point.
            return usage::refuse(
                "name the session to fork; only on a terminal, the latest one is the default",
            );
        }
        let (place, session) = OpenStore::with_session(common, session.as_deref()).await?;
        let view = place.view(session).await?;
        // The name of a new directory is not known yet: only sessions around it are in its way.
        let beside = || view.directory().map(|own| Path::new(own).with_file_name(session.to_string()));
        if let Some(directory) = self.workspace.clone().or_else(beside).filter(|_| !self.force) {
            neighbours::check(common, &place, &directory, session).await?;
        }
        let forked = fork_session(&place, &view, point, self.workspace).await?;
        let directory = forked.workspace.as_ref().map(|directory| format!("its files are in {directory}"));
        let next = match GuardedSession::of(&view) {
            Some(guarded) => Some(format!("the conversation stays with {}", guarded.title())),
            None if CommandSession::of(&view).is_some() => None,
            None => {
                let resume = common.hint(format_args!("resume {}", short(forked.session)));
                Some(format!("`{resume}` continues it"))
            }
        };
        Ok(Report::new(&forked)
            .line(format!("forked into {}", short(forked.session)))
            .lines(effect_lines(&forked.effects))
            .lines(directory)
            .lines(next)
            .print(common))
    }
}

/// Forks a session at a point, into a directory of its own. The fork has the current definition of its parent.
pub(crate) async fn fork_session(
    place: &OpenStore,
    view: &JournalView,
    point: PointSpec,
    workspace: Option<PathBuf>,
) -> anyhow::Result<ForkReport> {
    let definition = recorded_definition(place, view).await?;
    let options = ForkOptions {
        workspace: workspace.map(Into::into),
        definition: definition.map(|definition| definition.to_recorded()),
    };
    Ok(place.runtime.fork_with(view.session_id(), point, options).await?)
}
