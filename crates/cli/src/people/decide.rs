//! What people tell a session: `resolve`, `approve` and `deny` decide, `send`, `cancel` and `pause` write to its inbox.

use std::process::ExitCode;

use backstitch::host::{IdPart, check_arguments, find_call};
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{Decision, PauseReason};
use backstitch::message::OptionResult;
use backstitch::report::{DecisionReport, SentItem};
use backstitch::{DecideOptions, WaitingCall};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::history::idle::IdleSession;
use crate::history::restores::{self, RestoreCause};
use crate::open::definition::build_agent;
use crate::open::{OpenStore, is_session, short, user_name};
use crate::report::Report;
use crate::terminal::exact_json;
use crate::usage::{self, Usage};

/// Argument in place of a call id for a decision about the whole session.
const WHOLE_SESSION: &str = "-";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The call has happened. Its result is that of `--result`, or a recorded one.
    Happened,
    /// Run the call again.
    Retry,
    /// Record the call as failed, and restore its files.
    Fail,
    /// Run the call.
    Approve,
    /// Run the call with the arguments of `--arguments`.
    Edit,
    /// Do not run the call.
    Deny,
    /// Continue the session after its files were repaired.
    Continue,
}

#[derive(Args)]
pub(crate) struct Resolve {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Call id, or at least 4 characters of its beginning or end; `-` for the whole session.
    call: String,
    /// Decision.
    what: What,
    /// Result of the call for `happened`, as JSON or text. Default: the result that is recorded.
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// Arguments for `edit`, as a JSON object.
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Reason of `fail` or `deny`, which the model receives. Default: none.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Resolve {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if !is_session(&self.session) {
            self.session.parse::<IdPart>()?;
        }
        if self.call != WHOLE_SESSION {
            self.call.parse::<IdPart>()?;
        }
        let opened = IdleSession::open(common, Some(&self.session), None).await?;
        let (call, decision) = self.decision(&opened).await?;
        let (by, files) = (Some(user_name()), opened.files.clone());
        let options = DecideOptions { by, files, ..DecideOptions::default() };
        let done = opened.place.runtime.resolve_with(opened.session, call, decision, options).await?;
        let restored = done.restored.iter();
        let resume = common.hint(format_args!("resume {}", short(done.session)));
        Ok(Report::new(&done)
            .with("call", self.call)
            .with("restored", restores::events(common, &done.restored))
            .lines(restored.flat_map(|restored| restores::lines(common, restored, RestoreCause::Call)))
            .line(format!("decided; `{resume}` continues"))
            .print(common))
    }

    /// Returns the decision, and the call that it is about.
    async fn decision(&self, opened: &IdleSession) -> anyhow::Result<(Option<CallId>, Decision)> {
        if self.call == WHOLE_SESSION {
            if self.what != What::Continue {
                return usage::refuse("name a call: `-` stands only with `continue`");
            }
            return Ok((None, Decision::Continue));
        }
        let view = &opened.view;
        let call = find_call(view, &self.call)?;
        let reason = self.reason.clone();
        let decision = match self.what {
            What::Retry => Decision::Retry,
            What::Approve => Decision::Approve,
            What::Continue => Decision::Continue,
            What::Fail => Decision::Fail { reason },
            What::Deny => Decision::Deny { reason },
            What::Edit => {
                let missing = || Usage("`edit` needs `--arguments JSON`".to_owned());
                let text = self.arguments.as_deref().ok_or_else(missing)?;
                let arguments = serde_json::from_str(text);
                let arguments: Map<String, Value> = arguments
                    .map_err(|error| Usage(format!("`--arguments` is not a JSON object: {error}")))?;
                // An agent that cannot be built here checks the arguments when the call runs.
                let built = opened.definition.as_ref().and_then(|definition| build_agent(definition).ok());
                let tools = built.as_ref().map(|built| &built.agent.tools);
                if let Some(tool) = view.call(call).and_then(|call| tools?.get(&call.name)) {
                    check_arguments(&tool.spec, &arguments).map_err(|error| Usage(error.to_string()))?;
                }
                Decision::Edit { arguments }
            }
            What::Happened => {
                let name = view.call(call).map(|call| call.name.clone()).unwrap_or_default();
                let result = match &self.result {
                    Some(text) => {
                        let value =
                            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
                        OptionResult::new(call, &name, value)
                    }
                    None => {
                        let offered = opened.place.runtime.offered_result(opened.session, call).await?;
                        offered.ok_or_else(|| {
                            CommandError::new(ErrorCode::DecisionRefused, "no result of the call is recorded")
                                .with_hint("add the result as `--result TEXT`")
                        })?
                    }
                };
                Decision::Happened { result: Box::new(result) }
            }
        };
        Ok((Some(call), decision))
    }
}

#[derive(Args)]
pub(crate) struct Approve {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Default: on a terminal, the session of this
    /// project that waits for approval, if there is only one.
    session: Option<String>,
    /// Call ids, or at least 4 characters of the beginning or end of each. Calls of sub-agents are included.
    /// Default: the call that waits, if it is the only one.
    #[arg(value_name = "CALL", conflicts_with = "all")]
    calls: Vec<String>,
    /// Decide about all calls that wait for approval.
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    calls: Approve,
    /// Reason, which the model receives. Default: none.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Deny {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.calls.decide(common, Decision::Deny { reason: self.reason }).await
    }
}

