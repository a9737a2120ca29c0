//! The process that drives a session.

use backstitch::id::SessionId;

use super::place::{OpenStore, short};
use crate::common::Common;
use crate::error::{CommandError, ErrorCode};

/// Ensures that no process drives a session, before its files are opened.
pub(crate) async fn ensure_idle(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
) -> anyhow::Result<()> {
    let Some(holder) = place.runtime.holder(session).await? else { return Ok(()) };
    let message = format!("session {} is driven by {}", short(session), holder.owner);
    let hint = hint(common, session);
    Err(CommandError::new(ErrorCode::SessionHeld, message).with_hint(hint).into())
}

/// Names the commands for a session that another process drives.
pub(crate) fn hint(common: &Common, session: SessionId) -> String {
    let id = short(session);
    format!(
        "`{}` follows it, `{}` ends that process and continues here",
        common.hint(format_args!("log {id} -f")),
        common.hint(format_args!("resume {id} --take-over"))
    )
}
