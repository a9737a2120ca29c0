//! What a tool works with while it runs.
//!
//! A [`ToolContext`] is the only thing that a handler is given: its call's identity, a draft of the session, the files, the
//! resources, time and chance. It can be *revoked*: from then on every use of it fails. That is how a call that was stopped
//! is kept from doing more while it ends.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::host::{Progress, ToolHost};
use crate::budget::Limits;
use crate::execution::{CallResources, ResourceError, ResourceMut, ResourceRef, Snapshotable};
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{IdempotencyKey, InnerMessage, TurnFinished};
use crate::ports::{Filesystem, ProcessError, ProcessOutcome, ProcessSpec};
use crate::rng::Rng;
use crate::secrets::Secrets;
use crate::session::{BoxError, Draft, Event, Items, SessionError, Slice};
use crate::time::{Clock, Timestamp};
use crate::tool_spec::ToolName;
use crate::tool_spec::WorkspaceUse;

/// A context could not give what was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The call has ended or was stopped.
    #[error("the call has ended; its context can no longer be used")]
    Revoked,
    /// The evaluation's deadline has passed.
    #[error("the evaluation's deadline has passed")]
    DeadlineExceeded,
    /// The tool did not declare that it uses files, or there are none.
    #[error("the tool {tool} has no files: {reason}")]
    NoFiles {
        /// The tool.
        tool: ToolName,
        /// Why.
        reason: &'static str,
    },
    /// The session refused a change, or could not be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A resource could not be given.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// A process could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A step's value is not what was asked for.
    #[error("the recorded value of step {step:?} does not fit")]
    StepValue {
        /// The step.
        step: String,
        /// Where the two disagree.
        #[source]
        source: serde_json::Error,
    },
    /// What was said or done before could not be fetched.
    #[error("what was said or done before could not be fetched")]
    Object {
        /// What happened.
        #[source]
        source: BoxError,
    },
    /// The name of a step holds a key, which must not be recorded.
    #[error("the name of step {step:?} holds a key")]
    StepName {
        /// The step, without the key.
        step: String,
    },
    /// A step could not be recorded.
    #[error("step {step:?} could not be recorded")]
    Step {
        /// The step.
        step: String,
        /// What happened.
        #[source]
        source: BoxError,
    },
}

/// What a context is made from.
pub struct ContextParts {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whether an earlier attempt was cut off by a crash.
    pub is_resume: bool,
    /// The key of the call's effect.
    pub idempotency_key: IdempotencyKey,
    /// Where changes of the session are collected. It is taken out when the context is made.
    pub draft: Option<Draft>,
    /// Whether the tool uses files.
    pub workspace: WorkspaceUse,
    /// The files, if there are any.
    pub filesystem: Option<Arc<dyn Filesystem>>,
    /// The resources.
    pub resources: CallResources,
    /// When the evaluation has to be done.
    pub deadline: Option<Timestamp>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where chance comes from.
    pub rng: Rng,
    /// What the runtime does for the call.
    pub host: Arc<dyn ToolHost>,
}

/// What a tool works with while it runs. Clones are the same context.
///
/// ```
/// use backstitch_core::ports::WriteMode;
/// use backstitch_core::tool::{ToolContext, ToolError, ToolResult};
///
/// async fn note(context: ToolContext, text: &str) -> Result<ToolResult, ToolError> {
///     context.progress("writing", Some(0.5));
///     let files = context.filesystem()?;
///     files.write_bytes(&"notes.txt".parse()?, text.as_bytes(), WriteMode::Append)?;
///     Ok(ToolResult::ok(format!("noted in call {}", context.call_id())))
/// }
/// ```
#[derive(Clone)]
pub struct ToolContext {
    inner: Arc<Inner>,
}

struct Inner {
    parts: ContextParts,
    /// Taken out when the call ends or is stopped.
    draft: Mutex<Option<Draft>>,
    rng: Mutex<Rng>,
    revoked: Arc<AtomicBool>,
}

impl ToolContext {
    /// The context of a call.
    pub fn new(mut parts: ContextParts) -> Self {
        let revoked = Arc::new(AtomicBool::new(false));
        parts.filesystem = parts.filesystem.map(|files| {
            let guarded: Arc<dyn Filesystem> =
                Arc::new(super::guard::GuardedFilesystem::new(files, parts.workspace, revoked.clone()));
            guarded
        });
        let draft = Mutex::new(parts.draft.take());
        let rng = Mutex::new(parts.rng.clone());
        Self { inner: Arc::new(Inner { draft, rng, revoked, parts }) }
    }

    /// The session.
    pub fn session_id(&self) -> SessionId {
        self.inner.parts.session_id
    }

    /// The evaluation.
    pub fn evaluation_id(&self) -> EvaluationId {
        self.inner.parts.evaluation_id
    }

