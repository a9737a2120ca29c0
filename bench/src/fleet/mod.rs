//! The group `fleet`: many sessions of many processes on one PostgreSQL server, beside bare INSERTs of the same bytes and beside DBOS on
//! the same server, and on SQLite where it makes sense.
//!
//! The server is started by the bench, with durable commits, on sockets in a private directory; so is pgbouncer, in transaction mode. Without
//! PostgreSQL, only SQLite is measured. Rows with an aim say whether it is `met` or `missed`; the aims are those for two cores.
//!
//! | module | measures |
//! |---|---|
//! | `server` | nothing: it starts the server |
//! | `appends`, `bare` | appends per second, and INSERTs of the same bytes |
//! | `claims` | sessions claimed per second from a long queue, and the time of one claim |
//! | `processes`, `worker` | worker processes: finished sessions per second, the latency of a new session, the cost of idle workers |
//! | `dbos` | the same by DBOS |

mod appends;
mod bare;
mod claims;
mod dbos;
mod processes;
mod server;
mod worker;

use std::sync::Arc;

use backstitch_runtime::Runtime;
use backstitch_store::{PostgresAddress, PostgresStore, SqliteStore};

use crate::agent::Failed;
use crate::alone::Alone;
use crate::report::Report;
use crate::store::temporary;
use processes::System;

pub(crate) const GROUP: &str = "fleet";

pub(crate) const ALONE: &[Alone] = &[(worker::WORKER, worker::drive), (worker::ENQUEUE, worker::enqueue)];

/// Name of the agent of all sessions.
const AGENT: &str = "tailor";

pub(crate) fn run(report: &mut Report) {
    let directory = temporary();
    let place = temporary();
    let server = server::start(place.path());
    if let Some(server) = &server {
        note(appends::measure_server(report, server));
        note(claims::measure_server(report, server));
        note(processes::run(report, &System::on_server(server), Some(server)));
        note(System::pooled(server).map_or(Ok(()), |pooled| processes::wait_for_requests(report, &pooled)));
    }
    let file = |name: &str| directory.path().join(name).display().to_string();
    note(appends::measure_file(report, &file("appends.db")));
    note(claims::measure_file(report, &file("claims.db")));
    note(processes::run(report, &System::in_file(&file("workers.db")), None));
    if let Some(server) = &server {
        dbos::run(server);
    }
}

/// Prints why a part could not be measured.
fn note(measured: Result<(), Failed>) {
    if let Err(error) = measured {
        eprintln!("fleet: {error}");
    }
}

/// Opens the store at the address of a server, or in a file.
fn open(address: &str) -> Result<Runtime, Failed> {
    if address.starts_with("postgres://") {
        let store = Arc::new(PostgresStore::open(&PostgresAddress::parse(address)?)?);
        return Ok(Runtime::new(store.clone()).with_queue(store));
    }
    let store = Arc::new(SqliteStore::open(address)?);
    Ok(Runtime::new(store.clone()).with_queue(store))
}

/// Threads for what the bench does at the same time; a store on a server has as many.
fn executor() -> Result<tokio::runtime::Runtime, Failed> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// The value below which a share of all values lies.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// SQL that adds sessions to a queue, as copies of one that exists. A claim reads nothing of a session's records, so they have none. `due` and `state`
/// are SQL too.
fn add_sessions(schema: &str, count: usize, priority: i16, due: &str, state: &str) -> String {
    format!(
        "WITH added AS (
            INSERT INTO {schema}.sessions (session, created, head, chain)
            SELECT gen_random_uuid(), nextval('{schema}.creations'), s.head, s.chain
            FROM (SELECT head, chain FROM {schema}.sessions LIMIT 1) AS s, generate_series(1, {count}) RETURNING id)
        INSERT INTO {schema}.queue (session, agent, priority, due, tags, state, is_begun)
        SELECT id, '{AGENT}', {priority}, {due}, '{{}}', '{state}', true FROM added"
    )
}
