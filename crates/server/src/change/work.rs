//! Routes that drive sessions, and that write to their inboxes.
//!
//! A session is driven in the background: the answer says that its message is durable, and events show the rest.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backstitch::agent_file::BudgetDefinition;
use backstitch::host::DriftPolicy;
use backstitch::id::SessionId;
use backstitch::mode::AgentMode;
use backstitch::report::{SentItem, Version};
use backstitch::{ResumeOptions, Run, SessionOptions};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::{AgentChoice, RunnableAgent};
use crate::problem::Problem;
use crate::table::{Call, NoFields, Route};

/// The name of the provider whose models are files of this machine.
const SCRIPTED: &str = "scripted:";

/// A session that this server drives now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StartedRun {
    /// Version of the form.
    v: Version,
    /// The session.
    session: SessionId,
}

/// A new session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSession {
    /// The task.
    mission: String,
    /// Name of an agent that the server offers. By default, the agent of the settings.
    agent: Option<String>,
    /// Model in place of the agent's, as PROVIDER:MODEL.
    model: Option<String>,
    /// Directory to work in, at or below a root of the server.
    directory: Option<PathBuf>,
    /// plan, ask or auto. It cannot allow more than the agent has without it.
    mode: Option<String>,
    /// Work in a copy of the directory.
    #[serde(default)]
    isolated: bool,
    /// Labels.
    #[serde(default)]
    tags: BTreeMap<String, String>,
    /// The id of the session, so that a request that is sent again starts it once.
    session: Option<SessionId>,
}

/// A text for a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TextBody {
    /// The text.
    text: String,
}

/// How a session continues.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeBody {
    /// A message that the agent reads before it continues.
    message: Option<String>,
    /// Accept an answer that reached its token limit.
    #[serde(default)]
    accept: bool,
    /// keep or restore: what to do about files that changed while no process drove the session.
    files: Option<String>,
    /// Limits from now on, as in agent files: tokens, turns, calls, money, time.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    budget: Option<BudgetDefinition>,
}

pub(super) fn routes() -> Vec<Route> {
    let post = |path| (Method::POST, path);
    vec![
        Route::change(post("/api/v1/sessions"), "Start a session", StatusCode::CREATED, start),
        Route::change(
            post("/api/v1/sessions/{session}/ask"),
            "Ask a follow-up question",
            StatusCode::ACCEPTED,
            ask,
        ),
        Route::change(
            post("/api/v1/sessions/{session}/resume"),
            "Resume a session where it was interrupted or paused",
            StatusCode::ACCEPTED,
            resume,
        ),
        Route::change(
            post("/api/v1/sessions/{session}/send"),
            "Send a message, whichever process drives the session",
            StatusCode::OK,
            send,
        ),
        Route::change(
            post("/api/v1/sessions/{session}/cancel"),
            "End the open evaluation",
            StatusCode::OK,
            |call: Call<NoFields, NoFields>| async move {
                Ok::<SentItem, Problem>(call.runtime().cancel(call.session().await?).await?)
            },
        ),
        Route::change(
            post("/api/v1/sessions/{session}/pause"),
            "Pause the open evaluation",
            StatusCode::OK,
            |call: Call<NoFields, NoFields>| async move {
                Ok::<SentItem, Problem>(call.runtime().pause(call.session().await?).await?)
            },
        ),
    ]
}

async fn start(call: Call<NoFields, NewSession>) -> Result<StartedRun, Problem> {
    let NewSession { mission, agent, model, directory, mode, isolated, tags, session } = &call.body;
    if model.as_ref().is_some_and(|model| model.starts_with(SCRIPTED)) {
        return Err(Problem::beyond("a model that is a file of this machine is not chosen over HTTP"));
    }
    let choice = AgentChoice {
        agent: agent.clone(),
        model: model.clone(),
        directory: match directory {
            Some(directory) => Some(call.state.rights.check_directory(directory)?),
            None => None,
        },
        mode: mode.as_deref().map(read_mode).transpose()?,
        is_isolated: *isolated,
    };
    let agent = call.state.options.agents.define(choice).await?;
    call.state.rights.check_agent(&agent, None)?;
    let mission = mission_of(&agent, mission)?;
    let options = SessionOptions { id: *session, tags: tags.clone(), ..SessionOptions::default() };
    let run = call.runtime().start_with(&agent.built.agent, mission, options).await?;
    Ok(follow(&call, run))
}

async fn ask(call: Call<NoFields, TextBody>) -> Result<StartedRun, Problem> {
    let (session, agent) = build_recorded(&call).await?;
    let mission = mission_of(&agent, &call.body.text)?;
    Ok(follow(&call, call.runtime().ask(session, &agent.built.agent, mission).await?))
}

async fn resume(call: Call<NoFields, ResumeBody>) -> Result<StartedRun, Problem> {
    let (session, agent) = build_recorded(&call).await?;
    let ResumeBody { message, accept, files, budget } = &call.body;
    let drift = match files.as_deref() {
        None => None,
        Some("keep") => Some(DriftPolicy::Adopt),
        Some("restore") => Some(DriftPolicy::Restore),
        Some(_) => return Err(Problem::invalid("`files` is keep or restore")),
    };
    let options = ResumeOptions {
        message: message.clone(),
        accept: *accept,
        drift,
        budget: budget.as_ref().and_then(BudgetDefinition::limits),
        ..ResumeOptions::default()
    };
    let run =
        call.runtime().resume_with(session, &agent.built.agent, options, SessionOptions::default()).await?;
    Ok(follow(&call, run))
}

async fn send(call: Call<NoFields, TextBody>) -> Result<SentItem, Problem> {
    if call.body.text.trim().is_empty() {
        return Err(Problem::invalid("the message is empty"));
    }
    Ok(call.runtime().send(call.session().await?, &call.body.text).await?)
}

/// Builds the agent of a recorded session, unless it may do too much.
async fn build_recorded<B>(call: &Call<NoFields, B>) -> Result<(SessionId, RunnableAgent), Problem> {
    let view = call.view().await?;
    let session = view.session_id();
    let agent = call.state.options.agents.recorded(session).await?;
    call.state.rights.check_agent(&agent, Some(&view))?;
    Ok((session, agent))
}

fn mission_of(agent: &RunnableAgent, text: &str) -> Result<String, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::invalid("the text for the agent is empty"));
    }
    Ok(agent.built.mission(text)?)
}

fn follow<B>(call: &Call<NoFields, B>, run: Run) -> StartedRun {
    let session = run.session();
    call.state.runs.follow(call.runtime(), run);
    StartedRun { v: Version, session }
}

/// Reads a mode. That in which nothing is asked is refused.
fn read_mode(text: &str) -> Result<AgentMode, Problem> {
    match serde_json::from_value(Value::from(text)) {
        Ok(AgentMode::Full) => Err(Problem::beyond("the mode full is not chosen over HTTP")),
        Ok(mode) => Ok(mode),
        Err(_) => Err(Problem::invalid("`mode` is plan, ask or auto")),
    }
}
