//! The tool runner: the one door through which any tool runs.
//!
//! Whoever calls a tool, a model's answer, a program, an outside agent, calls it here, and so every call is a transaction
//! over session state, files and snapshotable resources: its intent is durable before it starts; it works on a draft; and it ends either with one
//! batch that holds all that it did, or with everything put back and one batch that says why. Telemetry comes strictly
//! after that and can undo nothing.

mod arguments;
mod attempt;
mod child;
mod delegate;
mod files;
mod finish;
mod host;
mod intent;
mod request;
mod resources;
mod result;
mod rollback;
mod settle;
mod start;
mod waiter;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::execution::CallResources;
use backstitch_core::journal::{PauseReason, SessionPaused, WorkspaceRevision};
use backstitch_core::message::{Arguments, Retry};
use backstitch_core::secrets::Secrets;
use backstitch_core::tool::{Approval, Tool};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::SubAgent;
use crate::error::RuntimeError;
use crate::heap::boxed;
use crate::live::{CapturedResource, LiveSession, RESCUE_BYTES, Saver};
use crate::spans::{self, Contents};
use crate::tools::Tools;
use arguments::{Refusal, Validators};
pub(crate) use child::ChildDriver;
use delegate::Caller;
use files::Hold;
use intent::Intent;
pub(crate) use request::ResumedChild;
pub use request::{CallOutcome, CallRequest};
use result::Failure;
use waiter::Waiter;

/// How often a call that conflicts with another is run again.
const CONFLICT_RETRIES: u32 = 3;

/// Runs tools, each call as a transaction. Clones run the same tools on the same session.
///
/// # Cancel safety
///
/// The futures of [`run`](Self::run) and [`run_all`](Self::run_all) may be dropped at any await point, as a server drops a request that
/// was cut off. A call that has not started is not made. One that has is stopped: its context is revoked, its processes are killed,
/// and once its handler has ended its files are put back and its end is recorded, as that of a call that was cancelled. This goes on in
/// the background, and whoever uses the session next (another call, a driver, a rewind, a release) waits for it. Until then the call
/// keeps its hold on the files. A call whose last batch is on its way to the store when it is dropped is committed, and one with an
/// effect outside whose handler is done is recorded with its result. A call of a [`Driver`](crate::Driver) that is dropped is left
/// open, with its files put back, and made again when its evaluation is resumed.
///
/// If the async runtime itself shuts down meanwhile, the session refuses to go on here
/// ([`AheadOfStore`](RuntimeError::AheadOfStore)), and whoever opens it again recovers it from its journal.
///
/// # Calls inside of calls
///
/// A handler may call other tools through a runner of its session. Each such call is a transaction of its own: it commits when it ends, and
/// a rollback of the outer call keeps it. It must not need files that the outer call holds: it would wait for them until the outer
/// call is stopped.
#[derive(Clone)]
pub struct ToolRunner {
    live: Arc<LiveSession>,
    tools: Tools,
    validators: Arc<Validators>,
    contents: Contents,
    prompt_name: String,
    adapter: String,
    grace: Option<Duration>,
    rescue_bytes: u64,
    cancel: CancellationToken,
    /// What is kept out of results.
    secrets: Secrets,
    caller: Option<Arc<Caller>>,
    /// Who saves checkpoints after calls.
    saver: Option<Arc<Saver>>,
}

/// One attempt of a call, on its way.
struct Attempt {
    tool: Tool,
    call: CallRequest,
    /// Taken out when its handler is called.
    arguments: Map<String, Value>,
    intent: Arc<Intent>,
    /// The files before it, for a call that may write.
    before: Option<WorkspaceRevision>,
    resources: CallResources,
    waiter: Arc<Waiter>,
    /// The snapshotable resources that it has changed, once it has succeeded.
    changed: Vec<CapturedResource>,
    started: Duration,
    /// How often it ran into another call before.
    conflicts: u32,
    /// What an agent that works for it may spend.
    allotment: Option<Limits>,
    /// What such an agent has spent.
    spent: Amounts,
}

