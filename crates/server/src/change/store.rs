//! Routes that name, tag and erase. One that erases first looks at what it would change: a session that works elsewhere is not changed with
//! another one.

use std::collections::{BTreeMap, HashSet};

use backstitch::host::{NameError, RemoveOptions};
use backstitch::id::SessionId;
use backstitch::journal::{SessionName, TagChange};
use backstitch::ports::{ErasureMode, ForkRemoval};
use backstitch::redaction::SensitiveValue;
use backstitch::report::{NamedSession, SessionRedaction, SessionRemoval, TaggedSession};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::Problem;
use crate::state::ServerState;
use crate::table::{Call, NoFields, Route};

/// The name of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NameBody {
    /// The name, which can stand in place of the id. By default, the session has none from now on.
    name: Option<String>,
}

/// Changes of the tags of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TagBody {
    /// Tags that are added, or get another value.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// Keys of tags that are removed.
    #[serde(default)]
    remove: Vec<String>,
}

/// A value that is removed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedactBody {
    /// The value, such as a leaked key.
    value: String,
    /// Report what would be removed, and change nothing.
    #[serde(default)]
    dry_run: bool,
}

/// What is removed with a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveQuery {
    /// Also the sessions that depend on it.
    #[serde(default)]
    with_forks: bool,
    /// Report what would be removed, and change nothing.
    #[serde(default)]
    dry_run: bool,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::change(
            (Method::POST, "/api/v1/sessions/{session}/name"),
            "Give a session a name, or remove it",
            StatusCode::OK,
            name,
        ),
        Route::change(
            (Method::POST, "/api/v1/sessions/{session}/tag"),
            "Set and remove tags of a session",
            StatusCode::OK,
            tag,
        ),
        Route::change(
            (Method::POST, "/api/v1/sessions/{session}/redact"),
            "Remove a value from everything that a session recorded",
            StatusCode::OK,
            redact,
        ),
        Route::change(
            (Method::DELETE, "/api/v1/sessions/{session}"),
            "Delete a session for good",
            StatusCode::OK,
            remove,
        ),
    ]
}

async fn name(call: Call<NoFields, NameBody>) -> Result<NamedSession, Problem> {
    let name = call.body.name.as_deref().map(str::parse::<SessionName>).transpose();
    let name = name.map_err(|error| Problem::invalid(error.to_string()))?;
    let named = call.runtime().name_session(call.session().await?, name.as_ref()).await;
    named.map_err(|error| match error {
        NameError::Runtime(error) => error.into(),
        other => Problem::new(other.code(), other.to_string()),
    })
}

async fn tag(call: Call<NoFields, TagBody>) -> Result<TaggedSession, Problem> {
    let TagBody { set, remove } = &call.body;
    let removed = remove.iter().map(TagChange::remove);
    let changes: Result<Vec<TagChange>, _> =
        removed.chain(set.iter().map(|(key, value)| TagChange::set(key, value))).collect();
    let changes = changes.map_err(|error| Problem::invalid(error.to_string()))?;
    Ok(call.runtime().tag_session(call.session().await?, &changes).await?)
}

async fn redact(call: Call<NoFields, RedactBody>) -> Result<SessionRedaction, Problem> {
    let session = call.session().await?;
    let value = SensitiveValue::new(&call.body.value)?;
    check_all(&call.state, family_of(&call.state, session).await?).await?;
    let rehearsed = call.runtime().redact(session, value.clone(), ErasureMode::DryRun).await?;
    // Other sessions that need a removed content lose it too.
    check_all(&call.state, rehearsed.content.shared_with.clone()).await?;
    if call.body.dry_run {
        return Ok(rehearsed);
    }
    let done = call.runtime().redact(session, value, ErasureMode::Now).await;
    // Views hold what was recorded, also if only a part of it could be removed.
    call.state.views.forget_all();
    Ok(done?)
}

async fn remove(call: Call<RemoveQuery, NoFields>) -> Result<SessionRemoval, Problem> {
    let session = call.session().await?;
    let forks = if call.query.with_forks { ForkRemoval::Include } else { ForkRemoval::Refuse };
    let rehearsed =
        call.runtime().remove([session], RemoveOptions { forks, mode: ErasureMode::DryRun }).await?;
    let (state, removed) = (&call.state, removed_by(&rehearsed));
    for session in removed {
        state.rights.check_removal(&state.runtime, &state.views, session).await?;
    }
    if call.query.dry_run {
        return Ok(rehearsed);
    }
    let done = call.runtime().remove([session], RemoveOptions { forks, mode: ErasureMode::Now }).await;
    call.state.views.forget_all();
    Ok(done?)
}

/// Refuses to change sessions of which one works elsewhere.
async fn check_all(state: &ServerState, sessions: Vec<SessionId>) -> Result<(), Problem> {
    for session in sessions {
        state.rights.check_session(&state.runtime, &state.views, session).await?;
    }
    Ok(())
}

/// Returns the sessions that are redacted with a session: all that are linked to it by forks and calls.
async fn family_of(state: &ServerState, session: SessionId) -> Result<Vec<SessionId>, Problem> {
    let mut first = session;
    let mut seen = HashSet::from([session]);
    loop {
        let view = state.views.load(&state.runtime, first).await?;
        match view.created().origin.parent() {
            Some(parent) if seen.insert(parent) => first = parent,
            _ => break,
        }
    }
    // Everything that depends on the first one.
    let options = RemoveOptions { forks: ForkRemoval::Include, mode: ErasureMode::DryRun };
    Ok(removed_by(&state.runtime.remove([first], options).await?))
}

fn removed_by(removal: &SessionRemoval) -> Vec<SessionId> {
    removal.content.sessions.iter().map(|one| one.session).collect()
}
