//! Runs of agents: the main interface of the runtime.
//!
//! [`Runtime::start`] stores a session with its mission and returns a [`Run`], which observes the session
//! while a task of the runtime drives it to its answer. [`Runtime::ask`] and [`Runtime::resume`] do the same
//! with an existing session. Dropping a run, or not reading its events, changes nothing. [`Run::pause`],
//! [`Run::cancel`] and [`Runtime::shutdown`] stop it.
//!
//! Operations on sessions that are not driven, such as [`Runtime::rewind`], [`Runtime::decide`] and [`Runtime::apply`], open
//! the session, claim it and release it by themselves.

mod checkouts;
mod compact;
mod decide;
mod door;
mod drive;
mod history;
mod holder;
mod isolated;
mod opening;
mod people;
mod programs;
mod task;

use std::sync::Arc;

use backstitch_core::id::SessionId;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::{Result, RuntimeError};
use crate::events::{EventStream, SessionEvent};
use crate::outcome::{DriveOutcome, FinalAnswer};
use crate::runtime::Runtime;

pub use compact::CompactOptions;
pub use decide::{DecideOptions, DecisionState};
pub use drive::Rest;
pub(crate) use drive::pauses_of_person;
pub use history::{ForkOptions, HistoryStep, RewindOptions};
pub use holder::SessionHolder;
pub use people::{ApprovalOutcome, DecidedCall, DecisionReport, ResolutionReport};

/// The outcome of a run, once it has ended.
type Outcome = Option<Arc<Result<DriveOutcome>>>;

/// A session that a task of the runtime drives. The handle only observes it.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, Runtime};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml(&replies)?;
/// let agent = Agent::new("tailor").policy(policy);
/// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
/// let mut run = runtime.start(&agent, "Mend the coat.").await?;
/// while let Some(event) = run.next().await {
///     println!("{event}");
/// }
/// assert_eq!(run.answer::<String>().await?, "Mended.");
/// # Ok(())
/// # }
/// ```
pub struct Run {
    runtime: Runtime,
    session: SessionId,
    events: EventStream,
    outcome: watch::Receiver<Outcome>,
    stop: CancellationToken,
}

impl Run {
    /// Returns the id of the session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Includes content that is too large for a record, such as texts above 64 KiB, in the messages of events, as
    /// [`EventStream::with_content`] does.
    #[must_use]
    pub fn with_content(self) -> Self {
        Self { events: self.events.with_content(), ..self }
    }

    /// Returns the next event of the session, or `None` once the run has ended and all its events were
    /// returned. Cancel safe. If the store cannot be read, the events end, and a warning is logged.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            let has_ended = self.outcome.borrow().is_some() || self.outcome.has_changed().is_err();
            match self.events.ready().await {
                Ok(Some(event)) => return Some(event),
                Ok(None) if has_ended => return None,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(session = %self.session, %error, "the events of a run cannot be read");
                    return None;
                }
            }
            tokio::select! {
                more = self.events.wait() => if !more {
                    // The session is released, and its outcome follows.
                    let _ = self.outcome.wait_for(Option::is_some).await;
                },
                _ = self.outcome.changed() => {}
            }
        }
    }

    /// Waits for the outcome of the run: an answer, a failure or a pause. It can be awaited more than once,
    /// and does not depend on events being read.
    pub async fn outcome(&self) -> Result<DriveOutcome> {
        let mut outcome = self.outcome.clone();
        let ended = match outcome.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone(),
            // The async runtime ended the task.
            Err(_) => None,
        };
        match ended.as_deref() {
            Some(Ok(ended)) => Ok(ended.clone()),
            Some(Err(RuntimeError::Shared(error))) => Err(RuntimeError::Shared(error.clone())),
            Some(Err(_)) | None => Err(RuntimeError::ShuttingDown),
        }
    }

    /// Waits for the answer, and deserializes it: a `String` for text, or the type that the agent [answers
    /// with](crate::Agent::answers_with). Any other outcome is an error.
    pub async fn answer<T: DeserializeOwned>(&self) -> Result<T> {
        let FinalAnswer { text, output, .. } = self.outcome().await?.answer()?;
        let has_output = output.is_some();
        let value = output.unwrap_or(Value::String(text));
        T::deserialize(value).map_err(|error| RuntimeError::AnswerType {
            wanted: std::any::type_name::<T>(),
            reason: if has_output {
                error.to_string()
            } else {
                format!("{error}; `answers_with` makes an agent answer with values of a type")
            },
        })
    }

    /// Pauses the session at once: running calls are rolled back. [`Runtime::resume`] continues it.
    pub fn pause(&self) {
        self.stop.cancel();
    }

    /// Cancels the evaluation: running calls are rolled back. Fails with [`RuntimeError::NothingToCancel`] if
    /// it has ended.
    pub async fn cancel(&self) -> Result<()> {
        self.runtime.cancel(self.session).await.map(|_| ())
    }
}

debug_fields!(Run { session });
