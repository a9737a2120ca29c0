//! The tool runner, through which all tools run.
//!
//! Every caller of a tool, such as a model's answer, a program or an outside agent, uses the runner. So every
//! call is a transaction over session state, files and snapshotable resources. Its intent is durable before
//! it starts. It works on a draft. It ends either with one batch that has all its changes, or with a rollback
//! and one batch that has the reason. Telemetry comes strictly after that and cannot undo anything.

mod approval;
mod arguments;
mod attempt;
mod child;
mod delegate;
mod files;
mod finish;
mod host;
mod request;
mod result;
mod rollback;
mod settle;
mod start;
mod wait;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::approval::ApprovalRules;
use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::execution::CallResources;
use backstitch_core::journal::{PauseReason, SessionPaused, WorkspaceRevision};
use backstitch_core::message::{Arguments, Retry};
use backstitch_core::mode::AgentMode;
use backstitch_core::secrets::Secrets;
use backstitch_core::tool::Tool;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::SubAgent;
use crate::error::{Result, RuntimeError};
use crate::heap::boxed;
use crate::history::Repetition;
use crate::live::{CapturedResource, LiveSession, RESCUE_BYTES, Saver, WatchedCall};
use crate::spans::{self, Contents};
use crate::tools::Tools;
pub(crate) use approval::{ApprovalNeed, decision_of, first_question, rules_of};
pub use arguments::{InvalidArguments, check_arguments};
use arguments::{Refusal, Validators};
use attempt::Waiter;
pub(crate) use child::{ChildDriver, DriveChild};
use delegate::Caller;
use files::Hold;
pub use request::{CallOutcome, CallRequest};
pub(crate) use request::{ResumedChild, TurnShares};
use result::Failure;
use start::Intent;

/// How often a call that conflicts with another is run again.
const CONFLICT_RETRIES: u32 = 3;

/// Runs tools, each call as a transaction. Clones run the same tools on the same session.
///
/// # Cancel safety
///
/// The futures of [`run`](Self::run) and [`run_all`](Self::run_all) may be dropped at any await point, as a
/// server drops a cancelled request. A call that has not started is not made. A call that has started is
/// stopped: its context is revoked, its processes are killed, and once its handler has ended, its files are
/// restored and its end is recorded, like that of a cancelled call. This continues in the background, and the
/// next user of the session (another call, a driver, a rewind, a release) waits for it. Until then the call
/// keeps its hold on the files. If the last batch of a call is being appended when the call is dropped, the
/// call is committed. A call with an effect outside whose handler is done is recorded with its result. A
/// dropped call of a [`Driver`](crate::Driver) is left open, with its files restored, and runs again when its
/// evaluation is resumed.
///
/// If the async runtime itself shuts down during that, the session cannot be used any more in this process
/// ([`AheadOfStore`](RuntimeError::AheadOfStore)), and is recovered from its journal when it is opened again.
///
/// # Calls inside of calls
///
/// A handler may call other tools through a runner of its session. Each such call is a transaction of its
/// own: it commits when it ends, and a rollback of the outer call does not undo it. Both may read files and
/// snapshotable resources. If one of them writes any and the other uses any, the inner call would wait for the outer
/// one for ever, and fails with [`RuntimeError::NestedCall`]. This is noticed for calls that the handler awaits itself;
/// a call in a task that the handler spawned waits until the outer call ends.
#[derive(Clone)]
#[must_use]
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
    /// Redacted in results.
    secrets: Secrets,
    /// Apply in addition to those of the session.
    rules: ApprovalRules,
    /// What runs without a question, and what is refused. `None` leaves that to the tools.
    mode: Option<AgentMode>,
    caller: Option<Arc<Caller>>,
    saver: Option<Arc<Saver>>,
}

