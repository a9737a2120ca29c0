//! Processes of commands that try to outlive their call.

use std::fs::Permissions;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::RecordBody;
use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_runtime::{CallOutcome, ServerProcess, SystemClock, ToolRunner, Tools, fresh_ids, probe};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Hold, OrdinaryUser, aside, name_supervisor, run_as_ordinary_user, run_test, shell};
use crate::disk::Disk;

/// Commands that leave a holder of descriptor 9 behind. `$HOLD` is the holder as a script of the shell.
pub(super) const WAYS: &[&str] = &[
    "setsid sh -c \"$HOLD\" &",
    "(setsid sh -c '(setsid sh -c \"$HOLD\" &)' > /dev/null 2>&1 < /dev/null &)",
    // Without the mark of the call, and without any parent that has it.
    "(env -i setsid sh -c \"$HOLD\" > /dev/null 2>&1 < /dev/null &)",
    "(env -u BACKSTITCH_CALL -u BACKSTITCH_GROUP setsid sh -c \"$HOLD\" > /dev/null 2>&1 &)",
    "(BACKSTITCH_CALL=another BACKSTITCH_GROUP=1 setsid sh -c \"$HOLD\" > /dev/null 2>&1 &)",
    "(BACKSTITCH_GROUP=1 setsid nohup sh -c \"$HOLD\" > /dev/null 2>&1 &)",
    // Unreadable for other processes of its user, with an empty environment and another name.
    "(env -i perl -e 'if ($^O eq \"linux\") { syscall(`uname -m` =~ /x86/ ? 157 : 167, 4, 0, 0, 0, 0) } \
     $0 = \"[kworker]\"; exit if fork; use POSIX; POSIX::setsid(); exit if fork; \
     open(H, \">&=\", 9); syswrite(H, \"alive\\n\"); sleep 1 while 1' &)",
    // Holds the output open.
    "(env -i setsid sh -c \"$HOLD\" &)",
    // Ignores every signal that can be ignored.
    "(env -i setsid sh -c \"trap '' HUP INT QUIT TERM USR1 USR2 CHLD PIPE; $HOLD\" > /dev/null 2>&1 &)",
    // Says that it is a supervisor.
    "(setsid perl -e 'exec {\"/bin/sh\"} \"call-supervisor\", \"-c\", $ENV{HOLD}' > /dev/null 2>&1 &)",
    // Several, of which each starts the next one.
    "(env -i setsid sh -c \"(setsid sh -c '$HOLD' &) ; (setsid sh -c '$HOLD' &) ; $HOLD\" > /dev/null 2>&1 &)",
];

const HOLDER: &str = "echo alive >&9; while :; do sleep 1; done";

/// How long commands may take that end by themselves.
const LONG: Duration = Duration::from_secs(300);

/// Number of kills of the last test, and the variable that changes it.
const KILLS: usize = 20;
const KILLS_VARIABLE: &str = "BACKSTITCH_TEST_KILLS";

/// A named pipe that no process may hold in the end.
pub(super) struct Scene {
    pub(super) directory: TempDir,
    pub(super) hold: Arc<Hold>,
}

impl Scene {
    pub(super) fn new() -> Self {
        name_supervisor();
        let directory = tempfile::tempdir().unwrap();
        let hold = Arc::new(Hold::new(directory.path(), "hold"));
        Self { directory, hold }
    }

    /// The sandboxes of these tests, which let a process open what it holds.
    pub(super) fn sandboxes(&self) -> [Sandbox; 2] {
        [Sandbox::off(), Sandbox::workspace().without_network().write(&self.hold.path)]
    }

    /// The file for which [`script`] waits.
    pub(super) fn seen(&self) -> PathBuf {
        self.hold.path.with_file_name("seen")
    }

    /// Waits until holders run, and lets their script continue.
    pub(super) async fn await_holders(&self, count: usize) {
        let (hold, seen) = (self.hold.clone(), self.seen());
        aside(move || {
            hold.await_holders(count);
            std::fs::write(seen, "").unwrap();
        })
        .await;
    }

    /// Waits until nothing is held.
    pub(super) async fn await_release(&self, what: &str) {
        let (hold, what) = (self.hold.clone(), what.to_owned());
        aside(move || hold.await_release(&what)).await;
    }

    /// Starts a command in a call, in a workspace of its own.
    pub(super) async fn start(
        &self,
        sandbox: Sandbox,
        limit: Duration,
        command: &str,
    ) -> (JoinHandle<CallOutcome>, CancellationToken) {
        let _ = std::fs::remove_file(self.seen());
        let tool = shell(sandbox, limit);
        let disk = Disk::new();
        let harness = disk.harness(vec![tool.clone()]).await;
        let call = harness.call("shell", json!({"command": command})).await;
        let cancel = CancellationToken::new();
        let runner = ToolRunner::new(harness.live.clone(), Tools::new([tool]).unwrap());
        let runner = runner.with_cancellation(cancel.clone()).with_grace(LONG);
        let running = tokio::spawn(async move {
            let end = runner.run(call).await.unwrap();
            drop(disk);
            end
        });
        (running, cancel)
    }
}

