//! All routes.

use crate::table::Route;
use crate::{change, events, list_events, look, operate};

/// Returns the table of routes.
pub(crate) fn routes() -> Vec<Route> {
    let parts =
        [operate::routes(), look::routes(), events::routes(), list_events::routes(), change::routes()];
    parts.into_iter().flatten().collect()
}
