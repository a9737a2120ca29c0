//! Routes that change something. They exist only for a server that may write.

mod decide;
mod files;
mod history;
mod store;
mod work;

use crate::table::Route;

pub(crate) fn routes() -> Vec<Route> {
    [work::routes(), decide::routes(), history::routes(), store::routes()].into_iter().flatten().collect()
}