impl Approve {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.decide(common, Decision::Approve).await
    }

    /// Decides about all named calls, or about none if one of them does not wait for approval.
    async fn decide(self, common: &Common, decision: Decision) -> anyhow::Result<ExitCode> {
        let (place, session) = match &self.session {
            Some(name) if !is_session(name) => {
                name.parse::<IdPart>()?;
                OpenStore::with_session(common, Some(name)).await?
            }
            Some(name) => OpenStore::with_session(common, Some(name)).await?,
            None => only_waiting(common).await?,
        };
        let waiting = place.runtime.waiting_calls(session).await?;
        let waiting: Vec<_> =
            waiting.into_iter().filter(|call| call.reason == PauseReason::Approval).collect();
        let calls = self.chosen(session, &waiting)?;
        let done = place.runtime.decide_calls(session, &calls, decision, Some(user_name())).await?;
        Ok(report(common, &done).print(common))
    }

    /// Returns the named calls.
    fn chosen(&self, session: SessionId, waiting: &[WaitingCall]) -> anyhow::Result<Vec<CallId>> {
        if waiting.is_empty() {
            return Err(not_waiting(format!("no call of session {} waits for approval", short(session))));
        }
        if self.all {
            return Ok(waiting.iter().map(|call| call.call).collect());
        }
        if self.calls.is_empty() {
            if let [only] = waiting {
                return Ok(vec![only.call]);
            }
            let names: Vec<_> =
                waiting.iter().map(|call| format!("{} [{}]", call.name, short(call.call))).collect();
            let message = format!(
                "{} calls wait for approval: {}; name one of them, or all with `--all`",
                names.len(),
                names.join(", ")
            );
            return usage::refuse(message);
        }
        let mut chosen = Vec::new();
        for name in &self.calls {
            let part: IdPart = name.parse()?;
            let matching = waiting.iter().filter(|call| part.matches(call.call));
            match &matching.collect::<Vec<_>>()[..] {
                [one] => chosen.push(one.call),
                [] => {
                    let message = format!("no call {name} of session {} waits for approval", short(session));
                    return Err(not_waiting(message));
                }
                several => {
                    let count = several.len();
                    return usage::refuse(format!("`{name}` matches {count} calls; type more of the id"));
                }
            }
        }
        Ok(chosen)
    }
}

/// Returns the only session of the project that waits for approval. The variable of a script that is not set must not decide, so
/// this is for terminals only.
async fn only_waiting(common: &Common) -> anyhow::Result<(OpenStore, SessionId)> {
    if !common.can_ask() {
        return usage::refuse(
            "name the session to decide about; only on a terminal, the one that waits is the default",
        );
    }
    let place = OpenStore::existing(common)?;
    let mut waiting = place.runtime.pending_sessions().await?;
    waiting.retain(|one| one.decisions.iter().any(|decision| decision.reason == PauseReason::Approval));
    match &waiting[..] {
        [] => Err(not_waiting("no session of this project waits for approval".to_owned())),
        [only] => {
            let session = only.session.session;
            Ok((place, session))
        }
        several => {
            let list = common.hint("inbox --here");
            let message = format!("{} sessions wait for approval; `{list}` lists them", several.len());
            usage::refuse(message)
        }
    }
}

fn not_waiting(message: String) -> anyhow::Error {
    CommandError::new(ErrorCode::DecisionRefused, message).into()
}

/// Reports the decisions, and how the session continues.
fn report(common: &Common, done: &DecisionReport) -> Report {
    let word = done.decision.as_str();
    let decided = done
        .decided
        .iter()
        .map(|call| format!("{word}: {} {}  [{}]", call.name, exact_json(&call.arguments), short(call.call)));
    let left = (done.waiting > 0).then(|| format!("{} more wait for approval", done.waiting));
    let resume = common.hint(format_args!("resume {}", short(done.session)));
    Report::new(done).lines(decided).lines(left).line(if done.sent {
        format!("the process that drives the session continues; if it has paused, `{resume}` does")
    } else {
        format!("`{resume}` continues")
    })
}

#[derive(Args)]
pub(crate) struct Send {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Message for the agent.
    text: String,
}

// A session to cancel or to pause. The help is that of the command.
#[derive(Args)]
pub(crate) struct Interrupt {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
}

impl Send {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        Ok(report_sent(&place.runtime.send(session, &self.text).await?).print(common))
    }
}

impl Interrupt {
    pub(crate) async fn cancel(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        Ok(report_sent(&place.runtime.cancel(session).await?).print(common))
    }

    pub(crate) async fn pause(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        Ok(report_sent(&place.runtime.pause(session).await?).print(common))
    }
}

fn report_sent(sent: &SentItem) -> Report {
    let id = short(sent.session);
    Report::new(sent).line(if sent.open {
        format!("sent; the process that drives {id} handles it, or else the next `resume`")
    } else {
        format!("sent; `backstitch resume {id}` answers it")
    })
}
