//! The server that is measured: as durable as one in production, unlike those of the tests, and counting its statements where it can.

use std::fs;
use std::path::Path;
use std::process::Command;

use backstitch_testkit::postgres::{StopMode, TestServer, private_server};

use crate::agent::Failed;

/// The most connections of the pooler to the server, as it has by default.
const POOLED: &str = "default_pool_size = 20";

const STATEMENTS: &str = "pg_stat_statements";

/// Starts a server with its pooler in a directory. Without PostgreSQL it says so, and returns `None`.
pub(super) fn start(directory: &Path) -> Option<TestServer> {
    let server = private_server(directory)?;
    let mut settings = vec!["fsync = on", "full_page_writes = on", "shared_buffers = '256MB'"];
    let known =
        server.sql(&format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{STATEMENTS}'"));
    let counted = format!("shared_preload_libraries = '{STATEMENTS}'");
    if known == "1" {
        settings.push(&counted);
    }
    for setting in settings {
        server.sql(&format!("ALTER SYSTEM SET {setting}"));
    }
    server.stop(StopMode::Fast);
    server.start_again();
    if known == "1" {
        server.sql(&format!("CREATE EXTENSION {STATEMENTS}"));
    }
    super::note(widen_pool(&server));
    Some(server)
}

/// Gives the pooler more connections than it has in tests.
fn widen_pool(server: &TestServer) -> Result<(), Failed> {
    if server.pooled_address().is_none() {
        return Ok(());
    }
    let file = server.directory.join("pgbouncer.ini");
    let settings = fs::read_to_string(&file)?;
    let widened =
        settings.lines().map(|line| if line.starts_with("default_pool_size") { POOLED } else { line });
    fs::write(&file, widened.collect::<Vec<_>>().join("\n"))?;
    let process = fs::read_to_string(server.directory.join("pgbouncer.pid"))?;
    Command::new("kill").args(["-HUP", process.trim()]).status()?;
    Ok(())
}

/// How statements are counted: where the number comes from, and the SQL that reads it. Without statistics of statements it is that of transactions: idle
/// workers send single statements.
pub(super) fn statement_counter(server: &TestServer) -> (&'static str, &'static str) {
    if server.sql("SHOW shared_preload_libraries").contains(STATEMENTS) {
        return (STATEMENTS, "SELECT sum(calls)::bigint FROM pg_stat_statements WHERE toplevel");
    }
    ("pg_stat_database", "SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database")
}
