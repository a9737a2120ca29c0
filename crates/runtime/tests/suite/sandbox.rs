//! The sandbox, with real processes: what it refuses, what it does not, and what it says.
//!
//! The tests hold for the superuser and for an ordinary user. They are skipped where the system cannot
//! confine processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::journal::Effect;
use backstitch_core::ports::{
    ProcessExit, ProcessOutcome, ProcessSpec, Sandbox, SandboxRefusal, SandboxSockets,
};
use backstitch_core::tool::{Tool, ToolContext, ToolResult};
use backstitch_runtime::{CallOutcome, SandboxGap, has_namespaces, hide_secrets, probe, resolve_writable};
use serde_json::json;

use crate::disk::Disk;
use crate::escape::{OrdinaryUser, SUPERVISOR, name_supervisor};
use crate::harness::Harness;

/// True if the test has to be skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn is_unsupported() -> bool {
    let support = probe();
    let is_complete = support.landlock >= 3 && support.seccomp;
    if !is_complete {
        eprintln!("SKIPPED: this system cannot confine processes ({support})");
    }
    !is_complete
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn has_program(name: &str) -> bool {
    let found =
        std::process::Command::new(name).arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !found {
        eprintln!("SKIPPED: there is no {name}");
    }
    found
}

/// A workspace, and directories beside it that must not change.
pub(crate) struct Scene {
    disk: Disk,
    harness: Harness,
    specs: Arc<Mutex<Vec<ProcessSpec>>>,
    outcomes: Arc<Mutex<Vec<Result<ProcessOutcome, String>>>>,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::over(Disk::new()).await
    }

    /// Its commands have a supervisor, as those of the command line do.
    pub(crate) async fn over(disk: Disk) -> Self {
        name_supervisor();
        let (specs, outcomes) = (Arc::<Mutex<Vec<ProcessSpec>>>::default(), Arc::default());
        let harness = disk.harness(vec![runner(specs.clone(), Arc::clone(&outcomes))]).await;
        let scene = Self { disk, harness, specs, outcomes };
        for (name, text) in [
            ("outside/file", "kept"),
            ("outside/other", "kept too"),
            ("outside/directory/deep", "deep"),
            ("home/.profile", "mine"),
            ("project/src/main.rs", "fn main() {}"),
            ("store/journal", "records"),
            ("files/inside", "inside"),
        ] {
            let path = scene.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        symlink(scene.at("outside/file"), scene.at("files/link")).unwrap();
        symlink(scene.at("outside"), scene.at("files/directory-link")).unwrap();
        scene
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.disk.directory.path().canonicalize().unwrap().join(name)
    }

    /// Runs processes, one after the other, in one call.
    pub(crate) async fn run_all(&self, specs: Vec<ProcessSpec>) -> Vec<Result<ProcessOutcome, String>> {
        *self.specs.lock().unwrap() = specs;
        let end = self.harness.run("run", json!({})).await;
        assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
        std::mem::take(&mut *self.outcomes.lock().unwrap())
    }

    pub(crate) async fn run(&self, spec: ProcessSpec) -> ProcessOutcome {
        self.run_all(vec![spec]).await.remove(0).unwrap()
    }

    pub(crate) fn shell(&self, sandbox: &Sandbox, command: &str) -> ProcessSpec {
        let home = self.at("home").display().to_string();
        let base = self.at("").display().to_string();
        ProcessSpec::shell(command).env("HOME", home).env("BASE", base).sandbox(sandbox.clone())
    }

    /// Content of everything outside of the workspace.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = ["outside", "home", "project", "store"].map(|name| self.at(name)).to_vec();
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let path = entry.path();
                // The workspace has its caches here, and supervisors note the times of calls.
                if path.ends_with("store/workspaces") || path.ends_with("store/calls") {
                    continue;
                }
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => {
                        found.insert(path.clone(), b"directory".to_vec());
                        open.push(path);
                    }
                    kind if kind.is_file() => {
                        let links = entry.metadata().unwrap().nlink();
                        let content = [fs::read(&path).unwrap(), links.to_string().into_bytes()].concat();
                        found.insert(path, content);
                    }
                    other => drop(found.insert(path, format!("{other:?}").into_bytes())),
                }
            }
        }
        found
    }
}