    /// The call.
    pub fn call_id(&self) -> CallId {
        self.inner.parts.call_id
    }

    /// The tool.
    pub fn tool(&self) -> &ToolName {
        &self.inner.parts.tool
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.parts.attempt
    }

    /// Whether an earlier attempt was cut off by a crash.
    pub fn is_resume(&self) -> bool {
        self.inner.parts.is_resume
    }

    /// The key under which an outside effect must happen at most once. It is the same for every attempt.
    pub fn idempotency_key(&self) -> &IdempotencyKey {
        &self.inner.parts.idempotency_key
    }

    /// Reads and changes the session. Changes are private to the call until it succeeds.
    pub fn session<R>(&self, work: impl FnOnce(&mut Draft) -> R) -> Result<R, ContextError> {
        let mut draft = lock(&self.inner.draft);
        self.check()?;
        draft.as_mut().map(work).ok_or(ContextError::Revoked)
    }

    /// Appends an item to its slice. The change is private to the call until it succeeds.
    pub fn append<S: Slice>(&self, item: S) -> Result<(), ContextError> {
        Ok(self.session(|draft| draft.append(item).map(|_| ()))??)
    }

    /// Dispatches an event to the reducers of its type. The changes are private to the call until it succeeds.
    pub fn dispatch<E: Event>(&self, event: E) -> Result<(), ContextError> {
        Ok(self.session(|draft| draft.dispatch(event).map(|_| ()))??)
    }

    /// All items of a slice, with the changes of this call.
    pub fn all<T: Slice>(&self) -> Result<Items<T>, ContextError> {
        Ok(self.session(|draft| draft.all::<T>())??)
    }

    /// The last item of a slice, with the changes of this call.
    pub fn latest<T: Slice>(&self) -> Result<Option<Arc<T>>, ContextError> {
        Ok(self.session(|draft| draft.latest::<T>())??)
    }

    /// The files of the workspace.
    pub fn filesystem(&self) -> Result<Arc<dyn Filesystem>, ContextError> {
        self.check()?;
        let no_files = |reason| ContextError::NoFiles { tool: self.tool().clone(), reason };
        if self.inner.parts.workspace == WorkspaceUse::None {
            return Err(no_files("it declares that it uses none"));
        }
        self.inner.parts.filesystem.clone().ok_or_else(|| no_files("the session has no workspace"))
    }

