//! The process that drives a session.

use std::time::{Duration, Instant};

use backstitch::id::SessionId;

use super::guarded::{FOR_GUARDS, is_recorded_by_guard};
use super::place::{OpenStore, short};
use crate::common::Common;
use crate::error::{CommandError, ErrorCode};

/// Time between two looks at a session that a guard holds.
const STEP: Duration = Duration::from_millis(20);

/// Ensures that no process drives a session, before its files are opened. A guard holds its session only for a moment, so that is
/// waited for.
pub(crate) async fn ensure_idle(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
) -> anyhow::Result<()> {
    let until = Instant::now() + FOR_GUARDS;
    let holder = loop {
        let Some(holder) = place.runtime.holder(session).await? else { return Ok(()) };
        if Instant::now() >= until || !is_recorded_by_guard(place, session).await {
            break holder;
        }
        tokio::time::sleep(STEP).await;
    };
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