/// A script that leaves holders behind, and continues when the test has seen them.
pub(super) fn script(hold: &Path, way: &str, then: &str) -> String {
    let seen = hold.with_file_name("seen");
    format!(
        "exec 9> {}; export HOLD='{HOLDER}'; {way}\nwhile [ ! -e {} ]; do sleep 0.01; done; {then}",
        hold.display(),
        seen.display()
    )
}

#[tokio::test]
async fn no_process_is_left_when_a_command_ends() {
    for way in WAYS {
        for then in ["true", "exit 3", "kill -KILL $$", "kill -KILL 0"] {
            let scene = Scene::new();
            for sandbox in scene.sandboxes() {
                let command = script(&scene.hold.path, way, then);
                let (running, _) = scene.start(sandbox, LONG, &command).await;
                scene.await_holders(1).await;
                let end = running.await.unwrap();
                assert_eq!(matches!(end, CallOutcome::Succeeded(_)), then == "true", "{way}: {end:?}");
                assert!(!scene.hold.is_held(), "{way} {then}");
            }
        }
    }
}

#[tokio::test]
async fn no_process_is_left_when_a_command_is_stopped_or_takes_too_long() {
    for way in WAYS {
        for then in ["sleep 1000", "kill -STOP 0"] {
            let scene = Scene::new();
            for sandbox in scene.sandboxes() {
                let command = script(&scene.hold.path, way, then);
                let (running, cancel) = scene.start(sandbox.clone(), LONG, &command).await;
                scene.await_holders(1).await;
                cancel.cancel();
                let end = running.await.unwrap();
                assert!(matches!(end, CallOutcome::Cancelled(_)), "{way}: {end:?}");
                assert!(!scene.hold.is_held(), "{way} {then}");
            }
            let [sandbox, _] = scene.sandboxes();
            let command = script(&scene.hold.path, way, then);
            let (running, _) = scene.start(sandbox, Duration::from_secs(1), &command).await;
            let end = running.await.unwrap();
            assert!(!matches!(end, CallOutcome::Succeeded(_)), "{way}: {end:?}");
            assert!(!scene.hold.is_held(), "{way} {then}");
        }
    }
}

#[test]
fn no_process_of_an_ordinary_user_is_left() {
    run_as_ordinary_user("escape::processes::no_process_is_left_when_a_command_ends");
    run_as_ordinary_user("escape::processes::no_process_is_left_when_a_command_is_stopped_or_takes_too_long");
}

/// Processes that start others faster than one can look at them: a crowd, and a chain of which each member starts the next one in a new
/// session and ends.
#[tokio::test]
async fn a_storm_of_processes_ends() {
    let storms = [
        (
            60,
            "i=0; while [ $i -lt 60 ]; do (env -i setsid sh -c \"$HOLD\" > /dev/null 2>&1 &); i=$((i + 1)); done",
        ),
        (
            1,
            "(env -i perl -e 'use POSIX; open(H, \">&=\", 9); syswrite(H, \"alive\\n\"); \
             for (1 .. 1000000) { exit if fork; POSIX::setsid() }' > /dev/null 2>&1 &)",
        ),
        (
            1,
            "(env -i perl -e 'use POSIX; open(H, \">&=\", 9); syswrite(H, \"alive\\n\"); \
             for (1 .. 1000000) { exit if fork && $_ % 3; select(undef, undef, undef, 0.001) }' > /dev/null 2>&1 &)",
        ),
    ];
    for (holders, storm) in storms {
        let scene = Scene::new();
        for sandbox in scene.sandboxes() {
            let (running, _) = scene.start(sandbox, LONG, &script(&scene.hold.path, storm, "true")).await;
            scene.await_holders(holders).await;
            let end = running.await.unwrap();
            assert!(matches!(end, CallOutcome::Succeeded(_)), "{storm}: {end:?}");
            assert!(!scene.hold.is_held(), "{storm}");
        }
    }
}