/// A tool that runs processes, and keeps their outcomes.
fn runner(
    specs: Arc<Mutex<Vec<ProcessSpec>>>,
    outcomes: Arc<Mutex<Vec<Result<ProcessOutcome, String>>>>,
) -> Tool {
    let tool = Tool::builder("run", "Runs.").unwrap().effect(Effect::Workspace);
    tool.timeout(Duration::from_secs(300)).handler(move |context: ToolContext, (): ()| {
        let (specs, outcomes) = (std::mem::take(&mut *specs.lock().unwrap()), outcomes.clone());
        async move {
            for spec in specs {
                let outcome = context.run_process(spec).await.map_err(|error| error.to_string());
                outcomes.lock().unwrap().push(outcome);
            }
            Ok(ToolResult::ok("ran"))
        }
    })
}

/// Writes outside of the workspace, each of which must fail.
const WRITES: &[(&str, &str)] = &[
    ("create", "echo new > $BASE/outside/new"),
    ("append", "echo more >> $BASE/outside/file"),
    ("overwrite", "echo other > $BASE/outside/file"),
    ("truncate", "truncate -s 0 $BASE/outside/file"),
    ("delete", "rm -f $BASE/outside/file"),
    ("delete a directory", "rm -rf $BASE/outside/directory"),
    ("rename outside", "mv $BASE/outside/file $BASE/outside/renamed"),
    ("rename in", "mv $BASE/outside/file moved-in"),
    ("rename out", "mv inside $BASE/outside/moved-out"),
    ("rename over", "mv inside $BASE/outside/file"),
    ("hard link in", "ln $BASE/outside/file hard"),
    ("hard link out", "ln inside $BASE/outside/hard"),
    ("symbolic link outside", "ln -s inside $BASE/outside/soft"),
    ("followed link", "echo through > link"),
    ("followed directory", "echo through > directory-link/new"),
    ("make a directory", "mkdir $BASE/outside/made"),
    ("make a pipe", "mkfifo $BASE/outside/pipe"),
    ("make a device in the workspace", "mknod device c 1 3"),
    ("mount", "mkdir -p mounted && mount -t tmpfs none mounted"),
    ("mount over", "mount --bind . $BASE/outside"),
    ("a new user namespace", "unshare -rm sh -c 'mount -t tmpfs none $BASE/outside'"),
    ("the store", "echo broken > $BASE/store/journal"),
    ("the store's files", "rm $BASE/store/journal"),
    ("the home directory", "echo evil >> ~/.profile"),
    ("a new file of the home directory", "echo evil > ~/.evil"),
    ("another project", "echo broken > $BASE/project/src/main.rs"),
    ("another project's files", "rm -r $BASE/project"),
    ("/tmp", "mktemp /tmp/backstitch-test-XXXXXX"),
    ("the system", "echo x > /usr/backstitch-test"),
    ("the kernel", "echo 1 > /proc/sys/kernel/printk_delay"),
    ("through a daemon", "setsid sh -c 'echo late > $BASE/outside/late' && test -e $BASE/outside/late"),
    ("through the parent", "echo x > /proc/$PPID/comm"),
];

#[tokio::test]
async fn each_write_outside_of_the_workspace_is_refused() {
    if is_unsupported() {
        return;
    }
    for (mode, sandbox) in [
        ("workspace", Sandbox::workspace()),
        ("read-only", Sandbox::read_only()),
        ("without network", Sandbox::workspace().without_network()),
    ] {
        let scene = Scene::new().await;
        let before = scene.outside();
        let specs = WRITES.iter().map(|(_, command)| scene.shell(&sandbox, command)).collect();
        let outcomes = scene.run_all(specs).await;
        for ((what, _), outcome) in WRITES.iter().zip(&outcomes) {
            assert!(!outcome.as_ref().unwrap().success(), "{mode}: {what}: {outcome:?}");
        }
        assert_eq!(scene.outside(), before, "{mode}");
        assert!(!Path::new("/usr/backstitch-test").exists());
    }
}

