//! Routes that show sessions and the store. None of them changes anything.

mod download;
mod files;
mod journal;
mod sessions;
mod store;

use backstitch::PointSpec;
use backstitch::ports::FilePath;
use backstitch::report::{PageLimit, PageStart};
use backstitch::time::Timestamp;

use crate::problem::Problem;
use crate::state::ServerState;
use crate::table::Route;

/// The most rows of a page, unless a request says otherwise.
const USUAL_ROWS: usize = 100;

pub(crate) fn routes() -> Vec<Route> {
    let parts = [sessions::routes(), journal::routes(), files::routes(), store::routes(), download::routes()];
    parts.into_iter().flatten().collect()
}

/// Reads the limit of a page.
fn page_limit(state: &ServerState, rows: Option<u64>) -> Result<PageLimit, Problem> {
    let limits = &state.options.limits;
    let rows = match rows {
        None => USUAL_ROWS.min(limits.page_rows),
        Some(rows) => usize::try_from(rows)
            .ok()
            .filter(|rows| (1..=limits.page_rows).contains(rows))
            .ok_or_else(|| Problem::invalid(format!("`limit` is a number from 1 to {}", limits.page_rows)))?,
    };
    Ok(PageLimit { rows, bytes: limits.page_bytes })
}

/// Reads where a page begins.
fn page_start(from: Option<u64>, last: bool) -> Result<PageStart, Problem> {
    match (from, last) {
        (Some(_), true) => Err(Problem::invalid("`from` and `last` exclude each other")),
        (None, true) => Ok(PageStart::Last),
        (from, false) => Ok(PageStart::At(usize::try_from(from.unwrap_or_default()).unwrap_or(usize::MAX))),
    }
}

/// Reads a point.
fn point(text: &str) -> Result<PointSpec, Problem> {
    text.parse().map_err(|error: <PointSpec as std::str::FromStr>::Err| Problem::invalid(error.to_string()))
}

/// Reads a point that may be left out.
fn point_or(text: Option<&str>, otherwise: PointSpec) -> Result<PointSpec, Problem> {
    text.map_or(Ok(otherwise), point)
}

/// Reads a path in the workspace of a session.
fn file_path(text: &str) -> Result<FilePath, Problem> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(200).collect();
        Problem::invalid(format!("{shown:?} is not a path in the directory of a session"))
    })
}

/// Reads a time.
fn time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let read = |text: &str| {
        let wrong = |_| Problem::invalid(format!("`{name}` is a time such as 2026-01-31T08:00:00Z"));
        text.parse::<Timestamp>().map_err(wrong)
    };
    text.map(read).transpose()
}
