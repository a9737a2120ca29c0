//! Routes with which people decide.

use backstitch::DecideOptions;
use backstitch::host::{check_arguments, find_call};
use backstitch::id::CallId;
use backstitch::journal::Decision;
use backstitch::message::OptionResult;
use backstitch::report::{DecisionReport, ResolutionReport};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::files::files_of;
use crate::problem::Problem;
use crate::table::{Call, NoFields, Route};

/// A decision about calls that wait for approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecideBody {
    /// The calls, by their ids.
    calls: Vec<CallId>,
    /// The decision.
    decision: ApprovalChoice,
    /// Reason of a denial, which the model receives.
    reason: Option<String>,
    /// Arguments in place of those of the model, for `edit`.
    arguments: Option<Map<String, Value>>,
    /// Also allow later calls of the same tool, for `approve`. Of a tool that reads pages, only those to the same host.
    #[serde(default)]
    always: bool,
}

/// What is decided about calls that wait for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ApprovalChoice {
    /// They run.
    Approve,
    /// They do not run.
    Deny,
    /// One of them runs with other arguments.
    Edit,
}

/// A decision about another pause.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResolveBody {
    /// The call, by its id or at least 4 characters of its beginning or end. By default, the session as a whole.
    call: Option<String>,
    /// The decision.
    decision: ResolveChoice,
    /// Reason of a failure, which the model receives.
    reason: Option<String>,
    /// The result of a call that has happened. By default, the one that is recorded.
    result: Option<Value>,
}

/// What is decided about a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ResolveChoice {
    /// Continue the session, after its files were repaired.
    Continue,
    /// Run the call again.
    Retry,
    /// Record the call as failed, and restore its files.
    Fail,
    /// The call has happened.
    Happened,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::change(
            (Method::POST, "/api/v1/sessions/{session}/decide"),
            "Approve, deny or edit calls that wait for approval",
            StatusCode::OK,
            decide,
        ),
        Route::change(
            (Method::POST, "/api/v1/sessions/{session}/resolve"),
            "Decide about a call that may have happened, or about the session as a whole",
            StatusCode::OK,
            resolve,
        ),
    ]
}

async fn decide(call: Call<NoFields, DecideBody>) -> Result<DecisionReport, Problem> {
    let DecideBody { calls, decision, reason, arguments, always } = &call.body;
    if calls.is_empty() {
        return Err(Problem::invalid("`calls` names no call"));
    }
    if *always && *decision != ApprovalChoice::Approve {
        return Err(Problem::invalid("`always` stands only with `approve`"));
    }
    if arguments.is_some() != (*decision == ApprovalChoice::Edit) {
        return Err(Problem::invalid("`arguments` stand with `edit`, and only there"));
    }
    if reason.is_some() && *decision != ApprovalChoice::Deny {
        return Err(Problem::invalid("`reason` stands only with `deny`"));
    }
    let (session, by) = (call.session().await?, call.state.options.agents.person());
    let runtime = call.runtime();
    let decision = match (decision, arguments) {
        (ApprovalChoice::Approve, _) if *always => {
            return Ok(runtime.allow_calls(session, calls, by).await?);
        }
        (ApprovalChoice::Edit, Some(arguments)) => {
            let [edited] = calls[..] else {
                return Err(Problem::invalid("`edit` is about one call"));
            };
            check_edit(&call, edited, arguments).await?;
            Decision::Edit { arguments: arguments.clone() }
        }
        (ApprovalChoice::Deny, _) => Decision::Deny { reason: reason.clone() },
        _ => Decision::Approve,
    };
    Ok(runtime.decide_calls(session, calls, decision, by).await?)
}

/// Refuses arguments that do not fit the tool, where that is known here. Otherwise they are checked when the call runs.
async fn check_edit(
    call: &Call<NoFields, DecideBody>,
    edited: CallId,
    arguments: &Map<String, Value>,
) -> Result<(), Problem> {
    let Ok(agent) = call.state.options.agents.recorded(call.session().await?).await else { return Ok(()) };
    let view = call.view().await?;
    let tool = view.call(edited).and_then(|known| agent.built.agent.tools.get(&known.name));
    match tool.map(|tool| check_arguments(&tool.spec, arguments)) {
        Some(Err(error)) => Err(Problem::invalid(error.to_string())),
        _ => Ok(()),
    }
}

async fn resolve(call: Call<NoFields, ResolveBody>) -> Result<ResolutionReport, Problem> {
    let ResolveBody { call: named, decision, reason, result } = &call.body;
    if result.is_some() && *decision != ResolveChoice::Happened {
        return Err(Problem::invalid("`result` stands only with `happened`"));
    }
    if reason.is_some() && *decision != ResolveChoice::Fail {
        return Err(Problem::invalid("`reason` stands only with `fail`"));
    }
    let (session, view) = (call.session().await?, call.view().await?);
    let id = named.as_deref().map(|name| find_call(&view, name)).transpose()?;
    let decision = match (decision, id) {
        (ResolveChoice::Continue, _) => Decision::Continue,
        (_, None) => return Err(Problem::invalid("name the `call`: only `continue` is about the session")),
        (ResolveChoice::Retry, _) => Decision::Retry,
        (ResolveChoice::Fail, _) => Decision::Fail { reason: reason.clone() },
        (ResolveChoice::Happened, Some(id)) => {
            let name = view.call(id).map(|known| known.name.clone()).unwrap_or_default();
            let result = match result {
                Some(value) => OptionResult::new(id, &name, value.clone()),
                None => call.runtime().offered_result(session, id).await?.ok_or_else(|| {
                    Problem::invalid("no result of the call is recorded, so it has to be in `result`")
                })?,
            };
            Decision::Happened { result: Box::new(result) }
        }
    };
    let (by, files) = (call.state.options.agents.person(), files_of(&call, &view).await?);
    let options = DecideOptions { by, files, ..DecideOptions::default() };
    Ok(call.runtime().resolve_with(session, id, decision, options).await?)
}
