//! `name`: gives a session a name.

use std::process::ExitCode;

use backstitch::host::NameError;
use backstitch::journal::SessionName;
use clap::Args;

use crate::common::Common;
use crate::error::CommandError;
use crate::open::{OpenStore, short};
use crate::report::Report;

#[derive(Args)]
pub(crate) struct Name {
    /// Session: its id, at least 4 characters of its beginning or end, or its name.
    session: String,
    /// Name: letters, digits, `-`, `_` and `.`. It can be typed wherever an id can.
    #[arg(required_unless_present = "remove")]
    name: Option<SessionName>,
    /// Remove the name of the session.
    #[arg(long, conflicts_with = "name")]
    remove: bool,
}

impl Name {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        let named = place.runtime.name_session(session, self.name.as_ref()).await;
        let named = named.map_err(|error| name_refusal(common, error))?;
        let line = match &named.name {
            Some(name) => format!("session {} has the name {name}", short(session)),
            None => format!("session {} has no name", short(session)),
        };
        Ok(Report::new(&named).line(line).print(common))
    }
}

/// Adds the command that frees a name to an error about one that is taken.
pub(crate) fn name_refusal(common: &Common, error: NameError) -> anyhow::Error {
    match error {
        NameError::Runtime(error) => error.into(),
        NameError::Taken { session, .. } => {
            let free = common.hint(format_args!("name {} --remove", short(session)));
            CommandError::new(error.code(), error.to_string())
                .with_hint(format!("choose another name, or free it with `{free}`"))
                .into()
        }
        other => CommandError::new(other.code(), other.to_string()).into(),
    }
}
