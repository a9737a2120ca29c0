//! How long commands wait for what other processes hold: a session, or its directory.
//!
//! The hooks and boundaries of guards hold both only while they record, so what needs them waits for their end. What drives a session
//! holds them for as long as it works, so waiting longer than a moment would not help.

use std::time::{Duration, Instant};

use backstitch::RuntimeError;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::ports::{StoreError, WorkspaceError};

use super::binding::STEP;
use super::tags::PROGRAM;
use crate::open::place::OpenStore;

/// How long a guard is waited for. Programs give their hooks more time than twice this.
pub(crate) const FOR_GUARDS: Duration = Duration::from_secs(10);

/// How long a guard waits for others.
const FOR_OTHERS: Duration = Duration::from_secs(1);

/// When waiting ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    for_guards: Instant,
    for_others: Instant,
}

impl Patience {
    /// The patience of a guard: a moment for others, since the work of a person waits for it.
    pub(crate) fn of_guard() -> Self {
        Self::of_guard_until(Instant::now() + FOR_GUARDS)
    }

    /// That of a guard that has to end soon after this.
    pub(crate) fn of_guard_until(for_guards: Instant) -> Self {
        Self { for_guards, for_others: for_guards.min(Instant::now() + FOR_OTHERS) }
    }

    /// That of a guard at the end of its work, which waits as long for others.
    pub(crate) fn at_end() -> Self {
        let until = Instant::now() + FOR_GUARDS;
        Self { for_guards: until, for_others: until }
    }

    /// That of a command of a person, which is refused at once by what others hold.
    pub(crate) fn of_person() -> Self {
        let now = Instant::now();
        Self { for_guards: now + FOR_GUARDS, for_others: now }
    }

    /// Repeats an operation until nothing holds what it needs, or the time is over.
    pub(crate) async fn retry<T, F>(
        self,
        place: &OpenStore,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, RuntimeError>
    where
        F: Future<Output = Result<T, RuntimeError>>,
    {
        loop {
            match attempt().await {
                Err(error) if self.is_left(place, &error).await => tokio::time::sleep(STEP).await,
                done => return done,
            }
        }
    }

    /// Whether something is held, and its holder may still be waited for.
    async fn is_left(&self, place: &OpenStore, error: &RuntimeError) -> bool {
        if !matches!(error.code(), ErrorCode::SessionHeld | ErrorCode::WorkspaceHeld) {
            return false;
        }
        let now = Instant::now();
        match holder_of(error) {
            _ if now < self.for_others => true,
            Some(holder) if now < self.for_guards => is_recorded_by_guard(place, holder).await,
            _ => false,
        }
    }
}

/// Whether a session records the work of another program. One that cannot be read counts as driven.
pub(crate) async fn is_recorded_by_guard(place: &OpenStore, session: SessionId) -> bool {
    place.view(session).await.is_ok_and(|view| view.created().tags.contains_key(PROGRAM))
}

/// Returns the session whose process holds what an operation needed.
fn holder_of(error: &RuntimeError) -> Option<SessionId> {
    match error {
        RuntimeError::Store(StoreError::Held { session, .. }) => Some(*session),
        RuntimeError::Directory { cause, .. } => cause.downcast_ref::<WorkspaceError>()?.holding_session(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstitch::ports::directory_holder;

    use super::*;

    #[test]
    fn the_session_that_holds_a_directory_is_found() {
        let ids = backstitch::host::fresh_ids(Arc::new(backstitch::SystemClock::default())).unwrap();
        let session = ids.next::<SessionId>();
        let held = |holder: String| RuntimeError::Directory {
            directory: "/shop".into(),
            cause: Arc::new(WorkspaceError::Held { path: "/shop".to_owned(), holder }),
        };
        let name = directory_holder(session);
        assert_eq!(holder_of(&held(name.clone())), Some(session));
        assert_eq!(holder_of(&held(format!("{name} (process 7)"))), Some(session));
        assert_eq!(holder_of(&held("an editor (process 7)".to_owned())), None);
    }
}
