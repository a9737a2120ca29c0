//! The interface of a running tool.
//!
//! A [`ToolContext`] is the only argument of a handler besides the parameters: the call's identity, a draft
//! of the session, the files, the resources, time and random numbers. It can be *revoked*; every later use of
//! it fails. A stopped call therefore has no further effects while it ends.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::host::{Progress, ToolHost};
use super::wait::RunningSteps;
use crate::budget::Limits;
use crate::execution::{CallResources, ResourceError, ResourceMut, ResourceRef, Snapshotable};
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{ApprovalSubject, IdempotencyKey, InnerMessage, TurnFinished};
use crate::object::ObjectContent;
use crate::ports::{FenceToken, Filesystem, ProcessError, ProcessOutcome, ProcessSpec, StoreError};
use crate::rng::Rng;
use crate::secrets::Secrets;
use crate::session::{BoxError, Draft, Event, Items, SessionError, Slice};
use crate::time::{Clock, Timestamp};
use crate::tool_spec::ToolName;
use crate::tool_spec::WorkspaceUse;

/// A context refused a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The call has ended or was stopped.
    #[error("the call has ended; its context can no longer be used")]
    Revoked,
    /// The evaluation's deadline has passed.
    #[error("the evaluation's deadline has passed")]
    DeadlineExceeded,
    /// The tool did not declare that it uses files, or the session has none.
    #[error("the tool {tool} has no files: {reason}")]
    NoFiles {
        /// The tool.
        tool: ToolName,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// The session refused a change, or could not be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A resource is not available.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// A process could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A recorded step has a value of another type.
    #[error("the recorded value of step {step:?} does not fit")]
    StepValue {
        /// The step.
        step: String,
        /// Position of the error.
        #[source]
        source: serde_json::Error,
    },
    /// Earlier content of the session could not be loaded.
    #[error("what was said or done before could not be fetched")]
    Object {
        /// Reason for the failure.
        #[source]
        source: BoxError,
    },
    /// The name of a step contains an API key, which must not be recorded.
    #[error("the name of step {step:?} holds a key")]
    StepName {
        /// Name of the step, without the key.
        step: String,
    },
    /// The call cannot wait.
    #[error("step {step:?} cannot wait")]
    Wait {
        /// The step.
        step: String,
        /// Reason for the refusal.
        #[source]
        source: BoxError,
    },
    /// A step could not be recorded.
    #[error("step {step:?} could not be recorded")]
    Step {
        /// The step.
        step: String,
        /// Reason for the failure.
        #[source]
        source: BoxError,
    },
}

/// Parts of a context.
pub struct ContextParts {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The call.
    pub call_id: CallId,
    /// Name of the tool.
    pub tool: ToolName,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Whether a crash interrupted an earlier attempt.
    pub is_resume: bool,
    /// Idempotency key of the call.
    pub idempotency_key: IdempotencyKey,
    /// Number of the claim under which the call runs.
    pub fence: FenceToken,
    /// What a person approved, if the call needed it.
    pub approved: Option<Arc<ApprovalSubject>>,
    /// Draft that collects changes of the session. [`ToolContext::new`] takes it out.
    pub draft: Option<Draft>,
    /// Declared use of files.
    pub workspace: WorkspaceUse,
    /// The files, if the session has a workspace.
    pub filesystem: Option<Arc<dyn Filesystem>>,
    /// Resources of the session, within the hold of the call.
    pub resources: CallResources,
    /// Deadline of the evaluation.
    pub deadline: Option<Timestamp>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Random number generator of the call.
    pub rng: Rng,
    /// Services of the runtime.
    pub host: Arc<dyn ToolHost>,
}

/// The interface of a running tool. Clones share one context.
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
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) parts: ContextParts,
    pub(super) steps: RunningSteps,
    /// Taken when the call ends or is stopped.
    draft: Mutex<Option<Draft>>,
    rng: Mutex<Rng>,
    revoked: Arc<AtomicBool>,
}

impl ToolContext {
    /// Creates the context of a call.
    pub fn new(mut parts: ContextParts) -> Self {
        let revoked = Arc::new(AtomicBool::new(false));
        parts.filesystem = parts.filesystem.map(|files| {
            let (host, workspace) = (parts.host.clone(), parts.workspace);
            let guarded = super::guard::GuardedFilesystem::new(files, workspace, revoked.clone(), host);
            Arc::new(guarded) as Arc<dyn Filesystem>
        });
        let draft = Mutex::new(parts.draft.take());
        let rng = Mutex::new(parts.rng.clone());
        let steps = RunningSteps::default();
        Self { inner: Arc::new(Inner { draft, rng, revoked, parts, steps }) }
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

    /// Name of the tool.
    pub fn tool(&self) -> &ToolName {
        &self.inner.parts.tool
    }

    /// Number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.parts.attempt
    }

