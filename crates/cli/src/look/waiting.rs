//! What a paused session waits for, and the commands that end the pause.
//!
//! A person who decides about a call sees all of its arguments, unchanged: they are printed as JSON, and
//! parsing the JSON returns the same arguments. The printed commands can be executed unchanged.

use std::collections::HashMap;

use anyhow::Context as _;
use backstitch::budget::Limits;
use backstitch::host::{call_arguments, load_view};
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{InnerMessage, PauseReason, SessionPaused};
use backstitch::ports::{BoxFuture, Store, content_of};
use backstitch::view::JournalView;
use serde_json::{Value, json};

use crate::common::Common;
use crate::open::place::short;
use crate::terminal::exact_json;

/// A decision that a session waits for.
pub(crate) struct PendingDecision {
    /// The session that records the decision: this one, or a child session of one of its calls.
    pub(crate) session: SessionId,
    pub(crate) reason: PauseReason,
    pub(crate) detail: String,
    /// Whether files changed while the machine was restarted.
    files_changed: bool,
    pub(crate) call: Option<PendingCall>,
}

/// A call that waits for a decision.
pub(crate) struct PendingCall {
    pub(crate) id: CallId,
    pub(crate) name: String,
    /// The arguments that it ran with, or would run with.
    pub(crate) arguments: Value,
    /// Whether a result is recorded that can be used again.
    is_offered: bool,
}

impl PendingCall {
    /// Formats the call with all of its arguments, indented.
    pub(crate) fn text(&self, indent: &str) -> String {
        let shown = format!("{} {}  [{}]", self.name, exact_json(&self.arguments), short(self.id));
        shown.lines().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
    }
}

/// Lists the decisions that a session waits for, including those of child sessions.
pub(crate) fn waiting<'a>(
    store: &'a dyn Store,
    view: &'a JournalView,
) -> BoxFuture<'a, anyhow::Result<Vec<PendingDecision>>> {
    Box::pin(async move {
        let mut all = Vec::new();
        for pause in view.pauses() {
            if let Some(waits) = pause.session {
                // The pause names the session that waits, at any depth. Calls of the sessions between wait too.
                let child = pause.call_id.and_then(|call| view.call(call)?.session()).unwrap_or(waits);
                let below = load_view(store, child, None).await?;
                let below = waiting(store, &below).await?;
                if !below.is_empty() {
                    all.extend(below);
                    continue;
                }
            }
            all.push(PendingDecision {
                session: view.session_id(),
                reason: pause.reason,
                detail: pause.detail.clone().unwrap_or_default(),
                files_changed: pause.files_changed,
                call: pending_call(store, view, pause).await?,
            });
        }
        // A poisoned session has to be repaired before anything else can be decided.
        all.sort_by_key(|one| one.reason != PauseReason::Poisoned);
        Ok(all)
    })
}

/// Returns the call that a pause is about, with its arguments.
pub(crate) async fn pending_call(
    store: &dyn Store,
    view: &JournalView,
    pause: &SessionPaused,
) -> anyhow::Result<Option<PendingCall>> {
    let Some(id) = pause.call_id else { return Ok(None) };
    let Some(call) = view.call(id) else { return Ok(None) };
    let arguments = call_arguments(store, view, id).await;
    let arguments = arguments.context("the call's arguments cannot be read")?.current();
    Ok(Some(PendingCall { id, name: call.name.clone(), arguments, is_offered: pause.offer.is_some() }))
}

/// Loads the content of a message that is too large for its record.
pub(crate) async fn with_content(store: &dyn Store, message: &InnerMessage) -> anyhow::Result<InnerMessage> {
    let mut contents = HashMap::new();
    for id in message.object_refs() {
        contents.extend(content_of(store.object(id).await)?.map(|content| (id, content)));
    }
    let mut message = message.clone();
    message.hydrate_content(|reference| contents.get(&reference.object).cloned())?;
    Ok(message)
}

