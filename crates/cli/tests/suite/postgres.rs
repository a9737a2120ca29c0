//! Commands with a store in PostgreSQL.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use backstitch_testkit::postgres::{self, TestServer};
use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{ended, signal, wait_until};

/// A user with a project, whose store is in a server.
struct User {
    directory: tempfile::TempDir,
    server: TestServer,
    address: String,
    /// The directory of a server that is only for this test. It is removed last.
    _own: Option<tempfile::TempDir>,
}

impl User {
    fn new() -> Option<Self> {
        Some(Self::with(postgres::server()?, None))
    }

    /// A user with a server that cleans nothing up by itself, which would count as transactions.
    fn alone() -> Option<Self> {
        let own = tempfile::tempdir().unwrap();
        let server = postgres::private_server(own.path())?;
        server.sql("ALTER SYSTEM SET autovacuum = off");
        server.sql("SELECT pg_reload_conf()");
        Some(Self::with(server, Some(own)))
    }

    fn with(server: TestServer, own: Option<tempfile::TempDir>) -> Self {
        let address = server.address();
        let user = Self { directory: tempfile::tempdir().unwrap(), server, address, _own: own };
        std::fs::create_dir(user.path("project")).unwrap();
        let write = json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "one\n"}});
        let script = json!({"reply": [{"calls": [write]}, {"text": "Done."}]});
        std::fs::write(user.path("script.json"), script.to_string()).unwrap();
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn command(&self, store: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
        command.current_dir(self.path("project")).args(arguments).args(["--store", store]);
        command.env("XDG_STATE_HOME", self.path("state")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env_remove("BACKSTITCH_STORE").env("PGPASSWORD", "hunter2-leaked");
        command
    }

    fn at(&self, store: &str, arguments: &[&str]) -> Ran {
        let output = self.command(store, arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ran =
            Ran { code: output.status.code(), output: text(&output.stdout), errors: text(&output.stderr) };
        assert!(
            !format!("{}{}", ran.output, ran.errors).contains("hunter2-leaked"),
            "{arguments:?} shows the password"
        );
        ran
    }

    fn run(&self, arguments: &[&str]) -> String {
        let ran = self.at(&self.address, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.output, ran.errors);
        ran.output
    }

    fn sew(&self) -> String {
        let model = format!("scripted:{}", self.path("script.json").display());
        self.run(&["run", "Sew", "--model", &model]);
        let listed: Value =
            serde_json::from_str(self.run(&["ls", "--json"]).lines().next().unwrap()).unwrap();
        listed["session"].as_str().or(listed["id"].as_str()).unwrap().to_owned()
    }
}

#[test]
fn sessions_are_kept_in_a_server() {
    let Some(user) = User::new() else { return };
    let session = user.sew();
    assert_eq!(std::fs::read_to_string(user.path("project/a.txt")).unwrap(), "one\n");
    assert!(user.run(&["log", &session]).contains("write_file"));
    assert!(user.run(&["verify"]).contains('1'));
    assert!(user.run(&["query", "SELECT count(*) AS sessions FROM sessions"]).contains('1'));
    user.run(&["rewind", &session, "start"]);
    assert!(!user.path("project/a.txt").exists());
    user.run(&["undo", &session]);
    assert!(user.path("project/a.txt").exists());
    user.run(&["gc"]);
    user.run(&["verify"]);
}

#[test]
fn sessions_move_between_a_server_and_files() {
    let Some(user) = User::new() else { return };
    let session = user.sew();
    let (file, bundle) = (user.path("other/store.db"), user.path("session.bundle"));
    let other = user.server.address();
    user.run(&["copy", &session, "--to", file.to_str().unwrap()]);
    user.run(&["export", &session, "--bundle", bundle.to_str().unwrap()]);
    let imported = user.at(&other, &["import", bundle.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{}", imported.errors);
    for store in [file.to_str().unwrap(), &other] {
        let log = user.at(store, &["log", &session]);
        assert!(log.output.contains("write_file"), "{store}: {}{}", log.output, log.errors);
    }
    let refused = user.at(&user.address, &["backup", user.path("backup.db").to_str().unwrap()]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.errors.contains("pg_dump") && refused.errors.contains("store_unsupported"),
        "{}",
        refused.errors
    );
}

/// As `docs/operations.md` says.
#[test]
fn a_dump_is_restored_into_another_database_and_is_sound() {
    let Some(user) = User::new() else { return };
    let session = user.sew();
    let (schema, dump) = (postgres::schema_of(&user.address), user.path("sessions.dump"));
    let (views, copy, dump) = (format!("{schema}_views"), format!("{schema}_copy"), dump.to_str().unwrap());
    user.server.client("pg_dump", &["-Fc", "-n", schema, "-n", &views, "-f", dump, "postgres"]);
    user.server.sql(&format!("CREATE DATABASE {copy}"));
    user.server.client("pg_restore", &["--no-owner", "--exit-on-error", "-d", &copy, dump]);
    let restored = user.address.replace("/postgres?", &format!("/{copy}?"));
    for (arguments, word) in [(&["verify"][..], "everything is sound"), (&["log", &session], "write_file")] {
        let ran = user.at(&restored, arguments);
        assert!(ran.code == Some(0) && ran.output.contains(word), "{arguments:?}: {ran:?}");
    }
    user.server.sql(&format!("DROP DATABASE {copy} WITH (FORCE)"));
}

/// Each question to the server costs a round trip, so captures ask about many files at once.
#[test]
fn a_first_run_in_a_large_project_takes_few_transactions() {
    let Some(user) = User::alone() else { return };
    for number in 0..2_000 {
        let directory = user.path("project").join(format!("d{}", number % 20));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("{number}.txt")), format!("file {number}\n")).unwrap();
    }
    // Transactions are counted for each database, when their connection ends at the latest.
    let database = format!("{}_counted", postgres::schema_of(&user.address));
    user.server.sql(&format!("CREATE DATABASE {database}"));
    let address = user.address.replace("/postgres?", &format!("/{database}?"));
    let model = format!("scripted:{}", user.path("script.json").display());
    let ran = user.at(&address, &["run", "Sew", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let of = |value: &str, table: &str| {
        user.server.sql(&format!("SELECT {value} FROM {table} WHERE datname = '{database}'"))
    };
    wait_until("the end of all connections", || of("count(*)", "pg_stat_activity") == "0");
    let transactions: u64 = of("xact_commit + xact_rollback", "pg_stat_database").parse().unwrap();
    assert!(transactions <= 400, "{transactions} transactions for 2,000 files");
    let verified = user.at(&address, &["verify"]);
    assert!(verified.output.contains("everything is sound"), "{verified:?}");
    user.server.sql(&format!("DROP DATABASE {database} WITH (FORCE)"));
}

#[test]
fn the_doctor_checks_the_server() {
    let Some(user) = User::new() else { return };
    user.sew();
    let checked = user.at(&user.address, &["doctor"]);
    for word in ["fsync", "synchronous_commit", "standbys", "oldest snapshot", "set fsync = on"] {
        assert!(checked.output.contains(word), "{word}: {}", checked.output);
    }
}

#[test]
fn what_sessions_use_is_counted_in_a_server_and_limited_by_the_day() {
    let Some(user) = User::new() else { return };
    let usage = json!({"input_tokens": 19_000, "output_tokens": 900});
    let script = json!({"reply": [{"text": "Done.", "usage": usage}]});
    std::fs::write(user.path("script.json"), script.to_string()).unwrap();
    user.sew();
    let used: Value = serde_json::from_str(&user.run(&["stats", "--json", "--since", "1d"])).unwrap();
    assert_eq!((&used["sessions"], &used["total"]["input_tokens"]), (&json!(1), &json!(19_000)), "{used}");
    assert_eq!(used["days"].as_array().unwrap().len(), 1, "{used}");
    std::fs::create_dir_all(user.path("config/backstitch")).unwrap();
    std::fs::write(user.path("config/backstitch/config.toml"), "[day_budget]\ntokens = 19000\n").unwrap();
    let model = format!("scripted:{}", user.path("script.json").display());
    let refused = user.at(&user.address, &["run", "Sew", "--model", &model]);
    assert!(refused.errors.contains("the budget of the day is used up"), "{refused:?}");
}

/// A failover to a standby that lags loses records. What they say may have happened outside, so no worker repeats it.
#[test]
fn a_worker_leaves_a_session_whose_records_were_lost_to_a_person() {
    let Some(user) = User::new() else { return };
    let wait = "touch ../begun; while [ ! -e ../end ]; do sleep 0.05; done";
    let calls = json!([{"name": "shell", "arguments": {"command": wait}}]);
    let script = json!({"reply": [{"calls": calls}, {"text": "Done."}]});
    std::fs::write(user.path("script.json"), script.to_string()).unwrap();
    let model = format!("scripted:{}", user.path("script.json").display());
    user.run(&["enqueue", "Sew", "--sandbox", "off", "--model", &model]);
    let mut worker = user.command(&user.address, &["worker", "--json"]);
    let worker = worker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the call", || user.path("begun").exists());
    let schema = postgres::schema_of(&user.address);
    user.server.sql(&format!(
        "UPDATE {schema}.sessions s SET head = head - 1, chain = (SELECT checksum FROM {schema}.records r WHERE r.session = s.id AND r.position = s.head - 2)"
    ));
    user.server
        .sql(&format!("DELETE FROM {schema}.records WHERE position >= (SELECT head FROM {schema}.sessions)"));
    std::fs::write(user.path("end"), "").unwrap();
    let failed = || user.run(&["queue", "--json", "--state", "failed"]);
    wait_until("the end of the attempt", || failed().contains("has lost records"));
    signal(&worker, "TERM");
    assert_eq!(ended(worker).code, Some(0));
}

#[test]
fn a_server_that_is_away_or_refuses_is_named_without_a_password() {
    let Some(user) = User::new() else { return };
    for (address, code) in [
        ("postgres://me:secret-word@127.0.0.1:1/sessions", "store_unavailable"),
        ("postgres://me:secret-word@127.0.0.1:1/sessions?schema=NO", "usage"),
        ("postgres://me:secret-word@127.0.0.1:1/sessions?sslmode=odd", "usage"),
    ] {
        for arguments in [["ls"], ["verify"]] {
            let refused = user.at(address, &arguments);
            assert!(refused.code.is_some_and(|code| code != 0), "{address}");
            assert!(refused.errors.contains(code), "{address}: {}", refused.errors);
            assert!(!refused.errors.contains("secret-word"), "{}", refused.errors);
        }
    }
}
