//! The files of `docs/deploy`: they are valid, name what exists, fit each other, and their worker starts and drains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::stage::{Stage, ended, scripted, signal, wait_until};

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deploy").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(place(name)).unwrap()
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(reason: &str) {
    eprintln!("== {reason}: a file of docs/deploy is NOT checked by it");
}

/// The settings of a unit by section and key. A line that is neither a comment, a section nor a setting is refused, and so is a setting that is given twice.
fn unit() -> BTreeMap<(String, String), String> {
    let (mut section, mut settings) = (String::new(), BTreeMap::new());
    let text = read("backstitch-worker.service");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("not a setting: {line}"));
        let before = settings.insert((section.clone(), key.to_owned()), value.to_owned());
        assert_eq!(before, None, "{key} is given twice");
    }
    settings
}

fn service(key: &str) -> String {
    unit().remove(&("Service".to_owned(), key.to_owned())).unwrap_or_else(|| panic!("there is no {key}"))
}

/// The number of seconds after `--grace`.
fn grace(command: &str) -> u64 {
    let (_, rest) = command.split_once("--grace").expect("the worker has a time to drain");
    let digits = |character: &char| character.is_ascii_digit();
    let start = rest.find(|character: char| character.is_ascii_digit()).unwrap();
    rest[start..].chars().take_while(digits).collect::<String>().parse().unwrap()
}

#[test]
fn the_unit_drains_and_leaves_the_sandbox_its_means() {
    let stop: u64 = service("TimeoutStopSec").parse().unwrap();
    assert!(stop > grace(&service("ExecStart")), "systemd would kill what still drains");
    assert_eq!((service("KillSignal"), service("KillMode")), ("SIGTERM".into(), "mixed".into()));
    assert_eq!((service("Type"), service("Restart")), ("exec".into(), "on-failure".into()));
    assert_ne!(service("User"), "root");
    // Commands of agents would lose their namespaces, or the worker its filters.
    let harmful = [
        "RestrictNamespaces",
        "SystemCallFilter",
        "PrivateUsers",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectProc",
        "ProcSubset",
        "ProtectHostname",
        "MemoryDenyWriteExecute",
        "DynamicUser",
    ];
    let found: Vec<_> = unit().into_keys().filter(|(_, key)| harmful.contains(&key.as_str())).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn systemd_understands_the_unit() {
    let directory = tempfile::tempdir().unwrap();
    let unit = directory.path().join("backstitch-worker.service");
    let text = read("backstitch-worker.service");
    let installed = text.replace("/usr/local/bin/backstitch", env!("CARGO_BIN_EXE_backstitch"));
    assert_ne!(installed, text);
    std::fs::write(&unit, installed).unwrap();
    let checked = Command::new("systemd-analyze").arg("verify").arg(&unit).output();
    let Ok(checked) = checked else { return skip("systemd-analyze is not installed") };
    let complaints = String::from_utf8_lossy(&checked.stderr).into_owned();
    // Units of the system itself may have problems of their own.
    let complaints: Vec<&str> =
        complaints.lines().filter(|line| line.contains("backstitch-worker.service")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// As systemd starts it: with the same arguments, without new privileges, and ended by the signal of the unit.
#[test]
fn the_worker_of_the_unit_starts_and_drains() {
    let stage = Stage::new();
    let model = scripted(
        &stage,
        &json!([{"calls": [{"name": "shell", "arguments": {"command": "touch begun; sleep 1; touch done"}}]}, {"text": "Done."}]),
    );
    stage.run(&["enqueue", "Sew", "--model", &model, "--sandbox", "off"]).worked_quietly();
    let line = service("ExecStart");
    let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
    let command = stage.command(&arguments);
    let mut confined = Command::new("setpriv");
    confined.arg("--no-new-privs").arg(command.get_program()).args(command.get_args());
    confined.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => confined.env(name, value),
            None => confined.env_remove(name),
        };
    }
    let started = confined.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(worker) = started else { return skip("setpriv is not installed") };
    wait_until("the call", || stage.file("begun").is_some());
    signal(&worker, service("KillSignal").trim_start_matches("SIG"));
    let ran = ended(worker);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.output.contains("finished"), "what ran has ended: {ran:?}");
}