#[tokio::test]
async fn writes_inside_of_the_workspace_work() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let work = "set -e; mkdir -p a/b; echo one > a/one; mv a/one a/b/two; ln a/b/two hard; ln -s a soft; \
        mkfifo pipe; truncate -s 1 hard; rm pipe; rm -r a/b; echo x > \"$TMPDIR/x\"; mv \"$TMPDIR/x\" from-tmp; \
        mv from-tmp \"$TMPDIR/y\"; echo > /dev/null; echo to-stderr > /dev/stderr; : > /dev/shm/backstitch-$$; \
        rm /dev/shm/backstitch-$$; cat $BASE/outside/file; ls $HOME > /dev/null; mktemp > /dev/null; echo done";
    for sandbox in [Sandbox::workspace(), Sandbox::workspace().without_network()] {
        let outcome = scene.run(scene.shell(&sandbox, work)).await;
        assert!(outcome.success(), "{outcome:?}");
        assert_eq!(outcome.stdout.text(), "keptdone\n");
        assert_eq!(outcome.refused, []);
        fs::remove_file(scene.at("files/hard")).unwrap();
        fs::remove_file(scene.at("files/soft")).unwrap();
    }
    let outcome = scene.run(scene.shell(&Sandbox::read_only(), "echo x > inside")).await;
    assert!(!outcome.success());
    let outcome = scene.run(scene.shell(&Sandbox::read_only(), "echo x > \"$TMPDIR/x\"; cat inside")).await;
    assert_eq!(outcome.stdout.text(), "inside");
}

/// Landlock has no right for metadata, as `docs/security.md` says.
#[tokio::test]
async fn changes_of_metadata_outside_are_not_refused() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let command = "chmod 600 $BASE/outside/file && touch -d 2001-01-01T00:00:00Z $BASE/outside/file";
    let outcome = scene.run(scene.shell(&Sandbox::workspace(), command)).await;
    assert!(outcome.success(), "{outcome:?}");
    let found = fs::metadata(scene.at("outside/file")).unwrap();
    assert_eq!((found.mode() & 0o777, found.mtime()), (0o600, 978_307_200));
}

#[tokio::test]
async fn further_paths_can_be_allowed() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let sandbox = Sandbox::workspace().write(scene.at("outside")).write(scene.at("home/.profile"));
    let sandbox = sandbox.write(scene.at("home/.cache"));
    let command = "set -e; echo new > $BASE/outside/new; mv $BASE/outside/new here; echo more >> ~/.profile";
    let outcome = scene.run(scene.shell(&sandbox, command)).await;
    assert!(outcome.success(), "{outcome:?}");
    assert_eq!(fs::read_to_string(scene.at("home/.profile")).unwrap(), "minemore\n");
    // A path that does not exist cannot be allowed, and that is said.
    let outcome = scene.run(scene.shell(&sandbox, "mkdir ~/.cache")).await;
    assert_eq!(outcome.refused, [SandboxRefusal::Missing(scene.at("home/.cache"))], "{outcome:?}");
    // The file may be written, but its directory may not.
    let outcome = scene.run(scene.shell(&sandbox, "rm ~/.profile")).await;
    assert_eq!(outcome.refused, [SandboxRefusal::Unnamed], "{outcome:?}");
    assert!(!outcome.success() && scene.at("home/.profile").exists());
}

#[tokio::test]
async fn refused_paths_are_named_with_the_setting_that_allows_them() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let outcome = scene.run(scene.shell(&Sandbox::workspace(), "echo x > $BASE/outside/new")).await;
    assert_eq!(outcome.refused, [SandboxRefusal::Write(scene.at("outside/new"))], "{outcome:?}");
    let text = outcome.refused[0].to_string();
    assert!(text.contains("outside/new") && text.contains("`write` in `[sandbox]`"), "{text}");
    let outcome = scene.run(scene.shell(&Sandbox::workspace(), "echo x > link")).await;
    assert_eq!(outcome.refused, [SandboxRefusal::Write(scene.at("outside/file"))], "{outcome:?}");
    // A program that does not say what it could not write.
    let outcome = scene
        .run(scene.shell(
            &Sandbox::workspace(),
            "echo x 2> /dev/null > $BASE/outside/new || { echo Permission denied; exit 1; }",
        ))
        .await;
    assert_eq!(outcome.refused, [SandboxRefusal::Unnamed], "{outcome:?}");
    let outcome = scene.run(scene.shell(&Sandbox::off(), "echo x > $BASE/outside/new")).await;
    assert!(outcome.success() && outcome.refused.is_empty());
}

