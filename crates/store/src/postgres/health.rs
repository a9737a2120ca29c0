//! Settings of the server that the promises of a store depend on.

use backstitch_core::ports::StoreError;

use super::error::Failure;
use super::link::Link;
use super::schema::get;
use super::server::parameters;
use super::store::PostgresStore;

/// The longest age of the oldest snapshot that is not worth a word, in seconds.
const OLD: f64 = 300.0;

/// What a server does about something that a promise depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerCheck {
    /// What was checked, in a word.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// What follows from it, and what to do; none if all is well.
    pub problem: Option<String>,
    /// Whether data that was acknowledged can be lost.
    pub is_dangerous: bool,
}

impl ServerCheck {
    fn fine(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, found: found.into(), problem: None, is_dangerous: false }
    }

    fn notice(name: &'static str, found: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { name, found: found.into(), problem: Some(problem.into()), is_dangerous: false }
    }

    fn danger(name: &'static str, found: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { is_dangerous: true, ..Self::notice(name, found, problem) }
    }
}

impl PostgresStore {
    /// Checks the settings that durability and upkeep depend on. Nothing is changed.
    pub fn check_server(&self) -> Result<Vec<ServerCheck>, StoreError> {
        self.in_thread(|link| Ok(checks(link)?))
    }
}

fn setting(link: &Link<'_>, name: &str) -> Result<String, Failure> {
    let rows = link.query("SELECT coalesce(current_setting($1, true), '')", parameters![name => TEXT])?;
    rows.first().map(|row| get(row, 0)).transpose().map(Option::unwrap_or_default)
}

fn checks(link: &Link<'_>) -> Result<Vec<ServerCheck>, Failure> {
    let mut checks = vec![ServerCheck::fine("version", setting(link, "server_version")?)];
    let in_recovery = link.query("SELECT pg_is_in_recovery()", &[])?;
    if in_recovery.first().map(|row| get::<bool>(row, 0)).transpose()? == Some(true) {
        let problem = "it can only be read; name the primary, or several hosts";
        checks.push(ServerCheck::notice("role", "the server is a standby", problem));
    }
    let sql = "SELECT rolsuper, rolname::text FROM pg_catalog.pg_roles WHERE rolname = current_user";
    if let Some(row) = link.query(sql, &[])?.first() {
        let (is_superuser, name): (bool, String) = (get(row, 0)?, get(row, 1)?);
        checks.push(match is_superuser {
            true => ServerCheck::notice(
                "user",
                format!("{name} is a superuser"),
                "every user of the store could use the whole server; use a user without those rights",
            ),
            false => ServerCheck::fine("user", name),
        });
    }
    for name in ["fsync", "full_page_writes"] {
        let found = setting(link, name)?;
        checks.push(match found.as_str() {
            "on" => ServerCheck::fine(name, found),
            _ => ServerCheck::danger(
                name,
                found,
                format!("a crash of the machine can destroy the store; set {name} = on"),
            ),
        });
    }
    let (commit, standbys) =
        (setting(link, "synchronous_commit")?, setting(link, "synchronous_standby_names")?);
    checks.push(match commit.as_str() {
        "off" => {
            let problem = "a crash of the server loses what was acknowledged; set synchronous_commit = on";
            ServerCheck::danger("synchronous_commit", commit, problem)
        }
        "local" if !standbys.is_empty() => {
            let problem = "a failover loses what was acknowledged; set synchronous_commit = on";
            ServerCheck::danger("synchronous_commit", commit, problem)
        }
        _ => ServerCheck::fine("synchronous_commit", commit),
    });
    checks.push(match standbys.as_str() {
        "" => ServerCheck::notice(
            "standbys",
            "none is synchronous",
            "what was acknowledged survives a crash of the server, not a failover to another one; set synchronous_standby_names for that",
        ),
        _ => ServerCheck::fine("standbys", standbys),
    });
    let sql = "SELECT coalesce(max(age(backend_xmin)), 0)::bigint,
            coalesce(max(extract(epoch FROM now() - xact_start)) FILTER (WHERE backend_xmin IS NOT NULL), 0)::double precision
        FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    let rows = link.query(sql, &[])?;
    if let Some(row) = rows.first() {
        let (age, seconds): (i64, f64) = (get(row, 0)?, get(row, 1)?);
        let found = format!("{seconds:.0} s and {age} transactions old");
        checks.push(match seconds > OLD {
            true => ServerCheck::notice(
                "oldest snapshot",
                found,
                "rows that were deleted since then stay, and make queues slow; end that transaction (pg_stat_activity shows it)",
            ),
            false => ServerCheck::fine("oldest snapshot", found),
        });
    }
    Ok(checks)
}
