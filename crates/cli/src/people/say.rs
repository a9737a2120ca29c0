//! `send`, `cancel` and `pause`: write to the inbox of a session.

use std::process::ExitCode;

use backstitch::id::SessionId;
use backstitch::journal::InboxId;
use clap::Args;
use serde_json::json;

use crate::common::Common;
use crate::open::place::{OpenStore, short};

#[derive(Args)]
pub(crate) struct Send {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Message for the agent.
    text: String,
}

#[derive(Args)]
pub(crate) struct Cancel {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
}

#[derive(Args)]
pub(crate) struct Pause {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
}

impl Send {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let item = place.runtime.send(session, &self.text).await?;
        let view = place.view(session).await?;
        let is_open = view.latest_evaluation().is_some_and(|latest| latest.finished.is_none());
        let id = short(session);
        let then = if is_open { handled_by(session) } else { format!("`backstitch resume {id}` answers it") };
        report(common, &session.to_string(), item, &then)
    }
}

impl Cancel {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let item = place.runtime.cancel(session).await?;
        report(common, &session.to_string(), item, &handled_by(session))
    }
}

impl Pause {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let item = place.runtime.pause(session).await?;
        report(common, &session.to_string(), item, &handled_by(session))
    }
}

fn handled_by(session: SessionId) -> String {
    format!("the process that drives {} handles it, or else the next `resume`", short(session))
}

fn report(common: &Common, session: &str, item: InboxId, then: &str) -> anyhow::Result<ExitCode> {
    if common.json {
        println!("{}", json!({"v": 1, "session": session, "item": item}));
    } else {
        println!("sent; {then}");
    }
    Ok(ExitCode::SUCCESS)
}
