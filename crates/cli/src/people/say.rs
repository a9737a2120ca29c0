//! `send`, `cancel` and `pause`: write to the inbox of a session.

use std::process::ExitCode;

use backstitch::report::SentItem;
use clap::Args;

use crate::common::Common;
use crate::open::place::{OpenStore, short};
use crate::report::Report;

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
        let sent = place.runtime.send(session, &self.text).await?;
        Ok(report(&sent).print(common))
    }
}

impl Cancel {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let sent = place.runtime.cancel(session).await?;
        Ok(report(&sent).print(common))
    }
}

impl Pause {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let sent = place.runtime.pause(session).await?;
        Ok(report(&sent).print(common))
    }
}

fn report(sent: &SentItem) -> Report {
    let id = short(sent.session);
    Report::new(sent).line(if sent.open {
        format!("sent; the process that drives {id} handles it, or else the next `resume`")
    } else {
        format!("sent; `backstitch resume {id}` answers it")
    })
}
