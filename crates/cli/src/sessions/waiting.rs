//! What a paused session waits for, and the commands that end the pause.
//!
//! A person who decides about a call is shown all of its arguments, unchanged: what is printed is JSON, and parsing it gives the
//! arguments exactly. The printed commands can be executed as they stand.

use std::collections::HashMap;

use anyhow::Context as _;
use backstitch::budget::Limits;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{InnerMessage, PauseReason, SessionPaused};
use backstitch::load_view;
use backstitch::message::Large;
use backstitch::ports::{BoxFuture, Store, fetch_large};
use backstitch::view::JournalView;
use serde_json::{Value, json};

use super::Common;
use super::place::short;
use crate::terminal::exact_json;

/// Something that a session waits for.
pub(super) struct PendingDecision {
    /// The session in which it is decided: this one, or one that works for a call of it.
    pub(super) session: SessionId,
    pub(super) reason: PauseReason,
    pub(super) detail: String,
    pub(super) call: Option<PendingCall>,
}

/// A call that is waited with.
pub(super) struct PendingCall {
    pub(super) id: CallId,
    pub(super) name: String,
    /// What it would run with, or did.
    pub(super) arguments: Value,
    /// Whether a result of it is recorded that can be used again.
    is_offered: bool,
}

impl PendingCall {
    /// The call with all of its arguments, indented.
    pub(super) fn text(&self, indent: &str) -> String {
        let shown = format!("{} {}  [{}]", self.name, exact_json(&self.arguments), short(self.id));
        shown.lines().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
    }
}

/// Everything that a session waits for, also in sessions that work for its calls.
pub(super) fn waiting<'a>(
    store: &'a dyn Store,
    view: &'a JournalView,
) -> BoxFuture<'a, anyhow::Result<Vec<PendingDecision>>> {
    Box::pin(async move {
        let mut all = Vec::new();
        for pause in view.pauses() {
            if let Some(child) = pause.session {
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
                call: pending_call(store, view, pause).await?,
            });
        }
        // Nothing else can be decided before a poisoned session was looked after.
        all.sort_by_key(|one| one.reason != PauseReason::Poisoned);
        Ok(all)
    })
}

/// The call that a pause is about, with its arguments.
pub(super) async fn pending_call(
    store: &dyn Store,
    view: &JournalView,
    pause: &SessionPaused,
) -> anyhow::Result<Option<PendingCall>> {
    let Some(id) = pause.call_id else { return Ok(None) };
    let Some(call) = view.call(id) else { return Ok(None) };
    let arguments = arguments_of(store, view, id).await?;
    Ok(Some(PendingCall { id, name: call.name.clone(), arguments, is_offered: pause.offer.is_some() }))
}

/// The arguments that a call ran with or would run with: those of its intent where a person changed them, else those of its message.
async fn arguments_of(store: &dyn Store, view: &JournalView, id: CallId) -> anyhow::Result<Value> {
    if let Some(intent) = view.call(id).and_then(|call| call.intent.as_ref()) {
        let mut started = intent.record.clone();
        fetch_large(store, &mut started).await.context("the call's arguments cannot be read")?;
        if let Some(arguments) = started.arguments.as_ref().and_then(Large::inline) {
            return Ok(Value::Object(arguments.clone()));
        }
    }
    let transcript = view.transcript()?;
    let Some(message) = transcript.message_of(id) else { return Ok(Value::Null) };
    let message = with_content(store, message).await?;
    let arguments = message.message.option_call().map(|call| &call.arguments);
    Ok(match arguments.map(|arguments| (arguments.object(), arguments.text())) {
        Some((Some(object), _)) => Value::Object(object.clone()),
        // What is no JSON object is shown as the text that it is.
        Some((None, text)) => Value::String(text.into_owned()),
        None => Value::Null,
    })
}

/// A message with the content that is too large for its record.
async fn with_content(store: &dyn Store, message: &InnerMessage) -> anyhow::Result<InnerMessage> {
    let mut contents = HashMap::new();
    for id in message.object_refs() {
        if let Some(object) = store.object(id).await? {
            contents.insert(id, object.bytes().clone());
        }
    }
    let mut message = message.clone();
    message.hydrate(|reference| contents.get(&reference.object).cloned())?;
    Ok(message)
}

/// How a pause is explained to a person: what is waited for, and commands that end it.
pub(super) fn explain(common: &Common, view: &JournalView, all: &[PendingDecision]) -> Vec<String> {
    let resume = |more: &str| common.hint(format_args!("resume {}{more}", short(view.session_id())));
    let mut lines = Vec::new();
    let mut then = resume("");
    for one in all {
        let PendingDecision { session, reason, detail, call } = one;
        match (reason, call) {
            (PauseReason::Approval, Some(call)) => {
                lines.push(format!("paused: {detail}"));
                lines.push(call.text("  "));
                lines.push("approve it, or deny it (`--reason TEXT` tells the model why; `edit --arguments JSON` instead of `approve` changes it):".to_owned());
                lines.extend(["approve", "deny"].map(|what| decide(common, *session, call.id, what)));
            }
            (PauseReason::EffectUnknown, Some(call)) => {
                lines.push("paused: it is not known whether this call has happened:".to_owned());
                lines.push(call.text("  "));
                lines.push("it happened (the files are kept), run it again, or let it fail (the files are put back):".to_owned());
                let happened = if call.is_offered { "happened" } else { "happened --result done" };
                lines.extend([happened, "retry", "fail"].map(|what| decide(common, *session, call.id, what)));
            }
            (PauseReason::Poisoned, _) => {
                lines.push(format!("paused: {detail}"));
                lines
                    .push("look after the files first. Then continue with the files as they are:".to_owned());
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
            (PauseReason::Asked, _) if detail.starts_with(FILES_CHANGED) => {
                lines.push(format!("paused: {detail}"));
                lines.push("keep them as they are; `--files restore` instead puts them back:".to_owned());
                then = resume(" --files keep");
            }
            (PauseReason::Truncated, _) => {
                lines.push(format!("paused: {detail}, so it is not complete. `--accept` takes it as it is; without it the model continues:"));
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

/// How the runtime begins what it asks after the machine was restarted.
const FILES_CHANGED: &str = "files changed while the machine was restarted";

fn decide(common: &Common, session: SessionId, call: CallId, what: &str) -> String {
    format!("  {}", common.hint(format_args!("resolve {} {} {what}", short(session), short(call))))
}

/// Limits of double the size, as the command line takes them.
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

/// What a session waits for, for programs.
pub(super) fn as_json(all: &[PendingDecision]) -> Value {
    let one = |one: &PendingDecision| {
        let call = one.call.as_ref();
        json!({
            "session": one.session, "reason": one.reason, "detail": one.detail, "call": call.map(|call| call.id),
            "name": call.map(|call| &call.name), "arguments": call.map(|call| &call.arguments),
        })
    };
    all.iter().map(one).collect()
}
