//! Faults of a server of one test: it ends, and another takes its place.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::PoisonError;
use std::time::Duration;

use super::{POOL_SIZE, POOLER, PORT, TestServer, USER, accepts, command, start_pooler};

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Its connections are ended, and what they did not commit is rolled back.
    Fast,
    /// As by a crash.
    Immediate,
}

impl TestServer {
    /// The socket of the server.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(format!(".s.PGSQL.{PORT}"))
    }

    /// The socket of the pooler, if there is one.
    pub fn pooler_socket(&self) -> Option<PathBuf> {
        self.has_pooler.then(|| self.directory.join(format!(".s.PGSQL.{POOLER}")))
    }

    /// Stops a server of one test.
    pub fn stop(&self, mode: StopMode) {
        let mode = if mode == StopMode::Fast { "fast" } else { "immediate" };
        self.control(&self.directory.join("data"), &["-m", mode, "-w", "-t", "60", "stop"]);
    }

    /// Starts it again, if it does not run. It may need several attempts, as after a full disk.
    pub fn start_again(&self) {
        let log = self.directory.join("log").display().to_string();
        for _ in 0..60 {
            if accepts(&self.directory, PORT) {
                return;
            }
            self.control(&self.directory.join("data"), &["-w", "-t", "60", "-l", &log, "start"]);
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the server does not start again: {}", fs::read_to_string(log).unwrap_or_default());
    }

    /// Sets variables for the next start, such as those that make its clock wrong.
    pub fn set_variables(&self, variables: Vec<(&'static str, String)>) {
        *self.variables.lock().unwrap_or_else(PoisonError::into_inner) = variables;
    }

    /// Kills the pooler.
    pub fn kill_pooler(&self) {
        if let Ok(pid) = fs::read_to_string(self.directory.join("pgbouncer.pid")) {
            let _ = command(Path::new("/bin/kill"), self.owner).args(["-9", pid.trim()]).status();
        }
    }

    /// Starts the pooler again.
    pub fn start_pooler_again(&self) {
        if self.has_pooler {
            start_pooler(&self.directory, self.owner);
        }
    }

    /// Uses all connections of the pooler for a time.
    pub fn occupy_pooler(&self, time: Duration) -> Vec<Child> {
        let sql = format!("SELECT pg_sleep({})", time.as_secs_f64());
        let occupy = || {
            let mut psql = command(&self.psql, self.owner);
            psql.args(["-X", "-U", USER, "-d", "postgres", "-c", &sql, "-p", &POOLER.to_string(), "-h"]);
            psql.arg(&self.directory).spawn().expect("psql runs")
        };
        (0..POOL_SIZE).map(|_| occupy()).collect()
    }

    /// Starts a standby that follows the server, and without which nothing is committed.
    pub fn start_standby(&self) {
        let (place, data) = (self.directory.join("standby"), self.standby_data());
        fs::create_dir(&place).expect("a directory for a standby can be created");
        if let Some((uid, gid)) = self.owner {
            let _ = std::os::unix::fs::chown(&place, Some(uid), Some(gid));
        }
        let mut copy = command(&self.programs.join("pg_basebackup"), self.owner);
        if let Some(disk) = &self.disk {
            copy.arg("-T").arg(format!("{}={}", disk.tables().display(), place.join("tables").display()));
        }
        let copied = copy
            .args([
                "-R",
                "-c",
                "fast",
                "-X",
                "stream",
                "--no-sync",
                "-U",
                USER,
                "-p",
                &PORT.to_string(),
                "-h",
            ])
            .arg(&self.directory)
            .arg("-D")
            .arg(&data)
            .status();
        assert!(copied.is_ok_and(|copied| copied.success()), "pg_basebackup failed");
        let settings = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf"));
        let mut settings = settings.expect("a copy has settings");
        writeln!(settings, "unix_socket_directories = '{}'", place.display())
            .expect("settings can be written");
        let log = place.join("log").display().to_string();
        self.control(&data, &["-w", "-t", "60", "-l", &log, "start"]);
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        for _ in 0..3000 {
            if self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1" {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the standby does not follow: {}", fs::read_to_string(log).unwrap_or_default());
    }

    /// Lets the server commit without its standby, which receives nothing more.
    pub fn detach_standby(&self) {
        let place = self.directory.join("standby");
        self.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
        self.sql("SELECT pg_reload_conf()");
        self.sql_in(&place, "ALTER SYSTEM SET primary_conninfo = ''");
        self.sql_in(&place, "SELECT pg_reload_conf()");
        while self.sql_in(&place, "SELECT count(*) FROM pg_stat_wal_receiver") != "0" {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server as by a crash, and makes the standby the one that writes. Returns its socket.
    pub fn fail_over(&self) -> PathBuf {
        self.stop(StopMode::Immediate);
        self.control(&self.standby_data(), &["-w", "-t", "60", "promote"]);
        let place = self.directory.join("standby");
        assert_eq!(self.sql_in(&place, "SELECT pg_is_in_recovery()"), "f", "the standby was not promoted");
        self.sql_in(&place, "ALTER SYSTEM SET synchronous_standby_names = ''");
        self.sql_in(&place, "SELECT pg_reload_conf()");
        place.join(format!(".s.PGSQL.{PORT}"))
    }

    fn standby_data(&self) -> PathBuf {
        self.directory.join("standby/data")
    }

    fn control(&self, data: &Path, arguments: &[&str]) {
        let program = self.programs.join("pg_ctl");
        let variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut control = match (&self.disk, self.owner) {
            (Some(disk), Some(owner)) => disk.command(&program, owner, &variables),
            _ => {
                let mut control = command(&program, self.owner);
                control.envs(variables);
                control
            }
        };
        let _ = control.arg("-D").arg(data).args(arguments).status();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if self.is_private {
            self.kill_pooler();
            self.stop(StopMode::Immediate);
            if self.standby_data().exists() {
                self.control(&self.standby_data(), &["-m", "immediate", "-w", "stop"]);
            }
        }
    }
}
