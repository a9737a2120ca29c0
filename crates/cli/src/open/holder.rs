//! The process that drives a session, and taking the session over from it.

use backstitch::code::ErrorCode;
use backstitch::id::SessionId;

use super::place::{OpenStore, short};
use crate::common::Common;
use crate::error::CommandError;

/// What to do if another process drives the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenDriven {
    /// Return an error that names the process.
    Refuse,
    /// Kill the process.
    TakeOver,
}

/// Ensures that no process drives a session, before its files are opened.
pub(crate) async fn ensure_idle(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    when: WhenDriven,
) -> anyhow::Result<()> {
    if when == WhenDriven::TakeOver {
        return Ok(place.runtime.end_holder(session).await?);
    }
    let Some(holder) = place.runtime.holder(session).await? else { return Ok(()) };
    let id = short(session);
    let hint = format!(
        "`{}` follows it, `{}` ends that process and continues here",
        common.hint(format_args!("log {id} -f")),
        common.hint(format_args!("resume {id} --take-over"))
    );
    let message = format!("session {id} is driven by {}", holder.owner);
    Err(CommandError::new(ErrorCode::SessionHeld, message).with_hint(hint).into())
}
