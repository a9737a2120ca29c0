//! Routes about sessions: lists, one as a whole, its branches, and what waits for a person.

use backstitch::host::SessionsPageOptions;
use backstitch::id::SessionId;
use backstitch::journal::EvaluationOutcome;
use backstitch::ports::{IndexedStatus, OriginKind, SessionCursor, SessionOrder, SessionQuery, TimeRange};
use backstitch::report::{ApprovalsPage, SessionsPage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{page_limit, time};
use crate::problem::Problem;
use crate::table::{Call, Route};

/// Which sessions are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Any of these statuses.
    #[serde(default)]
    status: Vec<String>,
    /// Any of these outcomes of the latest evaluation.
    #[serde(default)]
    outcome: Vec<String>,
    /// Any of these origins: root, fork, call. By default, all but call.
    #[serde(default)]
    origin: Vec<String>,
    /// The name of the agent.
    agent: Option<String>,
    /// The directory of the files.
    workspace: Option<String>,
    /// All of these tags, each as KEY=VALUE.
    #[serde(default)]
    tag: Vec<String>,
    /// The session that they are forks or sub-agents of.
    parent: Option<String>,
    /// With a record at or after this time.
    since: Option<String>,
    /// With the last record before this time.
    until: Option<String>,
    /// A text in the mission, the agent, the directory, the id or a tag.
    search: Option<String>,
    /// newest or oldest first. By default, newest.
    order: Option<String>,
    /// The most sessions of the page.
    limit: Option<u64>,
    /// The cursor of the page before.
    cursor: Option<String>,
}

/// Which part of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CursorQuery {
    /// The most rows of the page.
    limit: Option<u64>,
    /// The cursor of the page before.
    cursor: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::read("/api/v1/sessions", "List sessions", list),
        Route::read("/api/v1/approvals", "List the sessions that wait for a person", approvals),
        Route::read(
            "/api/v1/sessions/{session}",
            "Show a session without its lists",
            |call: Call| async move { Ok(call.runtime().overview(&*call.view().await?).await?) },
        ),
        Route::read(
            "/api/v1/sessions/{session}/graph",
            "Show the branches of a session, its forks and sub-agents",
            |call: Call| async move { Ok(call.runtime().graph(&*call.view().await?).await?) },
        ),
        Route::read(
            "/api/v1/sessions/{session}/waiting",
            "List the decisions that a session waits for",
            |call: Call| async move { Ok(call.runtime().waiting_report(&*call.view().await?).await?) },
        ),
    ]
}

async fn list(call: Call<ListQuery>) -> Result<SessionsPage, Problem> {
    let asked = &call.query;
    let longest = call.state.options.limits.search_bytes;
    if asked.search.as_ref().is_some_and(|search| search.len() > longest) {
        return Err(Problem::new(
            backstitch::code::ErrorCode::TooLarge,
            format!("`search` is longer than {longest} bytes"),
        ));
    }
    let origins = match asked.origin.is_empty() {
        true => vec![OriginKind::Root, OriginKind::Fork],
        false => words("origin", &asked.origin)?,
    };
    let order = match asked.order.as_deref() {
        None | Some("newest") => SessionOrder::NewestFirst,
        Some("oldest") => SessionOrder::OldestFirst,
        Some(_) => return Err(Problem::invalid("`order` is newest or oldest")),
    };
    let tag = |text: &String| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    };
    let tags = asked.tag.iter().map(|text| tag(text).ok_or_else(|| Problem::invalid("`tag` is KEY=VALUE")));
    let parents = match &asked.parent {
        Some(parent) => vec![find(&call, parent).await?],
        None => Vec::new(),
    };
    let query = SessionQuery {
        statuses: words::<IndexedStatus>("status", &asked.status)?,
        outcomes: words::<EvaluationOutcome>("outcome", &asked.outcome)?,
        origins,
        tags: tags.collect::<Result<_, _>>()?,
        agent: asked.agent.clone(),
        workspace: asked.workspace.clone(),
        parents,
        updated: TimeRange {
            since: time("since", asked.since.as_deref())?,
            until: time("until", asked.until.as_deref())?,
        },
        order,
        limit: page_limit(&call.state, asked.limit)?.rows,
        after: asked.cursor.as_deref().map(SessionCursor::new),
        ..SessionQuery::new()
    };
    let options = SessionsPageOptions { query, search: asked.search.clone() };
    Ok(call.runtime().sessions_page(options).await?)
}

async fn find<Q, B>(call: &Call<Q, B>, name: &str) -> Result<SessionId, Problem> {
    Ok(call.runtime().find_session(name).await?)
}

async fn approvals(call: Call<CursorQuery>) -> Result<ApprovalsPage, Problem> {
    let limit = page_limit(&call.state, call.query.limit)?.rows;
    let after = call.query.cursor.as_deref().map(SessionCursor::new);
    let query = SessionQuery { limit, after, ..SessionQuery::new() };
    Ok(call.runtime().approvals_page(query).await?)
}

/// Reads words of a list that is stored as text.
fn words<T: DeserializeOwned>(name: &str, texts: &[String]) -> Result<Vec<T>, Problem> {
    let read = |text: &String| {
        let wrong = |error| Problem::invalid(format!("`{name}`: {error}"));
        serde_json::from_value(Value::from(text.as_str())).map_err(wrong)
    };
    texts.iter().map(read).collect()
}
