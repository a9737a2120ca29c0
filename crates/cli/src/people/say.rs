//! `send`, `cancel` and `pause`: write to the inbox of a session.

use std::process::ExitCode;

use backstitch::report::SentItem;
use clap::Args;

use crate::common::Common;
use crate::open::{OpenStore, short};
use crate::report::Report;

#[derive(Args)]
pub(crate) struct Send {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Message for the agent.
    text: String,
}

// A session to cancel or to pause. The help is that of the command.
#[derive(Args)]
pub(crate) struct Interrupt {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
}

impl Send {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        Ok(report(&place.runtime.send(session, &self.text).await?).print(common))
    }
}

impl Interrupt {
    pub(crate) async fn cancel(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        Ok(report(&place.runtime.cancel(session).await?).print(common))
    }

    pub(crate) async fn pause(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        Ok(report(&place.runtime.pause(session).await?).print(common))
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