#[tokio::test]
async fn a_store_is_never_writable() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    for path in [scene.at(""), scene.at("store"), scene.at("store/workspaces"), PathBuf::from("/")] {
        let sandbox = Sandbox::workspace().write(&path);
        let error = scene.run_all(vec![scene.shell(&sandbox, "true")]).await.remove(0).unwrap_err();
        assert!(error.contains("holds the store"), "{}: {error}", path.display());
    }
}

/// Opens a socket of each family, and prints which of them it got.
const SOCKETS: &str = r#"
import ctypes, os, socket, sys
def attempt(name, work):
    try:
        work()
        print(name, "open")
    except OSError as error:
        print(name, "refused" if error.errno == 1 else error.errno)
families = {"inet": 2, "inet6": 10, "unix": 1, "netlink": 16, "packet": 17, "vsock": 40, "alg": 38, "bluetooth": 31}
for name, family in families.items():
    kinds = [socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_SEQPACKET]
    for kind in kinds:
        attempt(f"{name}-{int(kind)}", lambda: socket.socket(family, kind).close())
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")
attempt("connect", lambda: call(NUMBERS[1], 0, 0, 0))
attempt("bind", lambda: call(NUMBERS[2], 0, 0, 0))
for name, number in {"setup": 425, "enter": 426, "register": 427}.items():
    attempt(name, lambda: call(number, 0, 0, 0, 0, 0, 0))
if os.uname().machine == "x86_64":
    for name, number in {"socket": 41, "connect": 42, "bind": 49, "setup": 425}.items():
        attempt(f"x32-{name}", lambda: call(number | 0x40000000, 2, 1, 0))
one, other = socket.socketpair()
one.send(b"pair")
print(other.recv(4).decode())
"#;

#[tokio::test]
async fn each_family_of_sockets_is_refused_without_a_network() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    let numbers =
        if cfg!(target_arch = "x86_64") { "NUMBERS = [41, 42, 49]" } else { "NUMBERS = [198, 203, 200]" };
    fs::write(scene.at("files/sockets.py"), format!("{numbers}\n{SOCKETS}")).unwrap();
    let sandbox = Sandbox::workspace().without_network();
    let spec = ProcessSpec::new("python3").arg("sockets.py");
    let refused = scene.run(spec.clone().sandbox(sandbox)).await;
    assert!(refused.success(), "{refused:?}");
    let text = refused.stdout.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.last(), Some(&"pair"));
    let confines_sockets = probe().landlock >= 9;
    for line in &lines[..lines.len() - 1] {
        let is_local = line.starts_with("unix") || line.contains("connect") || line.contains("bind");
        assert!(line.ends_with(" refused") || confines_sockets && is_local, "{line}");
    }
    assert!(lines.len() > 35, "{text}");
    let open = scene.run(spec.sandbox(Sandbox::workspace().sockets(SandboxSockets::On))).await;
    let text = open.stdout.text();
    for line in ["inet-1 open", "inet-2 open", "unix-1 open", "netlink-3 open"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_refused_network_is_named() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let program = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
    let spec = ProcessSpec::new("python3").arg("-c").arg(program);
    let open = scene.run(spec.clone().sandbox(Sandbox::workspace())).await;
    assert!(open.success(), "{open:?}");
    let refused = scene.run(spec.sandbox(Sandbox::workspace().without_network())).await;
    assert!(!refused.success());
    assert_eq!(refused.refused, [SandboxRefusal::Network], "{refused:?}");
}