/// One attempt of a call.
struct Attempt {
    tool: Tool,
    call: Arc<CallRequest>,
    /// Empty once its handler was called.
    arguments: Map<String, Value>,
    intent: Arc<Intent>,
    /// The files before the call, if it may write.
    before: Option<WorkspaceRevision>,
    resources: CallResources,
    waiter: Arc<Waiter>,
    /// The snapshotable resources that it has changed, once it has succeeded.
    changed: Vec<CapturedResource>,
    started: Duration,
    /// The number of conflicts with other calls so far.
    conflicts: u32,
    /// The budget of its sub-agent.
    allotment: Option<Limits>,
    /// The amounts that its sub-agent has spent.
    spent: Amounts,
    /// Present if it may write files.
    _watched: Option<WatchedCall>,
}

impl Attempt {
    /// Closes the resources of the call. This runs code of the session's user; whatever it does, the call has
    /// ended.
    fn end_resources(&self, succeeded: bool) {
        if catch_unwind(AssertUnwindSafe(|| self.resources.end(succeeded))).is_err() {
            tracing::warn!(call = %self.call.call_id, "closing a resource panicked; the call has ended all the same");
        }
    }
}

/// The result of an attempt.
enum Settlement {
    End(CallOutcome),
    /// Another call has concurrently changed what this one overwrites.
    Conflict,
}

