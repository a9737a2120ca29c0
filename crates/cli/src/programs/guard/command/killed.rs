//! Gaps of guards that were killed: the next guard records them, with the files as they are then.

use std::path::Path;
use std::time::{Duration, Instant};

use backstitch::id::SessionId;
use backstitch::journal::EvaluationOutcome;

use crate::open::guarded::{COMMAND, KilledGuard};
use crate::open::place::{OpenStore, short};
use crate::programs::guard::session;

/// How long the recording of a gap waits for other processes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Records the gaps of guards that were killed. It is only about older sessions, so a failure is only said, and the next guard
/// tries again.
pub(super) async fn record_killed(place: &OpenStore) {
    for killed in KilledGuard::all(&place.directory) {
        let recorded = match &killed.command {
            Some((session, directory)) if place.store.head(*session).await.is_ok() && directory.is_dir() => {
                record_gap(place, *session, directory).await
            }
            // The session is gone, or never began.
            _ => Ok(()),
        };
        match recorded {
            Ok(()) => killed.clear(),
            Err(error) => eprintln!("guard: the end of an earlier command could not be recorded: {error:#}"),
        }
    }
}

async fn record_gap(place: &OpenStore, session: SessionId, directory: &Path) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    let opened = session::open(place, COMMAND, session, directory, until).await?;
    let text = "the guard was killed, or could not record the end; what the command did since is not divided"
        .to_owned();
    let done = async {
        opened.gap(text).await?;
        opened.boundary(Some("found later"), &*place.objects).await?;
        opened.record_answer(None, EvaluationOutcome::Cancelled).await
    };
    let done = done.await;
    opened.release().await?;
    done?;
    eprintln!("guard: the guard of session {} did not record its end; the log shows the gap", short(session));
    Ok(())
}
