//! Routes that erase, and that import sessions.

use std::path::PathBuf;

use backstitch::host::{ImportOptions, RemoveOptions, SessionBundle};
use backstitch::ports::{ErasureMode, ForkRemoval};
use backstitch::redaction::SensitiveValue;
use backstitch::report::{SessionImport, SessionRedaction, SessionRemoval};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::Problem;
use crate::table::{Call, NoFields, Route};
use crate::upload::UploadedFile;

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

/// Where an imported session continues.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImportQuery {
    /// Directory for its files, at or below a root of the server. By default, no file is written.
    directory: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
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
        Route::upload("/api/v1/import", "Import a session from a bundle", StatusCode::CREATED, import),
    ]
}

async fn redact(call: Call<NoFields, RedactBody>) -> Result<SessionRedaction, Problem> {
    let value = SensitiveValue::new(&call.body.value)?;
    let done = call.runtime().redact(call.session().await?, value, mode(call.body.dry_run)).await;
    // Views hold what was recorded, also if only a part of it could be removed.
    call.state.views.forget_all();
    Ok(done?)
}

async fn remove(call: Call<RemoveQuery, NoFields>) -> Result<SessionRemoval, Problem> {
    let RemoveQuery { with_forks, dry_run } = call.query;
    let forks = if with_forks { ForkRemoval::Include } else { ForkRemoval::Refuse };
    let options = RemoveOptions { forks, mode: mode(dry_run) };
    let done = call.runtime().remove([call.session().await?], options).await;
    call.state.views.forget_all();
    Ok(done?)
}

fn mode(dry_run: bool) -> ErasureMode {
    if dry_run { ErasureMode::DryRun } else { ErasureMode::Now }
}

async fn import(call: Call<ImportQuery, UploadedFile>) -> Result<SessionImport, Problem> {
    let Call { state, query, body: uploaded, .. } = call;
    let workspace = match &query.directory {
        Some(directory) => Some(state.rights.check_directory(&PathBuf::from(directory))?),
        None => None,
    };
    let bundle = SessionBundle::open(uploaded.path(), &mut |_| {}).await?;
    let limits = state.options.agents.import_limits();
    let options = ImportOptions { workspace, ..limits };
    Ok(state.runtime.import(&bundle, options, &mut |_| {}).await?)
}