#[test]
fn the_containers_name_what_exists_and_fit_each_other() {
    let compose = read("compose.yaml");
    let has = |text: &str| assert!(compose.contains(text), "{text}");
    for line in compose.lines() {
        assert!(!line.contains('\t') && line.trim_end() == line, "not the form of YAML: {line:?}");
    }
    // The files that it names, from its own directory.
    for name in ["database.sql", "Dockerfile"] {
        has(name);
        assert!(place(name).exists(), "{name}");
    }
    let value = |key: &str| -> Vec<&str> {
        compose.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": ")).collect()
    };
    let arguments: Vec<String> = serde_json::from_str(value("command")[0]).unwrap();
    let stop: u64 = value("stop_grace_period")[1].trim_end_matches('s').parse().unwrap();
    assert!(stop > grace(&arguments.join(" ")), "docker would kill what still drains");
    assert_eq!(arguments.join(" "), service("ExecStart").split_once(' ').unwrap().1, "as in the unit");
    // The address, the user and the database are those that the SQL creates.
    let sql = read("database.sql");
    assert!(value("BACKSTITCH_STORE")[0].starts_with("postgres://backstitch@database/sessions"));
    assert!(
        sql.contains("CREATE ROLE backstitch LOGIN")
            && sql.contains("CREATE DATABASE sessions OWNER backstitch")
    );
    let image = read("Dockerfile");
    let declared = include_str!("../../../../Cargo.toml");
    let declared = declared.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    assert!(image.contains(&format!("FROM rust:{}", declared.trim_matches('"'))), "the image has {declared}");
}

#[test]
fn compose_understands_the_containers() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["compose.yaml", "database.sql", "Dockerfile"] {
        std::fs::copy(place(name), directory.path().join(name)).unwrap();
    }
    std::fs::write(directory.path().join("worker.env"), "ANTHROPIC_API_KEY=word\n").unwrap();
    let config = |program: &str, first: &[&str]| {
        let mut command = Command::new(program);
        command.args(first).args(["-f", "compose.yaml", "config"]).current_dir(directory.path());
        command.env("ADMIN_PASSWORD", "one").env("STORE_PASSWORD", "two").output().ok()
    };
    let has_plugin = Command::new("docker").args(["compose", "version"]).output();
    let plugin = has_plugin.is_ok_and(|found| found.status.success()).then(|| config("docker", &["compose"]));
    match plugin.flatten().or_else(|| config("docker-compose", &[])) {
        Some(checked) => assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr)),
        None => skip("docker compose is not installed"),
    }
}

/// On a real server, as its superuser.
#[test]
#[cfg(feature = "postgres")]
fn the_sql_creates_a_user_whose_store_works() {
    let Some(server) = backstitch_testkit::postgres::server() else { return };
    let name = format!("deploy_{}", std::process::id());
    let mut sql =
        read("database.sql").replace("backstitch", &name).replace("sessions", &format!("{name}_sessions"));
    sql = sql.lines().filter(|line| !line.starts_with('\\')).collect::<Vec<_>>().join("\n");
    let database = format!("CREATE DATABASE {name}_sessions OWNER {name};");
    assert!(sql.contains(&database), "{sql}");
    // A database is not created in a transaction with others.
    server.sql(&sql.replace(&database, "").replace(":'password'", "'a word'"));
    server.sql(&database);
    let host = server.directory.to_str().unwrap().replace('/', "%2F");
    let port = backstitch_testkit::postgres::PORT;
    let address = format!("postgres://{name}@{host}:{port}/{name}_sessions?schema={name}");
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
        command.current_dir(stage.path("files")).args(arguments).env("BACKSTITCH_STORE", &address);
        command.env("XDG_CONFIG_HOME", stage.path("config")).env("XDG_STATE_HOME", stage.path("state"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["run", "Sew", "--sandbox", "off", "--model", &model]);
    let user = run(&["query", "SELECT current_user"]);
    assert!(user.contains(&format!("{name}_reader")), "{user}");
    server.sql(&format!("DROP DATABASE {name}_sessions WITH (FORCE)"));
    server.sql(&format!("DROP ROLE {name}_reader; DROP ROLE {name}"));
}