#[tokio::test]
async fn a_confined_process_reaches_no_process_outside() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let mut other =
        std::process::Command::new("sleep").arg("1000").env("SECRET_WORD", "velvet").spawn().unwrap();
    let (own, id) = (std::process::id(), other.id());
    let is_reached = probe().landlock < 6 && !has_namespaces();
    let rows = [
        (format!("tr '\\0' '\\n' < /proc/{id}/environ | grep velvet"), false),
        (format!("tr '\\0' '\\n' < /proc/{own}/environ | grep ="), false),
        (format!("kill -0 {id}"), is_reached),
        (format!("kill -9 {id}"), is_reached),
        ("sleep 1000 & kill -9 $!".to_owned(), true),
    ];
    for (command, works) in rows {
        let outcome = scene.run(scene.shell(&Sandbox::workspace(), &command)).await;
        assert_eq!(outcome.success(), works, "{command}: {outcome:?}");
        assert!(!outcome.stdout.text().contains("velvet"));
    }
    assert!(other.try_wait().unwrap().is_none() || is_reached);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn a_process_of_the_superuser_loses_what_reaches_past_the_files() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let outcome = scene
        .run(scene.shell(&Sandbox::workspace(), "grep -E '^(CapPrm|CapEff|NoNewPrivs)' /proc/self/status"))
        .await;
    let text = outcome.stdout.text();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap()
    };
    // Kernel code, raw devices, tracing, mounts, restarts, the clock, device nodes.
    let refused = [16, 17, 19, 21, 22, 25, 27].iter().fold(0, |all, bit| all | 1 << bit);
    assert_eq!(
        (value("CapPrm") & refused, value("CapEff") & refused, value("NoNewPrivs")),
        (0, 0, 1),
        "{text}"
    );
}

#[tokio::test]
async fn the_rest_of_this_process_stays_free() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let sandbox = Sandbox::read_only().without_network();
    let confined = scene.run(scene.shell(&sandbox, "echo x > $BASE/outside/new")).await;
    assert!(!confined.success());
    fs::write(scene.at("outside/new"), "by the runtime").unwrap();
    std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = scene.run(scene.shell(&Sandbox::off(), "echo x > $BASE/outside/new")).await;
    assert!(free.success(), "{free:?}");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    assert!(status.contains("NoNewPrivs:\t0") && status.contains("Seccomp:\t0"), "{status}");
}

#[tokio::test]
async fn the_temporary_directory_is_private_and_removed_after_the_call() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let first = "echo $TMPDIR; stat -c %a $TMPDIR; mkdir $TMPDIR/locked; echo x > $TMPDIR/locked/x; chmod 500 $TMPDIR/locked";
    let specs = vec![
        scene.shell(&Sandbox::workspace(), first),
        scene.shell(&Sandbox::workspace(), "cat $TMPDIR/locked/x"),
        scene.shell(&Sandbox::workspace(), "echo $TMPDIR").env("TMPDIR", "/elsewhere"),
        scene.shell(
            &Sandbox::workspace(),
            "setsid sh -c 'while :; do mkdir -p $TMPDIR/again; done' > /dev/null 2>&1 &",
        ),
    ];
    let outcomes: Vec<_> = scene.run_all(specs).await.into_iter().map(Result::unwrap).collect();
    let text = outcomes[0].stdout.text();
    let (directory, mode) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(directory.contains("backstitch-"));
    assert_eq!(outcomes[1].stdout.text(), "x\n", "all processes of a call share it");
    assert_eq!(outcomes[2].stdout.text(), "/elsewhere\n");
    assert!(!Path::new(directory).exists());
}

#[tokio::test]
async fn a_store_in_the_workspace_is_noted_once() {
    if is_unsupported() {
        return;
    }
    let disk = Disk::with(|options| options.store_directory = options.root.join(".backstitch"));
    let tool = Tool::builder("run", "Runs.").unwrap().handler(|context: ToolContext, (): ()| async move {
        context.run_process(ProcessSpec::new("true").sandbox(Sandbox::workspace())).await?;
        Ok(ToolResult::ok("ran"))
    });
    let harness = disk.harness(vec![tool]).await;
    harness.run("run", json!({})).await;
    harness.run("run", json!({})).await;
    let records = harness.records().await;
    let gaps: Vec<_> = records.iter().filter_map(|record| SandboxGap::of(&record.body)).collect();
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].text.contains("because it lies in the workspace"), "{gaps:?}");
}