impl Attempt {
    /// Closes what was made for the call. Code of the session's resources runs here: whatever it does, the call has ended.
    fn end_resources(&self, succeeded: bool) {
        if catch_unwind(AssertUnwindSafe(|| self.resources.end(succeeded))).is_err() {
            tracing::warn!(call = %self.call.call_id, "closing a resource panicked; the call has ended all the same");
        }
    }
}

/// What becomes of an attempt.
enum Settlement {
    End(CallOutcome),
    /// Another call has changed meanwhile what this one overwrites.
    Conflict,
}

impl ToolRunner {
    /// A runner of these tools on this session.
    pub fn new(live: Arc<LiveSession>, tools: Tools) -> Self {
        Self {
            live,
            tools,
            validators: Arc::default(),
            contents: Contents::LeftOut,
            prompt_name: String::new(),
            adapter: "direct".to_owned(),
            grace: None,
            rescue_bytes: RESCUE_BYTES,
            cancel: CancellationToken::new(),
            secrets: Secrets::default(),
            caller: None,
            saver: None,
        }
    }

    /// Says on whose behalf tools run, for the log of invocations: the prompt that offers them, and what speaks to the model.
    #[must_use]
    pub fn on_behalf_of(mut self, prompt_name: impl Into<String>, adapter: impl Into<String>) -> Self {
        self.prompt_name = prompt_name.into();
        self.adapter = adapter.into();
        self
    }

    /// Keeps these keys out of everything that tools give back.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Says how long a stopped handler may take to end.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Says how many bytes of new content are kept of what a failed call leaves before it is put back. What exceeds it is
    /// listed by path and size.
    #[must_use]
    pub fn with_rescue_budget(mut self, bytes: u64) -> Self {
        self.rescue_bytes = bytes;
        self
    }

