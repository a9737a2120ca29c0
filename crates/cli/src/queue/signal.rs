//! `signal`: sends a signal that calls of a session wait for.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::common::Common;
use crate::open::{OpenStore, short};
use crate::report::Report;

#[derive(Args)]
pub(crate) struct SendSignal {
    /// Session: its id, at least 4 characters of its beginning or end, or its name.
    session: String,
    /// Name of the signal.
    name: String,
    /// Value for the call that waits: JSON, or else a text. Default: null.
    value: Option<String>,
}

impl SendSignal {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        let value = self.value.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)));
        let sent = place.runtime.signal(session, &self.name, value.unwrap_or_default()).await?;
        let hint = common.hint(format_args!("resume {}", short(session)));
        let line =
            format!("sent; a worker continues the session if it waits in the queue, and `{hint}` does else");
        Ok(Report::new(&sent).line(line).print(common))
    }
}