impl ToolRunner {
    /// Creates a runner of these tools on this session.
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
            rules: ApprovalRules::default(),
            mode: None,
            caller: None,
            saver: None,
        }
    }

    /// Redacts these keys in all results of tools.
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Sets how long a stopped handler may take to end.
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    /// Sets how many bytes of new content are saved of the files that a failed call leaves, before they are
    /// restored. Larger files are listed by path and size.
    pub fn with_rescue_budget(self, bytes: u64) -> Self {
        Self { rescue_bytes: bytes, ..self }
    }

    /// Stops all calls of this runner when the token is cancelled.
    pub fn with_cancellation(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }

    /// Checks arguments against the schema of a tool. The error is the reason for the model.
    pub(crate) fn accepts(&self, tool: &Tool, arguments: &Arguments) -> Result<(), String> {
        self.validators.check(&tool.spec, arguments).map(|_| ()).map_err(|Refusal(reason)| reason)
    }

    /// Runs the calls of one turn concurrently. Calls that use files wait for each other in this order.
    /// Returns the outcomes in the order of the calls. An error of the runtime in one of them does not hide
    /// the others. See [cancel safety](Self#cancel-safety).
    pub async fn run_all(&self, calls: Vec<CallRequest>) -> Vec<Result<CallOutcome>> {
        futures_util::future::join_all(calls.into_iter().map(|call| self.run(call))).await
    }

    /// Runs a call. See [cancel safety](Self#cancel-safety).
    pub async fn run(&self, call: CallRequest) -> Result<CallOutcome> {
        self.live.settle().await?;
        let contents = self.contents;
        let named = (call.name.as_str(), call.call_id);
        let span = spans::call(self.live.id(), named, call.attempt, &call.arguments, contents);
        let end = boxed(|| self.transact(call)).instrument(span.clone()).await;
        match &end {
            Ok(end) => {
                end.message().into_iter().for_each(|result| spans::record_result(&span, result, contents))
            }
            Err(_) => spans::record_failure(&span, "runtime"),
        }
        if let (Ok(_), Some(saver)) = (&end, &self.saver) {
            saver.save_after_call(&self.live).await;
        }
        end
    }

    async fn transact(&self, mut call: CallRequest) -> Result<CallOutcome> {
        if let Some(message) = call.refusal.clone() {
            return boxed(|| self.deny(&call, message)).await;
        }
        let Some(tool) = self.tools.get(&call.name).cloned() else {
            let known: Vec<_> = self.tools.iter().map(|tool| tool.name().as_str()).collect();
            let message = format!("there is no tool {:?}; there are: {}", call.name, known.join(", "));
            return self.refuse(&call, Failure::by_runtime("unknown_tool", message, Retry::Refused)).await;
        };
        let arguments = match self.validators.check(&tool.spec, &call.arguments) {
            Ok(arguments) => arguments,
            Err(Refusal(message)) => {
                let failure = Failure::by_runtime("invalid_arguments", message, Retry::Allowed);
                return self.refuse(&call, failure).await;
            }
        };
        // Nothing may be awaited before the hold: it is granted in the order in which it is requested.
        let uses = (tool.spec.workspace, self.resource_use(&tool));
        let hold = match Hold::take(self.live.workspace(), &self.live.files, uses).await {
            Ok(hold) => hold,
            Err(outer) => {
                return Err(RuntimeError::NestedCall { inner: call.name, outer: outer.tool.to_string() });
            }
        };
        // A child session that waits for a decision keeps the files until it has ended, so other calls that
        // need them wait with it.
        if !matches!(hold, Hold::None) && self.live.condition().has_lent_files() && call.continued.is_none() {
            return Ok(CallOutcome::Waits);
        }
        // Rules are judged before each attempt, since they may be newer than an attempt that was interrupted.
        let rules = boxed(|| rules_of(&self.live, &self.rules)).await?;
        let need = self.need(&rules, &tool, &arguments);
        // A child session of a denied call was rolled back before its call is resumed.
        if let ApprovalNeed::Denied(message) = need {
            return boxed(|| self.deny(&call, message)).await;
        }
        let repetition = boxed(|| self.live.check_repetition(call.call_id, &tool.spec, &arguments)).await?;
        match repetition {
            None => {}
            Some(Repetition::Waits) => return Ok(CallOutcome::Waits),
            Some(Repetition::WithKey(key)) => call.key = Some(key),
        }
        if matches!(need, ApprovalNeed::Person) && !call.approved {
            return boxed(|| self.ask_for_approval(&tool, &call, &arguments)).await;
        }
        if !matches!(need, ApprovalNeed::Person) {
            // It runs because no rule asks about it, whatever a person approved before.
            call.subject = None;
        }

        // A resumed child session is stopped like a running call, so that its changes are rolled back.
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

        // From here on there is something to roll back and to record, even if the caller is dropped.
        let waiter = Waiter::new(&self.cancel);
        let (runner, waits) = (self.clone(), waiter.clone());
        let work = async move { boxed(|| runner.carry_out(tool, call, arguments, hold, waits)).await };
        self.live.call_under_way(work, move || waiter.leave()).await
    }

    /// Starts a call, and runs it to its end.
    async fn carry_out(
        &self,
        tool: Tool,
        call: CallRequest,
        arguments: Map<String, Value>,
        hold: Hold,
        waiter: Arc<Waiter>,
    ) -> Result<CallOutcome> {
        let mut request = Arc::new(call);
        if let Some(agent) = SubAgent::behind(&tool) {
            return boxed(|| self.run_agent(agent, &tool, &request, arguments, &hold, waiter)).await;
        }
        let mut arguments = Some(arguments);
        for conflicts in 0.. {
            // The first attempt takes the checked arguments, and later ones a copy.
            let given = arguments.take().or_else(|| request.arguments.object().cloned()).unwrap_or_default();
            let mut started = match self.start(&tool, &request, given, &hold, &waiter).await {
                Ok(Ok(started)) => started,
                Ok(Err(unstarted)) => return Ok(unstarted),
                Err(error) => return self.handle_failed_start(&request, error).await,
            };
            started.conflicts = conflicts;
            match boxed(|| self.attempt(started, &hold)).await? {
                Settlement::End(end) => return Ok(end),
                Settlement::Conflict => Arc::make_mut(&mut request).attempt += 1,
            }
        }
        unreachable!("invariant: the loop ends by returning")
    }
}

fn paused(call: &CallRequest, reason: PauseReason, detail: String) -> SessionPaused {
    SessionPaused::new(reason).of_call(call.call_id).with_detail(detail)
}