    /// Cancelling this stops all calls of this runner.
    #[must_use]
    pub fn with_cancellation(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Saves checkpoints after calls.
    pub(crate) fn saving(mut self, saver: Option<Arc<Saver>>) -> Self {
        self.saver = saver;
        self
    }

    /// The tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// The session.
    pub fn session(&self) -> &Arc<LiveSession> {
        &self.live
    }

    /// Whether a tool would take these arguments, or why not.
    pub(crate) fn accepts(&self, tool: &Tool, arguments: &Arguments) -> Result<(), String> {
        self.validators.check(&tool.spec, arguments).map(|_| ()).map_err(|Refusal(reason)| reason)
    }

    /// Runs the calls of one turn side by side. Those that use files wait for each other in this order. The outcomes stand in
    /// the order of the calls, each by itself: an error of the runtime in one of them hides no other. See
    /// [cancel safety](Self#cancel-safety).
    pub async fn run_all(&self, calls: Vec<CallRequest>) -> Vec<Result<CallOutcome, RuntimeError>> {
        futures_util::future::join_all(calls.into_iter().map(|call| self.run(call))).await
    }

    /// Runs a call. See [cancel safety](Self#cancel-safety).
    pub async fn run(&self, call: CallRequest) -> Result<CallOutcome, RuntimeError> {
        self.live.settle().await?;
        let contents = self.contents;
        let named = (call.name.as_str(), call.call_id);
        let span = spans::call(self.live.id(), named, call.attempt, &call.arguments, contents);
        let end = boxed(|| self.transact(call)).instrument(span.clone()).await;
        match &end {
            Ok(end) => end.message().into_iter().for_each(|result| spans::ended(&span, result, contents)),
            Err(_) => spans::failed(&span, "runtime"),
        }
        if let (Ok(_), Some(saver)) = (&end, &self.saver) {
            saver.save_after_call(&self.live).await;
        }
        end
    }

    async fn transact(&self, call: CallRequest) -> Result<CallOutcome, RuntimeError> {
        if let Some(message) = call.refusal.clone() {
            return self.refuse(&call, Failure::by_runtime("denied", message, Retry::Refused)).await;
        }
        let Some(tool) = self.tools.get(&call.name).cloned() else {
            let known: Vec<_> = self.tools.iter().map(|tool| tool.name().as_str()).collect();
            let message = format!("there is no tool {:?}; there are: {}", call.name, known.join(", "));
            return self.refuse(&call, Failure::by_runtime("unknown_tool", message, Retry::Refused)).await;
        };
        let arguments = match self.validators.check(&tool.spec, &call.arguments) {
            Ok(arguments) => Some(arguments),
            Err(Refusal(message)) => {
                let failure = Failure::by_runtime("invalid_arguments", message, Retry::Allowed);
                return self.refuse(&call, failure).await;
            }
        };
        // Nothing may be awaited before the hold: it is granted in the order in which it is asked for.
        let uses = (tool.spec.workspace, self.resource_use(&tool));
        let hold = Hold::take(self.live.workspace(), &self.live.files, uses).await;
        // What waits in the middle of its work has the files until it has ended, and so whoever needs them waits with it.
        if !matches!(hold, Hold::None) && self.live.files_are_lent() && call.continued.is_none() {
            return Ok(CallOutcome::Waits);
        }
        if tool.spec.approval == Approval::Needed && !call.approved {
            self.pause(&call, PauseReason::Approval, format!("{} needs approval", tool.name())).await?;
            return Ok(CallOutcome::NeedsApproval);
        }

        // One that goes on is stopped as one that runs is, so that what was done for it is put back.
        if let Some(deadline) = self.live.deadline(call.evaluation_id)
            && self.live.clock().now() >= deadline
            && call.continued.is_none()
        {
            let message =
                format!("{} was not started, because the evaluation's deadline has passed", tool.name());
            let failure = Failure::by_runtime("deadline_exceeded", message, Retry::Refused);
            return match self.refuse(&call, failure).await? {
                CallOutcome::Failed(message) => Ok(CallOutcome::DeadlineExceeded(message)),
                other => Ok(other),
            };
        }

        // From here on there is something to put back and to record, whether or not somebody waits for it.
        let waiter = Waiter::new(&self.cancel);
        let (runner, waits) = (self.clone(), waiter.clone());
        let given = arguments.unwrap_or_default();
        let work = async move { boxed(|| runner.carry_out(tool, call, given, hold, waits)).await };
        self.live.call_under_way(work, move || waiter.leave()).await
    }

    /// Starts a call that may start, and sees it to its end.
    async fn carry_out(
        &self,
        tool: Tool,
        call: CallRequest,
        arguments: Map<String, Value>,
        hold: Hold,
        waiter: Arc<Waiter>,
    ) -> Result<CallOutcome, RuntimeError> {
        if let Some(agent) = SubAgent::behind(&tool) {
            return boxed(|| self.run_agent(agent, &tool, &call, arguments, &hold, waiter)).await;
        }
        let mut arguments = Some(arguments);
        let mut request = call;
        for conflicts in 0.. {
            // The first attempt takes what was checked, and one that runs again a copy.
            let given = arguments.take().or_else(|| request.arguments.object().cloned()).unwrap_or_default();
            let mut started = match self.start(&tool, &request, given, &hold, &waiter).await {
                Ok(Some(started)) => started,
                Ok(None) => return Ok(CallOutcome::BudgetExhausted),
                Err(error) => return self.not_started(&request, error).await,
            };
            started.conflicts = conflicts;
            match boxed(|| self.attempt(started, &hold)).await? {
                Settlement::End(end) => return Ok(end),
                Settlement::Conflict => request.attempt += 1,
            }
        }
        unreachable!("invariant: the loop ends by returning")
    }
}

fn paused(call: &CallRequest, reason: PauseReason, detail: String) -> SessionPaused {
    SessionPaused::new(reason).of_call(call.call_id).with_detail(detail)
}
