//! Routes about state and files at points of a session.

use backstitch::PointSpec;
use backstitch::code::ErrorCode;
use backstitch::report::{
    BlameReport, ChangesPage, DiffPage, FileDetail, FileReport, FilesPage, StateDiff, StatePage,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{file_path, page_limit, page_start, point_or};
use crate::problem::Problem;
use crate::table::{Call, Route};

/// Which state.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StateQuery {
    /// The point. By default, head.
    at: Option<String>,
    /// The slice whose items are listed. By default, none.
    slice: Option<String>,
    /// Place of the first item.
    from: Option<u64>,
    /// The last items, not the first.
    #[serde(default)]
    last: bool,
    /// The most items of the page.
    limit: Option<u64>,
}

/// Which files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilesQuery {
    /// The point. By default, head.
    at: Option<String>,
    /// Place of the first file.
    from: Option<u64>,
    /// The last files, not the first.
    #[serde(default)]
    last: bool,
    /// The most files of the page.
    limit: Option<u64>,
}

/// Which file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileQuery {
    /// Path in the directory of the session.
    path: String,
    /// The point. By default, head.
    at: Option<String>,
}

/// Which points are compared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// The first point. By default, start.
    from: Option<String>,
    /// The second point. By default, head.
    to: Option<String>,
    /// Only the names of the files, not what changed in them.
    #[serde(default)]
    names: bool,
    /// Place of the first file.
    first: Option<u64>,
    /// The most files of the page.
    limit: Option<u64>,
}

/// Which points are compared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StateDiffQuery {
    /// The first point. By default, start.
    from: Option<String>,
    /// The second point. By default, head.
    to: Option<String>,
    /// The most items.
    limit: Option<u64>,
}

/// Which changes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangesQuery {
    /// Only changes of this path, or of something below it.
    path: Option<String>,
    /// Place of the first call.
    from: Option<u64>,
    /// The last calls, not the first.
    #[serde(default)]
    last: bool,
    /// The most calls of the page.
    limit: Option<u64>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::read("/api/v1/sessions/{session}/state", "Show the state at a point", state),
        Route::read(
            "/api/v1/sessions/{session}/state/diff",
            "Compare the items of the state at two points, and name the calls that wrote them",
            state_diff,
        ),
        Route::read("/api/v1/sessions/{session}/files", "List the files at a point", files),
        Route::read("/api/v1/sessions/{session}/file", "Show a file at a point", file),
        Route::read("/api/v1/sessions/{session}/diff", "Compare two points", diff),
        Route::read("/api/v1/sessions/{session}/changes", "List the calls that changed files", changes),
        Route::read(
            "/api/v1/sessions/{session}/blame",
            "Name the calls that wrote the lines of a file",
            blame,
        ),
    ]
}

async fn state(call: Call<StateQuery>) -> Result<StatePage, Problem> {
    let StateQuery { at, slice, from, last, limit } = &call.query;
    let at = point_or(at.as_deref(), PointSpec::Head)?;
    let (start, limit) = (page_start(*from, *last)?, page_limit(&call.state, *limit)?);
    let view = call.view().await?;
    Ok(call.runtime().state_page(&view, &at, slice.as_deref(), start, limit).await?)
}

async fn state_diff(call: Call<StateDiffQuery>) -> Result<StateDiff, Problem> {
    let StateDiffQuery { from, to, limit } = &call.query;
    let from = point_or(from.as_deref(), PointSpec::Start)?;
    let to = point_or(to.as_deref(), PointSpec::Head)?;
    let limit = page_limit(&call.state, *limit)?;
    let view = call.view().await?;
    Ok(call.runtime().state_diff(&view, (&from, &to), limit).await?)
}

async fn files(call: Call<FilesQuery>) -> Result<FilesPage, Problem> {
    let FilesQuery { at, from, last, limit } = &call.query;
    let at = point_or(at.as_deref(), PointSpec::Head)?;
    let (start, limit) = (page_start(*from, *last)?, page_limit(&call.state, *limit)?);
    let view = call.view().await?;
    Ok(call.runtime().files_page(&view, &at, start, limit).await?)
}

async fn file(call: Call<FileQuery>) -> Result<FileReport, Problem> {
    let at = point_or(call.query.at.as_deref(), PointSpec::Head)?;
    let path = file_path(&call.query.path)?;
    let view = call.view().await?;
    let found = call.runtime().file(&view, &at, &path).await?.ok_or_else(|| missing(&call.query.path))?;
    let most = call.state.options.limits.file_bytes;
    if found.bytes > most {
        let detail =
            format!("{} has {} bytes, and the server returns at most {most}", path.as_str(), found.bytes);
        return Err(Problem::new(ErrorCode::TooLarge, detail));
    }
    Ok(found)
}

async fn diff(call: Call<DiffQuery>) -> Result<DiffPage, Problem> {
    let DiffQuery { from, to, names, first, limit } = &call.query;
    let from = point_or(from.as_deref(), PointSpec::Start)?;
    let to = point_or(to.as_deref(), PointSpec::Head)?;
    let detail = if *names { FileDetail::Names } else { FileDetail::Diffs };
    let (start, limit) = (page_start(*first, false)?, page_limit(&call.state, *limit)?);
    let view = call.view().await?;
    Ok(call.runtime().diff_page(&view, (&from, &to), detail, start, limit).await?)
}

async fn changes(call: Call<ChangesQuery>) -> Result<ChangesPage, Problem> {
    let ChangesQuery { path, from, last, limit } = &call.query;
    let path = path.as_deref().map(file_path).transpose()?;
    let (start, limit) = (page_start(*from, *last)?, page_limit(&call.state, *limit)?);
    let view = call.view().await?;
    Ok(call.runtime().changes_page(&view, path.as_ref(), start, limit).await?)
}

async fn blame(call: Call<FileQuery>) -> Result<BlameReport, Problem> {
    let at = point_or(call.query.at.as_deref(), PointSpec::Head)?;
    let path = file_path(&call.query.path)?;
    let view = call.view().await?;
    let found = call.runtime().blame_at(&view, &at, &path).await?;
    found.ok_or_else(|| missing(&call.query.path))
}

fn missing(path: &str) -> Problem {
    Problem::new(
        ErrorCode::FileNotFound,
        format!("there is no file {path:?} at this point, or it is not text"),
    )
}