    /// A guard that reads a resource; `None` when there is none of this type.
    ///
    /// An ordinary resource is made now if it has to be, and [`ResourceRef::into_shared`] gives it out. A snapshotable one is read
    /// under the hold of the call, so the tool has to declare `resources = "read"` or `"write"`.
    pub fn resource<T: ?Sized + Send + Sync + 'static>(
        &self,
    ) -> Result<Option<ResourceRef<T>>, ContextError> {
        self.check()?;
        Ok(self.inner.parts.resources.read::<T>()?)
    }

    /// A guard that changes a snapshotable resource; `None` when there is none of this type. What is changed is rolled back if the
    /// call fails. The tool has to declare `resources = "write"`, and the guard must not outlive the call.
    pub fn resource_mut<T: Snapshotable>(&self) -> Result<Option<ResourceMut<T>>, ContextError> {
        self.check()?;
        Ok(self.inner.parts.resources.write::<T>()?)
    }

    /// Where the time comes from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.parts.clock
    }

    /// How long the evaluation still has; none without a deadline. An error when it has passed.
    pub fn time_left(&self) -> Result<Option<Duration>, ContextError> {
        let Some(deadline) = self.inner.parts.deadline else { return Ok(None) };
        let left = deadline.since(self.clock().now());
        if left.is_zero() { Err(ContextError::DeadlineExceeded) } else { Ok(Some(left)) }
    }

    /// What is left of the budget, of each kind that is limited; none without a budget.
    pub async fn budget_left(&self) -> Option<Limits> {
        self.inner.parts.host.budget_left(self.evaluation_id()).await
    }

    /// A message with all of its content, also where it is so large that the session holds only its name.
    pub async fn whole_message(
        &self,
        message: &Arc<InnerMessage>,
    ) -> Result<Arc<InnerMessage>, ContextError> {
        self.check()?;
        let wanted = message.object_refs();
        if wanted.is_empty() {
            return Ok(message.clone());
        }
        let mut contents = HashMap::new();
        for id in wanted {
            let object =
                self.inner.parts.host.object(id).await.map_err(|source| ContextError::Object { source })?;
            contents.extend(object.map(|object| (id, object.bytes().clone())));
        }
        let mut whole = InnerMessage::clone(message);
        whole
            .hydrate(|reference| contents.get(&reference.object).cloned())
            .map_err(|error| ContextError::Object { source: error.into() })?;
        Ok(Arc::new(whole))
    }

    /// The turns of the evaluation that have ended, if it is one of an agent that answers with programs.
    pub async fn finished_turns(&self) -> Result<Vec<Arc<TurnFinished>>, ContextError> {
        self.check()?;
        let turns = self.inner.parts.host.finished_turns(self.evaluation_id()).await;
        turns.map_err(|source| ContextError::Object { source })
    }

    /// The evaluations whose conversation the call's evaluation continues, the oldest first.
    pub async fn followed(&self) -> Result<Vec<EvaluationId>, ContextError> {
        self.check()?;
        Ok(self.inner.parts.host.followed(self.evaluation_id()).await)
    }

    /// Draws from the call's own chance, which a call that runs again draws from again.
    pub fn rng<R>(&self, draw: impl FnOnce(&mut Rng) -> R) -> R {
        draw(&mut lock(&self.inner.rng))
    }

    /// Says how far the call is.
    pub fn progress(&self, message: impl Into<String>, fraction: Option<f64>) {
        if self.check().is_ok() {
            self.inner.parts.host.progress(self.call_id(), Progress { message: message.into(), fraction });
        }
    }

    /// Publishes output of the call as it comes, for people who watch. It is not recorded: the result is.
    pub fn output(&self, text: &str) {
        if self.check().is_ok() {
            self.inner.parts.host.output(self.call_id(), text);
        }
    }

    /// The keys that must not be given back. What a tool gives back is freed of them anyway; this is for what it writes, or
    /// shows in parts.
    pub fn secrets(&self) -> Secrets {
        self.inner.parts.host.secrets()
    }

    /// Completes when the call is asked to stop, so that a long one can tidy up.
    pub async fn cancelled(&self) {
        self.inner.parts.host.cancelled(self.call_id()).await;
    }

    /// Does an outside sub-step once: its value is journaled, and a call that runs again gets it from there. A step is given
    /// neither files nor the session, since its effect outlives a rollback.
    ///
    /// The value is what is recorded, in every attempt: known [keys](Self::secrets) are replaced in it, also for the attempt that
    /// did the work. Otherwise a call that runs again would work with another value than the call that was cut off. A handler that
    /// needs a key gets it where it got it first, and not from a step. A name that holds a key is refused before anything is done.
    pub async fn step<T, F>(&self, name: &str, work: F) -> Result<T, super::ToolError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, super::ToolError>>,
    {
        self.check()?;
        let host = &self.inner.parts.host;
        let secrets = self.secrets();
        if let Cow::Owned(clean) = secrets.redact(name) {
            return Err(ContextError::StepName { step: clean }.into());
        }
        let failed = |source| ContextError::Step { step: name.to_owned(), source };
        let misfit = |source| ContextError::StepValue { step: name.to_owned(), source };
        if let Some(value) = host.recall_step(self.call_id(), name.to_owned()).await.map_err(failed)? {
            return Ok(serde_json::from_value(value).map_err(misfit)?);
        }
        let value = work.await?;
        let (encoded, _) = crate::session::encode::to_json(&value).map_err(misfit)?;
        let clean = (!secrets.is_empty()).then(|| secrets.redact_value(encoded.clone()));
        let Some(clean) = clean.filter(|clean| *clean != encoded) else {
            host.record_step(self.call_id(), name.to_owned(), encoded).await.map_err(failed)?;
            return Ok(value);
        };
        // Recorded before it is read, so that a value that no longer fits does not make the work happen twice.
        host.record_step(self.call_id(), name.to_owned(), clean.clone()).await.map_err(failed)?;
        Ok(serde_json::from_value(clean).map_err(misfit)?)
    }

    /// Runs a program to its end. It is killed with all that it started when it takes longer than it may, when the call ends
    /// or is stopped, and when the runtime dies. What it leaves running behind it ends with it.
    pub async fn run_process(&self, spec: ProcessSpec) -> Result<ProcessOutcome, ContextError> {
        self.check()?;
        if spec.directory.is_some() {
            self.filesystem()?;
        }
        match self.inner.parts.host.run_process(self.call_id(), spec).await {
            Err(ProcessError::Ended) => Err(ContextError::Revoked),
            ended => Ok(ended?),
        }
    }

    /// Makes every later use of the context fail, and gives what the draft holds. For the runtime.
    pub fn revoke(&self) -> Option<Draft> {
        self.inner.revoked.store(true, Ordering::SeqCst);
        lock(&self.inner.draft).take()
    }

    fn check(&self) -> Result<(), ContextError> {
        if self.inner.revoked.load(Ordering::SeqCst) { Err(ContextError::Revoked) } else { Ok(()) }
    }
}

/// A poisoned lock means that a handler panicked inside of it; the runtime drops what it did.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ToolContext")
            .field("call", &self.call_id())
            .field("tool", &self.tool().as_str())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
