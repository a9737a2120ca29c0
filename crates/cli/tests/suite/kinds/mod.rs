//! Every kind of process against every kind of object, as the second table of `docs/security.md` says it.
//!
//! One program makes all attempts. It runs as a command, as a command tool, as `setup`, as an MCP server and as an engine, in both modes of the sandbox, with
//! and without a network, for the user of the tests, and, if that is the superuser, for an ordinary user too. It also runs outside of every
//! sandbox: an attempt that fails even there says nothing, and is skipped with a line that says so. The
//! expected results are read from the page, so that the page and the sandbox cannot differ.
#![cfg(target_os = "linux")]

mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::sandbox::is_unsupported;
use crate::stage::{Stage, scripted, text_of, wait_until};
use page::{Conditions, Kind};

const PERSON: &str = include_str!("person.py");
const PROBE: &str = include_str!("probe.py");

/// The program of an engine.
const ENGINE: &str = "#!/bin/sh
if [ \"$1\" = --version ]; then echo '2.1.197 (Claude Code)'; exit; fi
exec python3 @BASE@/probe.py engine @BASE@ < /dev/null
";

/// Opens a file outside as descriptor 7, as a script might that starts Backstitch.
const WITH_DESCRIPTOR: &str = "exec 7>> \"$0/outside/inherited\"; exec \"$@\"";

/// A program of the person, with one object of each kind. It ends with this.
struct Person(Child);

impl Person {
    fn start(stage: &Stage) -> Self {
        let mut command = stage.as_its_user(Command::new("python3"));
        command.arg(stage.path("person.py")).arg(base(stage)).env("SECRET_WORD", "velvet");
        // It is not in the group of the tests, which signals of the attempts must not reach.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{'), "{line}");
        stage.write("person.json", &line);
        Self(child)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // It removes what would outlive it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The results of one process, by row and way.
type Results = BTreeMap<(String, String, String), String>;

fn stage(is_ordinary: bool) -> Stage {
    let stage = Stage::confined();
    for directory in ["outside", "report", "temporary", "home", "programs", "store"] {
        fs::create_dir(stage.path(directory)).unwrap();
    }
    for name in ["file", "spare", "held"] {
        stage.write(&format!("outside/{name}"), "kept");
    }
    stage.write("person.py", PERSON);
    stage.write("probe.py", PROBE);
    stage.write("files/hem.txt", "hem");
    let engine = stage.write("programs/claude", &ENGINE.replace("@BASE@", &base(&stage)));
    fs::set_permissions(engine, Permissions::from_mode(0o755)).unwrap();
    let path =
        if is_ordinary { "/usr/local/bin:/usr/bin:/bin".to_owned() } else { std::env::var("PATH").unwrap() };
    let path = format!("{}:{path}", stage.path("programs").display());
    let (home, temporary) = (text_of(&stage.path("home")), text_of(&stage.path("temporary")));
    let stage =
        stage.with_variable("PATH", &path).with_variable("HOME", &home).with_variable("TMPDIR", &temporary);
    if is_ordinary { stage.of_ordinary_user() } else { stage }
}

/// The directory of the stage.
fn base(stage: &Stage) -> String {
    text_of(stage.path("files").parent().unwrap())
}

/// Runs a command of the stage with descriptor 7, and returns what it printed.
fn run(stage: &Stage, command: &Command) -> String {
    let mut shell = stage.as_its_user(Command::new("sh"));
    shell.args(["-c", WITH_DESCRIPTOR]).arg(base(stage));
    shell.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ran = shell.current_dir(stage.path("files")).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

/// Reads the report of a process, after nothing of it is left.
fn report(stage: &Stage, kind: &str, said: &str) -> Results {
    let path = stage.path("report").join(kind);
    let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("no report of the {kind}: {said}"));
    fs::remove_file(path).unwrap();
    let rows: Vec<[String; 4]> = serde_json::from_str(&text).unwrap();
    rows.into_iter().map(|[object, attempt, way, result]| ((object, attempt, way), result)).collect()
}

/// Waits until no process of a kind is left. They hold a lock.
fn await_end(stage: &Stage) {
    let hold = File::open(stage.path("report/hold")).unwrap();
    wait_until("the end of what the processes left", || hold.try_lock().is_ok());
}

/// An agent whose model makes a call of each kind, in a copy that is set up.
fn run_agent(stage: &Stage, sandbox: &str) -> BTreeMap<Kind, Results> {
    let (base, probe) = (base(stage), text_of(&stage.path("probe.py")));
    let words = |kind: &str| json!(["python3", probe, kind, base]);
    let line = |kind: &str| format!("python3 {probe} '{kind}' {base}");
    let agent = format!(
        "name = \"tailor\"\ntools = [\"shell\"]\n[workspace]\nisolated = true\nsetup = [{}]\n\
        [[tool]]\nname = \"probe\"\ndescription = \"Probes.\"\ncommand = {}\n\
        [[mcp]]\nname = \"it\"\ncommand = {}\n[approval]\ndefault = \"auto\"\n{sandbox}",
        json!(line("setup")),
        words("command tool"),
        words("MCP server"),
    );
    let agent = stage.write("agent.toml", &agent);
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let calls = json!([
        call("shell", json!({"command": line("command")})),
        call("probe", json!({})),
        call("it__sew", json!({})),
        {"text": "Done."},
    ]);
    let model = scripted(stage, &calls);
    let said = run(stage, &stage.command(&["run", "Sew", "--agent", &agent, "--model", &model]));
    await_end(stage);
    let kinds = [Kind::Command, Kind::CommandTool, Kind::Setup, Kind::Server];
    kinds.into_iter().map(|kind| (kind, report(stage, kind.name(), &said))).collect()
}

/// The engine ends after its attempts, so its run fails.
fn run_engine(stage: &Stage, sandbox: &str) -> BTreeMap<Kind, Results> {
    let agent = stage.write("agent.toml", &format!("name = \"tailor\"\nengine = \"claude-code\"\n{sandbox}"));
    let said = run(stage, &stage.command(&["run", "Sew", "--agent", &agent]));
    await_end(stage);
    [(Kind::Engine, report(stage, Kind::Engine.name(), &said))].into()
}

fn has_python(is_ordinary: bool) -> bool {
    let mut command = Command::new("python3");
    if is_ordinary {
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    }
    command.args(["-c", "import os, signal; os.pidfd_open, signal.pidfd_send_signal"]);
    command.output().is_ok_and(|ran| ran.status.success())
}

/// Tries one user. Returns what is not as the page says.
#[expect(clippy::print_stderr, reason = "a skipped attempt says so")]
fn differences(table: &page::Table, is_ordinary: bool) -> Vec<String> {
    let user = if is_ordinary { "an ordinary user" } else { "this user" };
    if !has_python(is_ordinary) {
        eprintln!("SKIPPED: there is no python3 from 3.9 on for {user}");
        return Vec::new();
    }
    let (mut wrong, mut skipped) = (Vec::new(), BTreeSet::new());
    for mode in ["workspace", "read-only"] {
        for network in [true, false] {
            let stage = stage(is_ordinary);
            let person = Person::start(&stage);
            let doctor = run(&stage, &stage.command(&["doctor"]));
            let namespaces = doctor.contains("commands in the sandbox have PID, IPC");
            let conditions = Conditions { mode, network, namespaces };
            let sandbox = format!(
                "[sandbox]\nmode = \"{mode}\"\nnetwork = {network}\nwrite = [{}]\n",
                json!(text_of(&stage.path("report")))
            );
            let mut found = run_agent(&stage, &sandbox);
            // An engine needs the network.
            if network {
                found.extend(run_engine(&stage, &sandbox));
            }
            let mut plain = Command::new("python3");
            plain.arg(stage.path("probe.py")).args(["none", base(&stage).as_str()]);
            let said = run(&stage, &plain);
            let outside = report(&stage, "none", &said);
            drop(person);
            for (kind, results) in found {
                assert_eq!(results.len(), outside.len(), "{kind:?}");
                for ((object, attempt, way), result) in results {
                    let what =
                        format!("{user}, {mode}, network {network}, {kind:?}: {object}: {attempt} ({way})");
                    let Some(cell) = table.cell(&object, &attempt, kind) else {
                        wrong.push(format!("{what}: the page has no such row"));
                        continue;
                    };
                    let is_open = cell.is_open(conditions);
                    let tried = format!("{object}: {attempt} ({way})");
                    // Outside there is no Backstitch above the process.
                    let is_above = object == "Backstitch itself";
                    let can_be = is_above || outside[&(object, attempt, way)] == "open";
                    if !can_be {
                        skipped.insert(tried);
                    } else if (result == "open") != is_open || (result != "open" && result != "refused") {
                        wrong.push(format!("{what}: {result}"));
                    }
                }
            }
        }
    }
    for tried in skipped {
        eprintln!("SKIPPED: {user}: {tried}: it fails without a sandbox too");
    }
    wrong
}

#[test]
fn every_kind_of_process_reaches_what_the_page_says() {
    if is_unsupported() || backstitch::host::probe().landlock < 6 {
        return;
    }
    let wrong = differences(&page::Table::read(), false);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_of_process_of_an_ordinary_user_reaches_what_the_page_says() {
    if is_unsupported() || backstitch::host::probe().landlock < 6 || !rustix::process::geteuid().is_root() {
        return;
    }
    let wrong = differences(&page::Table::read(), true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
