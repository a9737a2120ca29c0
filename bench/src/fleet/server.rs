//! The server that is measured: as durable as one in production, unlike those of the tests, and counting its statements where it can.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

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

/// The processor time of the server's processes, as far as the system reports it. Its resolution is 10 ms.
pub(super) fn processor_time(server: &TestServer) -> Duration {
    let first = fs::read_to_string(server.directory.join("data/postmaster.pid")).unwrap_or_default();
    let Some(parent) = first.lines().next() else { return Duration::ZERO };
    let mut ticks = 0;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // The name in parentheses may hold anything. After it come the state, the parent, and ten fields later the times in user mode and in the kernel.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = rest.split(' ').collect();
        if fields.get(1) == Some(&parent) {
            ticks +=
                fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
        }
    }
    Duration::from_millis(ticks * 10)
}

/// How statements are counted: where the number comes from, and the SQL that reads it. Without statistics of statements it is that of transactions: idle
/// workers send single statements.
pub(super) fn statement_counter(server: &TestServer) -> (&'static str, &'static str) {
    if server.sql("SHOW shared_preload_libraries").contains(STATEMENTS) {
        return (STATEMENTS, "SELECT sum(calls)::bigint FROM pg_stat_statements WHERE toplevel");
    }
    ("pg_stat_database", "SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database")
}
