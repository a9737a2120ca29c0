//! Routes about the whole store: what was used, and SQL that reads.

use std::time::Duration;

use axum::response::Response;
use backstitch::code::ErrorCode;
use backstitch::ports::SelectLimits;
use backstitch::report::{QueryPage, UsageReport};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::time;
use crate::problem::Problem;
use crate::table::{Answer, Call, Route, json, to_json};

/// Which usage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatsQuery {
    /// Only what happened at or after this time.
    since: Option<String>,
}

/// Which rows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SqlQuery {
    /// One statement that reads.
    sql: String,
    /// The most rows.
    limit: Option<u64>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::read("/api/v1/stats", "Show what sessions used, by day, model, tool and agent", stats),
        Route::get(
            "/api/v1/query",
            "Execute SQL that reads, over the views of the store",
            Answer::Json(StatusCode::OK, |generator| generator.subschema_for::<QueryPage>()),
            query,
        ),
    ]
}

async fn stats(call: Call<StatsQuery>) -> Result<UsageReport, Problem> {
    let since = time("since", call.query.since.as_deref())?;
    Ok(call.runtime().stats(since).await?)
}

async fn query(call: Call<SqlQuery>) -> Result<Response, Problem> {
    let limits = &call.state.options.limits;
    if call.query.sql.len() > limits.sql_bytes {
        let detail = format!("`sql` is longer than {} bytes", limits.sql_bytes);
        return Err(Problem::new(ErrorCode::TooLarge, detail));
    }
    let rows = usize::try_from(call.query.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let select = SelectLimits {
        rows: rows.min(limits.query_rows),
        time: Duration::from_secs(limits.query_seconds),
        ..SelectLimits::default()
    };
    let work = call.state.querying.clone();
    let answered = work.run(async move {
        let bytes = call.state.options.limits.page_bytes;
        to_json(&call.runtime().query_page(&call.query.sql, select, bytes).await?)
    });
    Ok(json(StatusCode::OK, answered.await?))
}
