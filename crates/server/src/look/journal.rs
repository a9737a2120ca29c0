//! Routes about what a session recorded: records, conversation, calls and requests.

use backstitch::PointSpec;
use backstitch::host::{LogFilter, LogPageOptions, TranscriptStart};
use backstitch::journal::Position;
use backstitch::report::{
    CallReport, CallsPage, FileDetail, LogPage, RequestReport, RequestsPage, TranscriptPage,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{file_path, page_limit, page_start, point, time};
use crate::problem::Problem;
use crate::table::{Call, Route};

/// Which records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordsQuery {
    /// Position of the first record.
    from: Option<u64>,
    /// Position after the last record. Without `from`, the last records before it are listed.
    before: Option<u64>,
    /// The last records, not the first.
    #[serde(default)]
    last: bool,
    /// Any of these kinds.
    #[serde(default)]
    kind: Vec<String>,
    /// Also records that only programs need.
    #[serde(default)]
    all: bool,
    /// Only failures.
    #[serde(default)]
    failed: bool,
    /// Only records at or after this time.
    since: Option<String>,
    /// Only records of calls that changed this path, or something below it.
    file: Option<String>,
    /// The most records of the page.
    limit: Option<u64>,
}

/// Which part of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TranscriptQuery {
    /// The point: a position, before:CALL, after:CALL, turn:N, start or head. By default, head.
    at: Option<String>,
    /// The cursor `next` of another page.
    from: Option<String>,
    /// The cursor `previous` of another page.
    before: Option<String>,
    /// The last messages, not the first.
    #[serde(default)]
    last: bool,
    /// The most messages of the page.
    limit: Option<u64>,
}

/// Which part of a list at a point.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallsQuery {
    /// The point. By default, head.
    at: Option<String>,
    /// Place of the first row.
    from: Option<u64>,
    /// The last rows, not the first.
    #[serde(default)]
    last: bool,
    /// The most rows of the page.
    limit: Option<u64>,
}

/// Which part of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlaceQuery {
    /// Place of the first row.
    from: Option<u64>,
    /// The last rows, not the first.
    #[serde(default)]
    last: bool,
    /// The most rows of the page.
    limit: Option<u64>,
}

/// How much is shown of a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallQuery {
    /// Also what changed in its files, line by line.
    #[serde(default)]
    diff: bool,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::read("/api/v1/sessions/{session}/records", "List the records of a session", records),
        Route::read(
            "/api/v1/sessions/{session}/transcript",
            "List the messages of a conversation",
            transcript,
        ),
        Route::read("/api/v1/sessions/{session}/calls", "List the calls of a conversation", calls),
        Route::read("/api/v1/sessions/{session}/calls/{call}", "Show a call", one_call),
        Route::read("/api/v1/sessions/{session}/requests", "List the requests to models", requests),
        Route::read(
            "/api/v1/sessions/{session}/requests/{position}",
            "Render the request that a record starts again, and compare it with the one that was sent",
            one_request,
        ),
    ]
}

async fn records(call: Call<RecordsQuery>) -> Result<LogPage, Problem> {
    let RecordsQuery { from, before, last, kind, all, failed, since, file, limit } = &call.query;
    if *last && (from.is_some() || before.is_some()) {
        return Err(Problem::invalid("`last` excludes `from` and `before`"));
    }
    let filter = LogFilter {
        all: *all,
        failed: *failed,
        since: time("since", since.as_deref())?,
        kinds: kind.clone(),
        file: file.as_deref().map(file_path).transpose()?,
    };
    let options = LogPageOptions {
        filter,
        from: from.map(Position::new),
        before: before.map(Position::new),
        is_last: *last,
        limit: page_limit(&call.state, *limit)?,
    };
    Ok(call.runtime().log_page(&*call.view().await?, options).await?)
}

async fn transcript(call: Call<TranscriptQuery>) -> Result<TranscriptPage, Problem> {
    let TranscriptQuery { at, from, before, last, limit } = &call.query;
    let start = match (from, before, last) {
        (None, None, false) => TranscriptStart::First,
        (None, None, true) => TranscriptStart::Last,
        (Some(cursor), None, false) => TranscriptStart::From(cursor.clone()),
        (None, Some(cursor), false) => TranscriptStart::Before(cursor.clone()),
        _ => return Err(Problem::invalid("`from`, `before` and `last` exclude each other")),
    };
    let (at, limit) = (read_point(at.as_deref())?, page_limit(&call.state, *limit)?);
    let view = call.view().await?;
    Ok(call.runtime().transcript_page(&view, at.as_ref(), start, limit).await?)
}

async fn calls(call: Call<CallsQuery>) -> Result<CallsPage, Problem> {
    let CallsQuery { at, from, last, limit } = &call.query;
    let (at, limit) = (read_point(at.as_deref())?, page_limit(&call.state, *limit)?);
    let start = page_start(*from, *last)?;
    let view = call.view().await?;
    Ok(call.runtime().calls_page(&view, at.as_ref(), start, limit).await?)
}

async fn one_call(call: Call<CallQuery>) -> Result<CallReport, Problem> {
    let detail = if call.query.diff { FileDetail::Diffs } else { FileDetail::Names };
    let view = call.view().await?;
    Ok(call.runtime().call(&view, call.part("call"), detail).await?)
}

async fn requests(call: Call<PlaceQuery>) -> Result<RequestsPage, Problem> {
    let PlaceQuery { from, last, limit } = &call.query;
    let (start, limit) = (page_start(*from, *last)?, page_limit(&call.state, *limit)?);
    let view = call.view().await?;
    Ok(call.runtime().requests_page(&view, start, limit))
}

async fn one_request(call: Call) -> Result<RequestReport, Problem> {
    let position = call.part("position").parse();
    let position = position.map_err(|_| Problem::invalid("the position of a request is a number"))?;
    let view = call.view().await?;
    let rendered = call.runtime().request_at(&view, Position::new(position), None).await?;
    Ok(rendered.report)
}

fn read_point(text: Option<&str>) -> Result<Option<PointSpec>, Problem> {
    text.map(point).transpose()
}
