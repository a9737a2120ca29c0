//! `send`, `cancel` and `pause`: what is said to a session from outside, through its inbox.

use std::process::ExitCode;

use backstitch::id::SessionId;
use backstitch::journal::InboxId;
use clap::Args;
use serde_json::json;

use super::Common;
use super::place::{OpenStore, short};

#[derive(Args)]
pub(crate) struct Send {
    /// The session, by the beginning or the end of its id.
    session: String,
    /// What is said.
    text: String,
}

#[derive(Args)]
pub(crate) struct Cancel {
    /// The session, by the beginning or the end of its id.
    session: String,
}

#[derive(Args)]
pub(crate) struct Pause {
    /// The session, by the beginning or the end of its id.
    session: String,
}

impl Send {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let item = place.runtime.send(session, &self.text).await?;
        let view = place.view(session).await?;
        let is_open = view.latest_evaluation().is_some_and(|latest| latest.finished.is_none());
        let id = short(session);
        let then = match is_open {
            true => format!("whoever drives {id} takes it in"),
            false => format!("`backstitch resume {id}` answers it"),
        };
        told(common, &session.to_string(), item, &then)
    }
}

impl Cancel {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let item = place.runtime.cancel(session).await?;
        told(common, &session.to_string(), item, &taken_in(session))
    }
}

impl Pause {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let item = place.runtime.pause(session).await?;
        told(common, &session.to_string(), item, &taken_in(session))
    }
}

fn taken_in(session: SessionId) -> String {
    format!("whoever drives {} takes it in", short(session))
}

fn told(common: &Common, session: &str, item: InboxId, then: &str) -> anyhow::Result<ExitCode> {
    match common.json {
        true => println!("{}", json!({"v": 1, "session": session, "item": item})),
        false => println!("sent; {then}"),
    }
    Ok(ExitCode::SUCCESS)
}