    /// Whether a crash interrupted an earlier attempt.
    pub fn is_resume(&self) -> bool {
        self.inner.parts.is_resume
    }

    /// The key under which an external effect must happen at most once. It is the same for every attempt.
    pub fn idempotency_key(&self) -> &IdempotencyKey {
        &self.inner.parts.idempotency_key
    }

    /// The number of the claim under which the call runs. A later process that drives the session has a larger one, so a receiver
    /// that refuses smaller numbers than it has seen of a session refuses a process that was replaced and does not know it.
    pub fn fence(&self) -> FenceToken {
        self.inner.parts.fence
    }

    /// What a person approved, if the call needed approval. A handler that [inspects](super::ToolHandler::inspect) its
    /// calls compares it with what it is about to start.
    pub fn approved(&self) -> Option<&ApprovalSubject> {
        self.inner.parts.approved.as_deref()
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

    /// Returns all items of a slice, including the changes of this call.
    pub fn all<T: Slice>(&self) -> Result<Items<T>, ContextError> {
        Ok(self.session(|draft| draft.all::<T>())??)
    }

    /// Returns the last item of a slice, including the changes of this call.
    pub fn latest<T: Slice>(&self) -> Result<Option<Arc<T>>, ContextError> {
        Ok(self.session(|draft| draft.latest::<T>())??)
    }

    /// Returns the files of the workspace.
    pub fn filesystem(&self) -> Result<Arc<dyn Filesystem>, ContextError> {
        self.check()?;
        let no_files = |reason| ContextError::NoFiles { tool: self.tool().clone(), reason };
        if self.inner.parts.workspace == WorkspaceUse::None {
            return Err(no_files("it declares that it uses none"));
        }
        self.inner.parts.filesystem.clone().ok_or_else(|| no_files("the session has no workspace"))
    }

    /// Returns the directory of the session's workspace, for programs that outlive the call. `None` if there is none on
    /// a disk.
    pub fn directory(&self) -> Option<PathBuf> {
        self.inner.parts.host.directory()
    }

    /// Returns a guard that reads a resource; `None` if there is none of this type.
    ///
    /// An ordinary resource is created now if necessary, and [`ResourceRef::into_shared`] hands it out. A
    /// snapshotable one is read under the hold of the call, so the tool has to declare `resources = "read"`
    /// or `"write"`.
    pub fn resource<T: ?Sized + Send + Sync + 'static>(
        &self,
    ) -> Result<Option<ResourceRef<T>>, ContextError> {
        self.check()?;
        Ok(self.inner.parts.resources.read::<T>()?)
    }

    /// Returns a guard that changes a snapshotable resource; `None` if there is none of this type. Changes
    /// are rolled back if the call fails. The tool has to declare `resources = "write"`, and the guard must
    /// not outlive the call.
    pub fn resource_mut<T: Snapshotable>(&self) -> Result<Option<ResourceMut<T>>, ContextError> {
        self.check()?;
        Ok(self.inner.parts.resources.write::<T>()?)
    }

