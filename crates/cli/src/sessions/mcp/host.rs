//! What the MCP server needs from the command: comparing points, forks, and where to approve calls.

use backstitch::id::{CallId, SessionId};
use backstitch_mcp::{HostFuture, ServerHost};
use serde_json::{Value, json};

use crate::common::Common;
use crate::sessions::diff::compared;
use crate::sessions::place::{OpenStore, short};
use crate::sessions::travel::forked;

/// The command, as the server sees it.
pub(super) struct CommandHost {
    pub(super) common: Common,
    pub(super) place: OpenStore,
    pub(super) session: SessionId,
}

impl ServerHost for CommandHost {
    fn diff(&self, from: String, to: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let points = [parsed(&from)?, parsed(&to)?];
            compared(&self.place, self.session, [&points[0], &points[1]], false).await.map_err(text)
        })
    }

    fn fork(&self, point: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let view = self.place.view(self.session).await.map_err(text)?;
            let forked = forked(&self.place, &view, parsed(&point)?, None).await;
            let (session, directory) = forked.map_err(text)?;
            Ok(json!({ "session": session, "fork_of": self.session, "workspace": directory }))
        })
    }

    fn waits(&self, call: CallId, name: &str) -> String {
        let (session, call) = (short(self.session), short(call));
        let command = self.common.hint(format_args!("approve {session} {call}"));
        let text = format!("{name} waits for approval: `{command}` approves it, `deny` refuses it");
        eprintln!("{text}");
        text
    }
}

fn parsed(point: &str) -> Result<backstitch::PointSpec, String> {
    point.parse().map_err(|error| format!("{error}"))
}

fn text(error: anyhow::Error) -> String {
    format!("{error:#}")
}