/// Only a process outside of a sandbox can signal its supervisor.
#[tokio::test]
async fn a_supervisor_that_is_stopped_or_killed_leaves_no_marked_process() {
    for (signal, way) in [("STOP", WAYS[2]), ("KILL", WAYS[0]), ("KILL", WAYS[1]), ("TERM", WAYS[0])] {
        let scene = Scene::new();
        let [sandbox, confined] = scene.sandboxes();
        let then = format!("kill -{signal} $BACKSTITCH_GROUP; sleep 1000");
        let (running, cancel) = scene.start(sandbox, LONG, &script(&scene.hold.path, way, &then)).await;
        scene.await_holders(1).await;
        if signal == "STOP" {
            cancel.cancel();
        }
        let end = running.await.unwrap();
        assert!(!matches!(end, CallOutcome::Succeeded(_)), "{signal}: {end:?}");
        assert!(!scene.hold.is_held(), "{signal} {way}");

        let then = format!("kill -{signal} $BACKSTITCH_GROUP && exit 1; exit 0");
        let (running, _) = scene.start(confined, LONG, &script(&scene.hold.path, way, &then)).await;
        scene.await_holders(1).await;
        let end = running.await.unwrap();
        let is_refused = probe().landlock >= 6;
        assert!(matches!(end, CallOutcome::Succeeded(_)) || !is_refused, "{signal}: {end:?}");
        assert!(!scene.hold.is_held(), "{signal} {way}");
    }
}

/// Not a test: the runtime that the next test starts and kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn a_runtime_that_is_going_to_be_killed() {
    let Some(hold) = std::env::var_os("BACKSTITCH_TEST_HOLD").map(PathBuf::from) else { return };
    // The scripts wait for nobody.
    std::fs::write(hold.with_file_name("seen"), "").unwrap();
    name_supervisor();
    for (number, way) in WAYS.iter().enumerate().cycle() {
        let sandbox = if number % 2 == 0 {
            Sandbox::off()
        } else {
            Sandbox::workspace().without_network().write(&hold)
        };
        let server = ProcessSpec::shell(script(&hold, way, "")).without_files().sandbox(sandbox.clone());
        let server =
            ServerProcess::start(server, None, fresh_ids(Arc::new(SystemClock::default())).unwrap().next())
                .await
                .unwrap();
        let disk = Disk::new();
        let harness = disk.harness(vec![shell(sandbox, LONG)]).await;
        let command = script(&hold, way, "touch outcome; sleep 0.01");
        harness.run("shell", json!({"command": command})).await;
        drop(server);
    }
}

/// The descriptor 7 is open in the runtime, and so in its supervisors until they end, but not in what they start.
#[test]
fn no_process_is_left_when_the_runtime_is_killed() {
    let kills = std::env::var(KILLS_VARIABLE).ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let user = OrdinaryUser::new();
    let test = "escape::processes::a_runtime_that_is_going_to_be_killed";
    let seed = RandomState::new().build_hasher().finish();
    let mut random = seed;
    let mut held = 0;
    for number in 0..kills {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let hold = Hold::new(directory.path(), "hold");
        let guard = Hold::new(directory.path(), "guard");
        let user = user.as_ref().filter(|_| number % 2 == 0);
        let tests = user.map_or_else(|| std::env::current_exe().unwrap(), OrdinaryUser::tests);
        let mut runtime = Command::new("/bin/sh");
        runtime.args(["-c", "exec 7> \"$0\"; exec \"$@\""]).arg(&guard.path).arg(tests);
        runtime.args(["--exact", test, "--ignored"]).env("TMPDIR", directory.path());
        runtime.env("BACKSTITCH_TEST_HOLD", &hold.path).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(user) = user {
            user.run(&mut runtime);
        }
        let mut runtime = runtime.spawn().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Half of them are killed at any time, the others once a process has escaped.
        if number % 4 < 2 {
            hold.await_holders(1 + (random >> 33) as usize % 3);
        }
        std::thread::sleep(Duration::from_millis((random >> 40) % 200));
        runtime.kill().unwrap();
        runtime.wait().unwrap();
        held += usize::from(hold.is_held());
        guard.await_release("the end of the supervisors");
        assert!(!hold.is_held(), "a process is left after kill {number} of {kills}, seed {seed}");
    }
    assert!(held > 0 || kills < KILLS, "no process ran when its runtime was killed");
}

/// Returns how many notes of a new session, in which two commands run, are about its supervisor.
async fn notes_about_supervisor() -> usize {
    let disk = Disk::new();
    let harness = disk.harness(vec![shell(Sandbox::off(), LONG)]).await;
    harness.run("shell", json!({"command": "true"})).await;
    harness.run("shell", json!({"command": "true"})).await;
    let is_noted = |body: &RecordBody| matches!(body, RecordBody::Note(note) if note.topic == "processes");
    harness.records().await.iter().filter(|record| is_noted(&record.body)).count()
}

/// Not a test: it needs a process in which nothing has named a supervisor.
#[tokio::test]
#[ignore = "started by another test"]
async fn a_session_without_a_supervisor_says_so_once() {
    assert_eq!(notes_about_supervisor().await, 1);
    name_supervisor();
    assert_eq!(notes_about_supervisor().await, 0);
}

#[test]
fn a_missing_supervisor_is_noted() {
    run_test("escape::processes::a_session_without_a_supervisor_says_so_once", None, &[]);
}