    /// The injected clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.parts.clock
    }

    /// Returns the remaining time of the evaluation; none without a deadline. Fails if the deadline has
    /// passed.
    pub fn time_left(&self) -> Result<Option<Duration>, ContextError> {
        let Some(deadline) = self.inner.parts.deadline else { return Ok(None) };
        let left = deadline.since(self.clock().now());
        if left.is_zero() { Err(ContextError::DeadlineExceeded) } else { Ok(Some(left)) }
    }

    /// Returns the remaining budget of each limited kind; none without a budget.
    pub async fn budget_left(&self) -> Option<Limits> {
        self.inner.parts.host.budget_left(self.evaluation_id()).await
    }

    /// Returns a message with all of its content, including content that the session only refers to.
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
            let content = match self.inner.parts.host.object(id).await {
                Ok(object) => object.as_ref().map(ObjectContent::from),
                Err(error) => match error.downcast_ref() {
                    Some(StoreError::Redacted { .. }) => Some(ObjectContent::Redacted),
                    _ => return Err(ContextError::Object { source: error }),
                },
            };
            contents.extend(content.map(|content| (id, content)));
        }
        let mut whole = InnerMessage::clone(message);
        whole
            .hydrate_content(|reference| contents.get(&reference.object).cloned())
            .map_err(|error| ContextError::Object { source: error.into() })?;
        Ok(Arc::new(whole))
    }

    /// Returns the finished turns of the evaluation, if its agent answers with programs.
    pub async fn finished_turns(&self) -> Result<Vec<Arc<TurnFinished>>, ContextError> {
        self.check()?;
        let turns = self.inner.parts.host.finished_turns(self.evaluation_id()).await;
        turns.map_err(|source| ContextError::Object { source })
    }

    /// Returns the evaluations whose conversation the call's evaluation continues, oldest first.
    pub async fn followed_evaluations(&self) -> Result<Vec<EvaluationId>, ContextError> {
        self.check()?;
        Ok(self.inner.parts.host.followed_evaluations(self.evaluation_id()).await)
    }

    /// Draws random numbers of the call. A call that runs again draws the same ones.
    pub fn rng<R>(&self, draw: impl FnOnce(&mut Rng) -> R) -> R {
        draw(&mut lock(&self.inner.rng))
    }

    /// Reports the progress of the call.
    pub fn progress(&self, message: impl Into<String>, fraction: Option<f64>) {
        if self.check().is_ok() {
            self.inner.parts.host.progress(self.call_id(), Progress { message: message.into(), fraction });
        }
    }

    /// Publishes output of the running call to observers. It is not recorded; the result is.
    pub fn output(&self, text: impl AsRef<str>) {
        if self.check().is_ok() {
            self.inner.parts.host.output(self.call_id(), text.as_ref());
        }
    }

    /// The API keys that must not be returned. They are removed from the result of a tool anyway; this is for
    /// files that it writes and for output that it shows in parts.
    pub fn secrets(&self) -> Secrets {
        self.inner.parts.host.secrets()
    }

    /// Waits for the answer of a person. The time until then does not count towards the time limit of the tool.
    pub async fn wait_for_person<T>(&self, answer: impl Future<Output = T>) -> T {
        struct EndOfWait<'a>(&'a ToolContext);
        impl Drop for EndOfWait<'_> {
            fn drop(&mut self) {
                self.0.inner.parts.host.set_waiting_for_person(self.0.call_id(), false);
            }
        }
        self.inner.parts.host.set_waiting_for_person(self.call_id(), true);
        let _end = EndOfWait(self);
        answer.await
    }

    /// Completes when the call has to stop, so that a long one can clean up.
    pub async fn cancelled(&self) {
        self.inner.parts.host.cancelled(self.call_id()).await;
    }

    /// Runs an external step once: its value is journaled, and a call that runs again receives the recorded
    /// value. A step gets neither files nor the session, since its effect outlives a rollback.
    ///
    /// The returned value is the recorded one in every attempt: known [keys](Self::secrets) are replaced in
    /// it, even for the attempt that did the work. Otherwise a call that runs again would use another value
    /// than the interrupted one. A handler that needs a key gets it from its original source, not from a
    /// step. A name that contains a key is refused before any work is done.
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
        let running = self.inner.steps.begin();
        let value = work.await?;
        drop(running);
        let (encoded, _) = crate::session::encode::to_json(&value).map_err(misfit)?;
        let clean = (!secrets.is_empty()).then(|| secrets.redact_value(encoded.clone()));
        let Some(clean) = clean.filter(|clean| *clean != encoded) else {
            host.record_step(self.call_id(), name.to_owned(), encoded).await.map_err(failed)?;
            return Ok(value);
        };
        // Recorded before it is decoded, so that a value of the wrong type does not cause the work to run
        // twice.
        host.record_step(self.call_id(), name.to_owned(), clean.clone()).await.map_err(failed)?;
        Ok(serde_json::from_value(clean).map_err(misfit)?)
    }

    /// Runs a program to its end. The program and all of its child processes are killed when it exceeds its
    /// time limit, when the call ends or is stopped, and when the runtime dies. Processes that it leaves
    /// running are killed when it ends.
    pub async fn run_process(&self, spec: ProcessSpec) -> Result<ProcessOutcome, ContextError> {
        self.check()?;
        if spec.directory.is_some() {
            self.filesystem()?;
        }
        self.inner.steps.note_process();
        match self.inner.parts.host.run_process(self.call_id(), spec).await {
            Err(ProcessError::Ended) => Err(ContextError::Revoked),
            ended => Ok(ended?),
        }
    }

    /// Makes every later use of the context fail, and returns the draft. For the runtime.
    pub fn revoke(&self) -> Option<Draft> {
        self.inner.revoked.store(true, Ordering::SeqCst);
        lock(&self.inner.draft).take()
    }

    pub(super) fn check(&self) -> Result<(), ContextError> {
        let is_over = self.inner.revoked.load(Ordering::SeqCst) || !self.inner.parts.host.holds_session();
        if is_over { Err(ContextError::Revoked) } else { Ok(()) }
    }
}

/// Locks a mutex. A poisoned lock means that a handler panicked; the runtime discards its changes.
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
