//! Real work with the defaults of the command: a sandbox that refuses everything would be safe and useless, and so would be one
//! that asks about everything.
//!
//! Each row of the table is a small project, the command that an agent would run in it, and its outcome. Programs that are
//! not installed are skipped with a line that says so. Nothing is downloaded.
#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

/// The outcome of a command.
enum Expected {
    /// It exits with 0, and its output contains the words.
    Works(&'static str),
    /// It fails, and the result that the model reads contains the words.
    Refused(&'static str),
    /// It works where Landlock tells sockets in the workspace from others. Elsewhere it is refused.
    WorksFromLandlock9(&'static str, &'static str),
}

use Expected::{Refused, Works, WorksFromLandlock9};

/// A project and a command.
struct Work {
    name: &'static str,
    /// Programs without which it is skipped.
    needs: &'static [&'static str],
    network: &'static str,
    files: &'static [(&'static str, &'static str)],
    command: &'static str,
    expected: Expected,
}

const CARGO: &str = "[package]\nname = \"hem\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
const RUST: &str = "pub fn sew() -> &'static str { \"sewn\" }
#[test] fn sews() {
    let file = std::env::temp_dir().join(\"thread\");
    std::fs::write(&file, sew()).unwrap();
    let child = std::process::Command::new(\"cat\").arg(&file).output().unwrap();
    assert_eq!(child.stdout, b\"sewn\");
}
fn main() { println!(\"{}\", sew()); }\n";

const PACKAGE: &str = r#"{"name": "hem", "version": "1.0.0", "scripts":
    {"prebuild": "node -e \"\"", "build": "node build.js", "test": "node --test"}}"#;
const BUILD: &str = "const fs = require('fs'), os = require('os'), child = require('child_process');
fs.mkdtempSync(os.tmpdir() + '/hem-'); fs.writeFileSync('out.txt', child.execSync('echo sewn'));
new (require('worker_threads').Worker)('process.stdout.write(\"a worker\\\\n\")', {eval: true});\n";
const NODE_TEST: &str = "const {test} = require('node:test'), assert = require('assert');
test('is sewn', () => assert.equal(require('fs').readFileSync('out.txt', 'utf8'), 'sewn\\n'));\n";

const POOL: &str = "import multiprocessing, tempfile, threading, unittest
def double(number): return 2 * number
class Seams(unittest.TestCase):
    def test_pool(self):
        for method in ['fork', 'spawn']:
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(double, range(4)), [0, 2, 4, 6])
    def test_queue(self):
        queue, lock = multiprocessing.Queue(), multiprocessing.Lock()
        def work():
            with lock: queue.put('sewn')
        child = multiprocessing.get_context('fork').Process(target=work)
        child.start(); self.assertEqual(queue.get(), 'sewn'); child.join()
    def test_temporary(self):
        with tempfile.TemporaryDirectory() as place: open(place + '/x', 'w').close()
if __name__ == '__main__': unittest.main()\n";

const MAKEFILE: &str =
    "all: a.txt b.txt c.txt d.txt\n\t@cat *.txt | sort\n%.txt:\n\t@sleep 0.1; echo $* > $@\n";

const JAVA: &str = "import java.nio.file.*; import java.util.concurrent.*;
public class Hem { public static void main(String[] names) throws Exception {
    var threads = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
    var sewn = threads.submit(() -> \"sewn\").get(); threads.shutdown();
    Files.writeString(names.length > 0 ? Files.createTempFile(\"hem\", \".txt\") : Path.of(\"hem.txt\"), sewn);
    var child = new ProcessBuilder(\"cat\", \"Hem.java\").start(); child.getInputStream().readAllBytes();
    System.out.println(sewn + \" \" + child.waitFor()); } }\n";

const AFFINITY: &str = "import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); os.nice(1)
print('sewn on', len(os.sched_getaffinity(0)))\n";

const GIT: &str = "set -e; git init -q -b main . ; git config user.name tailor; git config user.email tailor@example.org
echo one > hem.txt; git add -A; git commit -q -m one
git switch -q -c seam; echo two > seam.txt; git add -A; git commit -q -m two
git switch -q main; echo three > coat.txt; git add -A; git commit -q -m three
git merge -q --no-edit seam; git switch -q -c late HEAD~1; echo four > late.txt; git add -A; git commit -q -m four
git rebase -q main; git stash list; git gc -q; git fsck --no-progress; git log --format=%s | tr '\\n' ' '; git status --short";

const DATABASE: &str = "import os, sqlite3
base = sqlite3.connect('hem.db'); base.execute('PRAGMA journal_mode = WAL')
base.execute('CREATE TABLE seams (name)'); base.execute(\"INSERT INTO seams VALUES ('sewn')\"); base.commit()
if os.fork() == 0:
    other = sqlite3.connect('hem.db'); other.execute('UPDATE seams SET name = name || \" twice\"'); other.commit(); os._exit(0)
os.wait(); print(base.execute('SELECT name FROM seams').fetchone()[0])\n";

/// A server that a test starts, as a database would be, and a client. The first argument is its address.
const SERVER: &str = "import os, socket, sys
def listen(where):
    if where == 'tcp':
        server = socket.socket(); server.bind(('127.0.0.1', 0))
    else:
        server = socket.socket(socket.AF_UNIX); server.bind(where)
    server.listen(); return server, server.getsockname()
server, address = listen(sys.argv[1])
if os.fork() == 0:
    client = socket.socket(server.family); client.connect(address); client.sendall(b'SELECT'); print(client.recv(9).decode(), flush=True); os._exit(0)
connection, _ = server.accept(); connection.recv(9); connection.sendall(b'sewn'); sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n";

/// How a database is started that refuses to run as root. Its socket is in the workspace, and it does not listen on TCP.
const POSTGRES: &str = "set -e; initdb -D base -A trust -U tailor > /dev/null
pg_ctl -D base -w -o \"-k $PWD -c listen_addresses='' -c fsync=off\" -l log start > /dev/null || { cat log; exit 1; }
psql -h $PWD -U tailor -d postgres -Atc \"select 'sewn'\"; pg_ctl -D base -m immediate stop > /dev/null";

const TABLE: &[Work] = &[
    Work {
        name: "cargo builds and tests a crate",
        needs: &["cargo"],
        network: "off",
        files: &[("Cargo.toml", CARGO), ("src/main.rs", RUST)],
        // The directory of this user may be locked by another build.
        command: "unset CARGO_TARGET_DIR; export CARGO_HOME=$TMPDIR/cargo; cargo build --offline -q && cargo test --offline -q && ./target/debug/hem",
        expected: Works("sewn"),
    },
    Work {
        name: "npm runs scripts",
        needs: &["node", "npm"],
        network: "off",
        files: &[("package.json", PACKAGE), ("build.js", BUILD), ("hem.test.js", NODE_TEST)],
        command: "npm run build && npm test",
        expected: Works("a worker"),
    },
    Work {
        name: "python tests start processes",
        needs: &["python3"],
        network: "off",
        files: &[("test_hem.py", POOL)],
        command: "python3 -m unittest -q test_hem && echo sewn",
        expected: Works("sewn"),
    },
    Work {
        name: "make runs recipes concurrently",
        needs: &["make"],
        network: "off",
        files: &[("Makefile", MAKEFILE)],
        command: "make -j4",
        expected: Works("a\nb\nc\nd"),
    },
    Work {
        name: "a Java program is compiled and run",
        needs: &["javac", "java"],
        network: "off",
        files: &[("Hem.java", JAVA)],
        // Java does not know `$TMPDIR`, and creates temporary files in `/tmp` by default.
        command: "javac Hem.java && java Hem && java -Djava.io.tmpdir=$TMPDIR Hem temporary && \
            java Hem temporary 2>&1 | grep 'AccessDeniedException: /tmp/hem' && echo as expected",
        expected: Works("as expected"),
    },
    Work {
        name: "a program sets its own affinity and priority",
        needs: &["python3"],
        network: "off",
        files: &[("hem.py", AFFINITY)],
        command: "python3 hem.py",
        expected: Works("sewn on 1"),
    },
    Work {
        name: "git commits, merges and rebases",
        needs: &["git"],
        network: "off",
        files: &[],
        command: GIT,
        expected: Works("four"),
    },
    Work {
        name: "two processes share an SQLite database",
        needs: &["python3"],
        network: "off",
        files: &[("hem.py", DATABASE)],
        command: "python3 hem.py",
        expected: Works("sewn twice"),
    },
    Work {
        name: "a server on loopback, with the network",
        needs: &["python3"],
        network: "on",
        files: &[("serve.py", SERVER)],
        command: "python3 serve.py tcp",
        expected: Works("sewn"),
    },
    Work {
        name: "a server on loopback, without the network",
        needs: &["python3"],
        network: "off",
        files: &[("serve.py", SERVER)],
        command: "python3 serve.py tcp",
        expected: Refused("network"),
    },
    Work {
        name: "a server on a socket in the workspace, with the network",
        needs: &["python3"],
        network: "on",
        files: &[("serve.py", SERVER)],
        command: "python3 serve.py here.socket",
        expected: WorksFromLandlock9("sewn", "sockets"),
    },
    Work {
        name: "a server on a socket in the workspace, without the network",
        needs: &["python3"],
        network: "off",
        files: &[("serve.py", SERVER)],
        command: "python3 serve.py here.socket",
        expected: WorksFromLandlock9("sewn", "refuses"),
    },
    Work {
        name: "PostgreSQL on a socket in the workspace",
        needs: &["initdb", "pg_ctl", "psql", ORDINARY],
        network: "on",
        files: &[],
        command: POSTGRES,
        expected: WorksFromLandlock9("sewn", "sockets"),
    },
];

/// What a program needs that refuses to run as root. The superuser gives such a row to an ordinary user.
const ORDINARY: &str = "an ordinary user";

/// Whether the row is run by another user than that of the tests.
fn is_given(work: &Work) -> bool {
    work.needs.contains(&ORDINARY) && rustix::process::geteuid().is_root()
}

/// The places of programs. Distributions install servers where no path leads.
fn path(work: &Work) -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    // That of the superuser may lead where others have no access.
    let mut path = if is_given(work) { "/usr/local/bin:/usr/bin:/bin".to_owned() } else { own };
    for versions in ["/usr/lib/postgresql", "/usr/local/lib/postgresql"] {
        for version in std::fs::read_dir(versions).into_iter().flatten().flatten() {
            path.push_str(&format!(":{}/bin", version.path().display()));
        }
    }
    path
}

/// Returns what is missing on this machine.
fn missing(work: &Work) -> Option<&'static str> {
    let path = path(work);
    work.needs.iter().copied().find(|need| *need != ORDINARY && !is_installed(need, &path))
}

fn is_installed(program: &str, path: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).env("PATH", path).output();
    found.is_ok_and(|found| found.status.success())
}

/// Whether this system can confine processes. If not, it says so.
#[expect(clippy::print_stderr, reason = "what is skipped says so")]
fn can_confine() -> bool {
    let support = backstitch::host::probe();
    let can = support.landlock >= 3 && support.seccomp;
    if !can {
        eprintln!("SKIPPED: this system cannot confine processes ({support})");
    }
    can
}

/// Runs the command of a row as a model would, and returns why it is not as expected.
fn run(work: &Work) -> Result<(), String> {
    let mut stage = Stage::confined().with_variable("PATH", &path(work));
    if is_given(work) {
        std::fs::create_dir(stage.path("home")).unwrap();
        let home = crate::stage::text_of(&stage.path("home"));
        stage = stage.with_variable("HOME", &home).of_ordinary_user();
    }
    for (name, text) in work.files {
        let path = stage.path("files").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let command = format!("( {}\n) > output.txt 2>&1; status=$?; cat output.txt; exit $status", work.command);
    let call = json!({"name": "shell", "arguments": {"command": command, "timeout_seconds": 300}});
    let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
    let mut arguments = vec!["run", "Sew", "--model", &model];
    // By default it is off.
    if work.network != "off" {
        arguments.extend(["--network", work.network]);
    }
    let ran = stage.run(&arguments);
    let records = stage.run(&["log", "--all", "--json"]).output;
    let mut results = records.lines().filter(|line| line.contains("\"option_result\""));
    let result: Value = serde_json::from_str(results.next_back().unwrap_or("null")).unwrap();
    let result = &result["data"]["message"]["content"]["result"];
    let output = stage.file("output.txt").unwrap_or_default();
    let is_done = result["exit_code"] == 0;
    let as_expected = match work.expected {
        WorksFromLandlock9(words, _) if backstitch::host::probe().landlock >= 9 => {
            is_done && output.contains(words)
        }
        Works(words) => is_done && output.contains(words),
        Refused(words) | WorksFromLandlock9(_, words) => !is_done && result.to_string().contains(words),
    };
    if ran.code == Some(0) && as_expected { Ok(()) } else { Err(format!("{ran:?}\n{output}\n{result}")) }
}

#[test]
#[expect(clippy::print_stderr, reason = "what is skipped says so")]
fn real_work_is_done_inside_of_the_sandbox() {
    if !can_confine() {
        return;
    }
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = TABLE
            .iter()
            .filter_map(|work| match missing(work) {
                Some(need) => {
                    eprintln!("SKIPPED: {}: it needs {need}", work.name);
                    None
                }
                None => Some((work.name, scope.spawn(|| run(work)))),
            })
            .collect();
        for (name, running) in running {
            if let Err(reason) = running.join().unwrap() {
                wrong.push(format!("== {name}\n{reason}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Runs git as a person does, and returns its output.
fn git(stage: &Stage, arguments: &[&str]) -> String {
    // Maintenance would continue after the command, with a lock in the repository.
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "maintenance.auto=false"];
    let run = Command::new("git").args(identity).args(arguments).current_dir(stage.path("files")).output();
    let output = run.unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[expect(clippy::print_stderr, reason = "what is skipped says so")]
fn a_day_with_the_defaults_asks_nothing() {
    let path = std::env::var("PATH").unwrap_or_default();
    if let Some(missing) = ["cargo", "git"].into_iter().find(|program| !is_installed(program, &path)) {
        eprintln!("SKIPPED: it needs {missing}");
        return;
    }
    if !can_confine() {
        return;
    }
    let stage = ["AUTHOR", "COMMITTER"].iter().fold(Stage::confined(), |stage, who| {
        let stage = stage.with_variable(&format!("GIT_{who}_NAME"), "t");
        stage.with_variable(&format!("GIT_{who}_EMAIL"), "t@example.org")
    });
    std::fs::create_dir(stage.path("files/src")).unwrap();
    for (name, text) in [("Cargo.toml", CARGO), ("src/main.rs", RUST), (".gitignore", "/target\n")] {
        std::fs::write(stage.path("files").join(name), text).unwrap();
    }
    git(&stage, &["init", "-q", "-b", "main"]);
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-q", "-m", "first"]);

    let shell = |command: &str| {
        let arguments = json!({"command": command, "timeout_seconds": 300});
        json!({"calls": [{"name": "shell", "arguments": arguments}]})
    };
    let cargo = |what: &str| {
        shell(&format!("unset CARGO_TARGET_DIR; export CARGO_HOME=$TMPDIR/cargo; cargo {what} --offline -q"))
    };
    let edit = json!({"path": "src/main.rs", "old": "fn main() {", "new": "fn main() { print!(\"well \");"});
    let write = json!({"path": "seam.txt", "text": "red\n"});
    let model = scripted(
        &stage,
        &json!([
            {"calls": [{"name": "edit_file", "arguments": edit}]},
            cargo("build"),
            cargo("test"),
            shell("./target/debug/hem && git add -A && git commit -q -m 'Say it well'"),
            shell("git switch -q -c seam && git status --short && git log --oneline"),
            {"text": "It is on a branch."},
            {"calls": [{"name": "write_file", "arguments": write}]},
            {"text": "It is red."},
        ]),
    );
    let ran = stage.run(&["run", "Say it well, and commit it on a branch", "--model", &model]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "It is on a branch.\n"), "{ran:?}");
    let session = stage.session();
    assert_eq!(stage.run(&["ask", &session, "Add a seam"]).worked_quietly(), "It is red.\n");
    assert_eq!(git(&stage, &["branch", "--show-current"]).trim(), "seam");
    assert_eq!(git(&stage, &["log", "-1", "--format=%s"]).trim(), "Say it well");

    // The person takes the last change back, and has it again.
    let shown = stage.json(&["show", &session]);
    let call = shown["calls"].as_array().unwrap().last().unwrap()["call"].as_str().unwrap().to_owned();
    stage.run(&["undo", &session, "--call", &call]).worked_quietly();
    assert_eq!(stage.file("seam.txt"), None);
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(stage.file("seam.txt").as_deref(), Some("red\n"));

    // Nobody was asked, and every command did its work.
    let log = stage.run(&["log", &session, "--all", "--json"]).worked_quietly();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.iter().all(|record| record["kind"] != "paused"), "{log}");
    let results = records.iter().map(|record| &record["data"]["message"]["content"]["result"]);
    let exits: Vec<_> = results.filter_map(|result| result["exit_code"].as_i64()).collect();
    assert_eq!(exits, [0, 0, 0, 0], "{log}");
    assert_eq!(shown["waiting"], json!([]));
}