/// Ways to the content of a hidden file, each of which must fail.
const READS: &[(&str, &str)] = &[
    ("directly", "cat $HOME/.ssh/id"),
    ("through a link", "ln -sf $HOME/.ssh/id key && cat key"),
    ("through a link to its directory", "ln -sfn $HOME/.ssh keys && cat keys/id"),
    ("through the root of the process", "cat /proc/self/root$HOME/.ssh/id"),
    ("from its directory", "cd $HOME/.ssh && cat id"),
    ("by a hard link", "ln $HOME/.ssh/id hard && cat hard"),
    ("by a move", "mv $HOME/.ssh/id moved && cat moved"),
    ("by a copy", "cp -r $HOME/.ssh copied && cat copied/id"),
    ("beside what can be written", "cat $HOME/.cargo/credentials.toml"),
    (
        "moved beside what can be written",
        "mv $HOME/.cargo/credentials.toml $HOME/.cargo/plain; cat $HOME/.cargo/plain",
    ),
    (
        "moved into what can be written",
        "mv $HOME/.cargo/credentials.toml $HOME/.cargo/registry/plain; cat $HOME/.cargo/registry/plain",
    ),
    ("as a linked target", "cat $HOME/keys/deploy"),
];

#[tokio::test]
async fn places_of_secrets_cannot_be_read_and_the_rest_can() {
    if is_unsupported() {
        return;
    }
    let secret = "3f9c-not-for-models";
    for base in [Sandbox::workspace(), Sandbox::read_only().without_network()] {
        let scene = Scene::new().await;
        for (name, text) in [
            ("home/.ssh/id", secret),
            ("home/.cargo/credentials.toml", secret),
            ("home/.cargo/registry/index", "index"),
            ("home/keys/deploy", secret),
            ("home/notes", "plain"),
            ("files/.env", "own"),
        ] {
            fs::create_dir_all(scene.at(name).parent().unwrap()).unwrap();
            fs::write(scene.at(name), text).unwrap();
        }
        symlink(scene.at("home/keys/deploy"), scene.at("home/.ssh/deploy")).unwrap();
        let mut sandbox = base.write(scene.at("home/.cargo"));
        hide_secrets(&mut sandbox, Some(&scene.at("home")));
        resolve_writable(&mut sandbox);
        let specs = READS.iter().map(|(_, command)| scene.shell(&sandbox, command)).collect();
        for ((what, _), outcome) in READS.iter().zip(scene.run_all(specs).await) {
            let outcome = outcome.unwrap();
            assert!(!outcome.stdout.text().contains(secret), "{what}: {outcome:?}");
            assert_ne!(outcome.exit, ProcessExit::Code(0), "{what}: {outcome:?}");
        }
        let refused = scene.run(scene.shell(&sandbox, "cat $HOME/.ssh/id")).await.refused;
        assert_eq!(refused, [SandboxRefusal::Read(scene.at("home/.ssh/id"))]);
        let open = "cat $HOME/notes .env $HOME/.cargo/registry/index && ls $HOME/.ssh && echo x > $TMPDIR/a && \
                    cat $TMPDIR/a && echo more > $HOME/.cargo/registry/index && cat /etc/passwd > /dev/null";
        let outcome = scene.run(scene.shell(&sandbox, open)).await;
        assert_eq!(outcome.exit, ProcessExit::Code(0), "{outcome:?}");
        assert!(outcome.stdout.text().contains("plainown"), "{outcome:?}");
        assert_eq!(fs::read_to_string(scene.at("home/.ssh/id")).unwrap(), secret);
    }
}

#[tokio::test]
async fn a_workspace_inside_of_a_hidden_place_can_be_read() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let sandbox = Sandbox::workspace().hide(scene.at("")).hide(scene.at("files/inside"));
    let outcome = scene.run(scene.shell(&sandbox, "cat inside && echo y > new && cat new")).await;
    assert_eq!((outcome.exit, &*outcome.stdout.text()), (ProcessExit::Code(0), "insidey\n"), "{outcome:?}");
    let refused = scene.run(scene.shell(&sandbox, "cat $BASE/outside/file")).await;
    assert_ne!(refused.exit, ProcessExit::Code(0), "{refused:?}");
}