/// Formats what a session waits for, and the commands that end the pause.
pub(crate) fn explain(common: &Common, view: &JournalView, all: &[PendingDecision]) -> Vec<String> {
    let resume = |more: &str| common.hint(format_args!("resume {}{more}", short(view.session_id())));
    let mut lines = Vec::new();
    let mut then = resume("");
    for one in all {
        let PendingDecision { session, reason, detail, call, .. } = one;
        match (reason, call) {
            (PauseReason::Approval, Some(call)) => {
                lines.push(format!("paused: {detail}"));
                lines.push(call.text("  "));
                let edit = common.hint(format_args!(
                    "resolve {} {} edit --arguments JSON",
                    short(session),
                    short(call.id)
                ));
                lines.push(format!("approve or deny it (`--all` decides about all calls, `deny --reason TEXT` gives the model a reason, `{edit}` approves it with other arguments):"));
                let root = short(view.session_id());
                lines.extend(["approve", "deny"].map(|what| {
                    format!("  {}", common.hint(format_args!("{what} {root} {}", short(call.id))))
                }));
            }
            (PauseReason::EffectUnknown, Some(call)) => {
                lines.push("paused: it is unknown whether this call has happened:".to_owned());
                lines.push(call.text("  "));
                // A reason may follow the name of the tool.
                if let Some((_, reason)) = detail.split_once(": ") {
                    lines.push(format!("  {reason}"));
                }
                lines.push("it happened (the files are kept), run it again, or let it fail (the files are restored):".to_owned());
                let happened = if call.is_offered { "happened" } else { "happened --result done" };
                lines.extend([happened, "retry", "fail"].map(|what| decide(common, *session, call.id, what)));
            }
            (PauseReason::Poisoned, _) => {
                lines.push(format!("paused: {detail}"));
                lines.push("repair the files first. Then continue with the files as they are:".to_owned());
                lines.push(format!(
                    "  {}",
                    common.hint(format_args!("resolve {} - continue", short(session)))
                ));
                then = resume(" --files keep");
            }
            (PauseReason::Budget, _) => {
                let limits = view.latest_evaluation().and_then(|evaluation| evaluation.budget);
                lines.push(format!("paused: {detail}. Continue with more, for instance:"));
                then =
                    resume(&limits.map(|limits| format!(" --budget {}", twice(&limits))).unwrap_or_default());
            }
            (PauseReason::Asked, _) if one.files_changed => {
                lines.push(format!("paused: {detail}"));
                lines.push("keep them as they are, or undo the changes with `--files restore`:".to_owned());
                then = resume(" --files keep");
            }
            (PauseReason::Truncated, _) => {
                lines.push(format!("paused: {detail}, so it is not complete. `--accept` accepts it as it is; without it, the model continues:"));
            }
            (PauseReason::Deadline, _) => {
                lines.push(format!("paused: {detail}. Continue with more time, for instance:"));
                then = resume(" --deadline 10m");
            }
            _ => lines.push(format!("paused: {detail}")),
        }
    }
    if all.iter().any(|one| one.call.is_some() && one.reason != PauseReason::Asked) {
        lines.push("then continue:".to_owned());
    }
    lines.push(format!("  {then}"));
    lines
}

fn decide(common: &Common, session: SessionId, call: CallId, what: &str) -> String {
    format!("  {}", common.hint(format_args!("resolve {} {} {what}", short(session), short(call))))
}

/// Formats limits of double the size for `--budget`.
fn twice(limits: &Limits) -> String {
    let money = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let all = [
        ("tokens", limits.total_tokens.map(|most| (most * 2).to_string())),
        ("input_tokens", limits.input_tokens.map(|most| (most * 2).to_string())),
        ("output_tokens", limits.output_tokens.map(|most| (most * 2).to_string())),
        ("money", limits.money_micros.map(|most| money(most * 2))),
        ("turns", limits.turns.map(|most| (most * 2).to_string())),
        ("calls", limits.calls.map(|most| (most * 2).to_string())),
        ("time", limits.millis.map(|most| format!("{}s", (most * 2).div_ceil(1_000)))),
    ];
    let given = all.into_iter().filter_map(|(name, most)| Some(format!("{name}={}", most?)));
    given.collect::<Vec<_>>().join(",")
}

/// Renders the decisions that a session waits for as JSON.
pub(crate) fn as_json(all: &[PendingDecision]) -> Value {
    let one = |one: &PendingDecision| {
        let call = one.call.as_ref();
        json!({
            "session": one.session, "reason": one.reason, "detail": one.detail, "call": call.map(|call| call.id),
            "name": call.map(|call| &call.name), "arguments": call.map(|call| &call.arguments),
        })
    };
    all.iter().map(one).collect()
}
