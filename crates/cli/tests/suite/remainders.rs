//! What killed processes leave with data of sessions: parts of backups and exports, and temporary directories. `gc`, `redact` and `rm`
//! remove it, and what a living process uses stays.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;

use serde_json::{Value, json};

use crate::sandbox::{has_python, is_unsupported, shell};
use crate::stage::{Stage, interrupt, scripted, signal, text_of, wait_until};

/// How often a process is started until it is caught while it writes.
const MOST_ATTEMPTS: usize = 100;

/// Runs a session with a file that takes a while to be copied.
fn stage_with_data() -> Stage {
    let stage = Stage::new();
    let mut random = 1_u64;
    let words = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:08x}\n", random >> 32)
    });
    let text: String = words.take(1 << 20).collect();
    fs::write(stage.path("files/large.txt"), text).unwrap();
    let model = scripted(
        &stage,
        &json!([{"calls": [shell("echo scarlet velvet thread > secret.txt")]}, {"text": "Done."}]),
    );
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    stage
}

/// The entries of a directory that have a temporary name, and data. A file is noted before it has some.
fn partial(directory: &Path) -> Vec<PathBuf> {
    let has_data = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_dir() || found.len() > 0);
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| text_of(path).contains(".partial-")).filter(has_data).collect()
}

/// Starts a command that writes to a new path, and stops it while it writes.
fn stopped_while_writing(stage: &Stage, arguments: &[&str], to: &Path) -> Child {
    let directory = to.parent().unwrap();
    for _ in 0..MOST_ATTEMPTS {
        let mut child = stage.command(&[arguments, &[&text_of(to)]].concat()).spawn().unwrap();
        wait_until("the file", || !partial(directory).is_empty() || to.exists());
        signal(&child, "STOP");
        let status = format!("/proc/{}/stat", child.id());
        let state = || fs::read_to_string(&status).unwrap_or_default();
        wait_until("the stop", || state().contains(") T ") || child.try_wait().unwrap().is_some());
        if !partial(directory).is_empty() && !to.exists() {
            return child;
        }
        // It was done before it was stopped.
        let _ = child.kill();
        child.wait().unwrap();
        stage.run(&["gc"]).worked_quietly();
        if to.is_dir() {
            fs::remove_dir_all(to).unwrap();
        } else {
            let _ = fs::remove_file(to);
        }
    }
    panic!("the command was never stopped while it wrote");
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn parts_of_killed_backups_and_exports_are_removed_and_those_of_living_ones_are_not() {
    let stage = stage_with_data();
    let session = stage.session();
    let place = stage.path("elsewhere");
    fs::create_dir(&place).unwrap();
    let rows: [(&[&str], &str, &[&str]); 3] = [
        (&["backup"], "copy.db", &["gc"]),
        (&["export", &session, "--bundle"], "session.bundle", &["redact", &session]),
        (&["export", &session, "--git"], "repository", &["gc"]),
    ];
    for (arguments, name, remedy) in rows {
        let child = stopped_while_writing(&stage, arguments, &place.join(name));
        let left = partial(&place);
        assert!(!left.is_empty());
        // Processes of other tests that were killed may have left directories in the same place.
        let listed = stage.json(&["gc"]);
        assert!(!listed["left"].to_string().contains(".partial-"), "{name}: its process lives: {listed}");
        assert_eq!(partial(&place), left, "{name}: its process lives");
        kill(child);
        let doctor = stage.run(&["doctor"]).output;
        assert!(doctor.contains("killed process") && doctor.contains(".partial-"), "{name}: {doctor}");
        let listed = stage.json(&["gc", "--dry-run"]);
        assert!(listed["left"].to_string().contains(".partial-"), "{name}: {listed}");
        assert_eq!(partial(&place), left, "{name}: it was a dry run");
        let mut command = stage.command(remedy);
        let value = stage.write("value", "scarlet velvet thread");
        let ran = command.stdin(fs::File::open(value).unwrap()).output().unwrap();
        let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(
            said.contains("removed ") && said.contains("which a killed process had left"),
            "{name}: {said}"
        );
        assert_eq!(partial(&place), Vec::<PathBuf>::new(), "{name}");
        let notes = fs::read_dir(stage.path("store")).unwrap().flatten().map(|entry| entry.path());
        assert_eq!(notes.filter(|path| text_of(path).contains(".unfinished-")).count(), 0, "{name}");
    }
    stage.run(&["verify"]).worked_quietly();
}

/// A stage whose temporary files are in a directory of its own, and the directories in it.
fn with_temporary() -> (Stage, impl Fn() -> Vec<PathBuf>) {
    let stage = Stage::confined();
    let temporary = stage.path("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).unwrap();
    let stage = stage.with_variable("TMPDIR", &text_of(&temporary));
    (stage, move || fs::read_dir(&temporary).unwrap().flatten().map(|entry| entry.path()).collect())
}

const WRITES: &str = "mkdir $TMPDIR/locked; echo velvet > $TMPDIR/locked/secret; chmod 500 $TMPDIR/locked; touch started; sleep 1000";

fn agent(stage: &Stage, more: &str) -> String {
    stage.write("agent.toml", &format!("name = \"tailor\"\ntools = [\"shell\"]\n{more}\n"))
}

/// Starts a session with one command, and waits until that has written.
fn started(stage: &Stage, agent: &str, calls: Value) -> Child {
    let _ = fs::remove_file(stage.path("files/started"));
    let model = scripted(stage, &json!([{"calls": calls}, {"text": "Done."}]));
    let child = stage.command(&["run", "Sew", "--agent", agent, "--model", &model]).spawn().unwrap();
    wait_until("the command", || stage.file("started").is_some());
    child
}

#[test]
fn temporary_directories_of_killed_processes_are_removed_and_those_of_living_ones_are_not() {
    if is_unsupported() {
        return;
    }
    let (stage, temporary) = with_temporary();
    let plain = agent(&stage, "");
    let remedies: [&[&str]; 2] = [&["gc"], &["rm", "--yes"]];
    for remedy in remedies {
        let killed = started(&stage, &plain, json!([shell(WRITES)]));
        let session = stage.session();
        let of_killed = temporary();
        assert_eq!(of_killed.len(), 1);
        kill(killed);
        assert!(of_killed[0].join("locked/secret").exists(), "a killed process removes nothing");
        let doctor = stage.run(&["doctor"]).output;
        assert!(doctor.contains(&text_of(&of_killed[0])), "{doctor}");
        // It is not the store of that session which says what was left.
        let arguments = if remedy[0] == "rm" { [remedy, &[&session]].concat() } else { remedy.to_vec() };
        let said = stage.run(&arguments).worked_quietly();
        assert!(said.contains(&text_of(&of_killed[0])), "{said}");
        assert_eq!(temporary(), Vec::<PathBuf>::new(), "{remedy:?}");
    }
    let living = started(&stage, &plain, json!([shell(WRITES)]));
    let of_living = temporary();
    assert_eq!(stage.json(&["gc"])["left"], json!([]));
    assert_eq!(temporary(), of_living, "its process lives");
    // The next call of any session removes what was left before.
    kill(living);
    let other = Stage::confined().with_variable("TMPDIR", &text_of(&stage.path("temporary")));
    let model = scripted(&other, &json!([{"calls": [shell("true")]}, {"text": "Done."}]));
    other.run(&["run", "Sew", "--model", &model]).worked_quietly();
    assert_eq!(temporary(), Vec::<PathBuf>::new());
}

/// A server is not a call, so no recovery of a session finds its directory.
#[test]
fn the_temporary_directory_of_a_server_is_removed_after_a_kill() {
    if is_unsupported() || !has_python() {
        return;
    }
    const SERVER: &str = "import json, os, sys, time
open(os.environ['TMPDIR'] + '/secret', 'w').write('velvet')
for line in sys.stdin:
    request = json.loads(line)
    if request.get('method') == 'tools/call':
        open('started', 'w').close(); time.sleep(1000)
    results = {'initialize': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}},
        'tools/list': {'tools': [{'name': 'sew', 'inputSchema': {'type': 'object'}}]}}
    if 'id' in request:
        print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': results[request['method']]}), flush=True)
";
    let (stage, temporary) = with_temporary();
    let script = stage.write("server.py", SERVER);
    let server = format!(
        "[approval]\ndefault = \"auto\"\n[[mcp]]\nname = \"it\"\ncommand = {}",
        json!(["python3", script])
    );
    let agent = agent(&stage, &server);
    let calls = json!([{"name": "it__sew", "arguments": {}}]);
    let child = started(&stage, &agent, calls.clone());
    let left = temporary();
    assert!(left.iter().any(|path| path.join("secret").exists()), "{left:?}");
    assert_eq!(stage.json(&["gc"])["left"], json!([]));
    kill(child);
    let said = stage.run(&["gc"]).worked_quietly();
    assert!(left.iter().all(|path| said.contains(&text_of(path))), "{said}");
    assert_eq!(temporary(), Vec::<PathBuf>::new());
    // One that is stopped in order leaves nothing.
    let child = started(&stage, &agent, calls);
    assert_eq!(interrupt(child).code, Some(130));
    assert_eq!(temporary(), Vec::<PathBuf>::new());
}