#[tokio::test]
async fn limits_without_a_mode_are_refused() {
    let disk = Disk::new();
    let tool = Tool::builder("run", "Runs.").unwrap().handler(|context: ToolContext, (): ()| async move {
        let sandbox = Sandbox { network: false, ..Sandbox::off() };
        let error = context.run_process(ProcessSpec::new("true").sandbox(sandbox)).await.unwrap_err();
        Ok(ToolResult::ok(error.to_string()))
    });
    let end = disk.harness(vec![tool]).await.run("run", json!({})).await;
    assert!(format!("{end:?}").contains("`network` has no effect"), "{end:?}");
}

/// A small project of each kind is built and run, with its caches allowed.
#[tokio::test]
async fn builds_of_real_projects_work() {
    if is_unsupported() {
        return;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let sandbox = Sandbox::workspace().without_network();
    let scene = Scene::new().await;
    let long = Duration::from_secs(240);
    if has_program("cargo") {
        fs::create_dir_all(scene.at("files/rust/src")).unwrap();
        let manifest = "[package]\nname = \"hem\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
        fs::write(scene.at("files/rust/Cargo.toml"), manifest).unwrap();
        fs::write(scene.at("files/rust/src/main.rs"), "fn main() { println!(\"sewn\"); }").unwrap();
        let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
        let spec = ProcessSpec::shell("cd rust && cargo run --offline --quiet").timeout(long);
        let spec = spec.without_env("CARGO_TARGET_DIR").sandbox(sandbox.clone().write(cargo));
        let outcome = scene.run(spec).await;
        assert_eq!((outcome.exit, &*outcome.stdout.text()), (ProcessExit::Code(0), "sewn\n"), "{outcome:?}");
    }
    if has_program("python3") {
        fs::create_dir_all(scene.at("files/python/hem")).unwrap();
        fs::write(scene.at("files/python/hem/__init__.py"), "def sew():\n    return 'sewn'\n").unwrap();
        let test = "import tempfile, unittest, hem\nclass Seams(unittest.TestCase):\n    def test(self):\n        \
            with tempfile.NamedTemporaryFile() as file:\n            self.assertEqual(hem.sew(), 'sewn')\n";
        fs::write(scene.at("files/python/test_hem.py"), test).unwrap();
        let spec = ProcessSpec::shell("cd python && python3 -m compileall -q hem && python3 -m unittest -q");
        let outcome = scene.run(spec.timeout(long).sandbox(sandbox.clone())).await;
        assert!(outcome.success(), "{outcome:?}");
        assert!(scene.at("files/python/hem/__pycache__").exists());
    }
    if has_program("node") && has_program("npm") {
        fs::create_dir_all(scene.at("files/node")).unwrap();
        let package = r#"{"name": "hem", "version": "1.0.0", "scripts": {"build": "node build.js"}}"#;
        fs::write(scene.at("files/node/package.json"), package).unwrap();
        let build = "const fs = require('fs'), os = require('os'), child = require('child_process');\n\
            fs.mkdtempSync(os.tmpdir() + '/hem-');\nfs.writeFileSync('out.txt', child.execSync('echo sewn'));\n";
        fs::write(scene.at("files/node/build.js"), build).unwrap();
        let cache = home.join(".npm");
        let spec = ProcessSpec::shell("cd node && npm run --silent build && npm install --offline --silent");
        let outcome = scene.run(spec.timeout(long).sandbox(sandbox.write(cache))).await;
        assert!(outcome.success(), "{outcome:?}");
        assert_eq!(fs::read_to_string(scene.at("files/node/out.txt")).unwrap(), "sewn\n");
    }
}

/// Runs all tests of the sandbox again, in a process of this or another user.
fn run_again(mut command: std::process::Command) {
    command.args(["sandbox::", "escape::confined::", "--skip", "builds_of_real_projects_work"]);
    command.args(["--skip", "sandbox::all_of_it_holds", "--test-threads=2"]);
    let output = command.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}

/// Root may do what others may not: the same tests run as an ordinary user.
#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    let Some(user) = OrdinaryUser::new() else { return };
    let mut command = std::process::Command::new(user.tests());
    user.run(&mut command);
    run_again(command);
}

/// A library may have no supervisor. Then its commands have no namespaces either.
#[test]
fn all_of_it_holds_without_a_supervisor() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.env(SUPERVISOR, "");
    run_again(command);
}
