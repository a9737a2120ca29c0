//! All routes.

use crate::table::Route;
use crate::{change, events, look, operate};

/// Returns the table of routes.
pub(crate) fn routes() -> Vec<Route> {
    [operate::routes(), look::routes(), events::routes(), change::routes()].into_iter().flatten().collect()
}
