//! Work inside of namespaces: a command sees itself and its processes as it would outside, and ends as it would.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use backstitch_core::ports::{ProcessExit, ProcessSpec, Sandbox};
use backstitch_runtime::{has_namespaces, has_supervisor};
use rustix::process::{Pid, Signal, kill_process};

use super::attempt;
use crate::escape::processes::{Scene as HeldScene, script};
use crate::escape::{Hold, aside, await_that, name_supervisor, run_as_ordinary_user, run_without_namespaces};
use crate::sandbox::{Scene, has_program, is_unsupported};

/// Commands, with how they end and what they print.
fn commands() -> Vec<(&'static str, ProcessExit, &'static str)> {
    use ProcessExit::{Code, Signal};

    vec![
        ("true", Code(0), ""),
        ("exit 3", Code(3), ""),
        ("exit 255", Code(255), ""),
        ("kill -TERM $$; sleep 100", Signal(15), ""),
        ("kill -KILL $$; sleep 100", Signal(9), ""),
        ("kill -HUP 0; sleep 100", Signal(1), ""),
        ("kill -SEGV $$; sleep 100", Signal(11), ""),
        ("trap 'echo caught; exit 4' TERM; kill -TERM $$; sleep 100", Code(4), "caught\n"),
        ("trap 'echo caught' TERM; sh -c 'kill -TERM $PPID'; echo after", Code(0), "caught\nafter\n"),
        ("sleep 1000 & kill $!; wait $!; echo $?", Code(0), "143\n"),
        ("sh -c 'exit 7' & wait $!; echo $?", Code(0), "7\n"),
        ("true & false & wait; echo all", Code(0), "all\n"),
        ("sleep 1000 & kill -STOP $!; kill -CONT $!; kill $!; wait $!; echo $?", Code(0), "143\n"),
        ("[ \"$(readlink /proc/self | wc -l)\" = 1 ] && [ -d /proc/$$ ] && echo seen", Code(0), "seen\n"),
        ("sh -c '[ $PPID = '$$' ] && echo child; :'", Code(0), "child\n"),
        ("echo a | (cat; cat /dev/null) | tr a b", Code(0), "b\n"),
    ]
}

/// Commands that look at the first process, or at all processes.
fn commands_inside() -> Vec<(&'static str, ProcessExit, &'static str)> {
    use ProcessExit::Code;

    vec![
        // The first process cannot be killed.
        ("kill -KILL 1; kill -STOP 1; kill -TERM 1; echo alive", Code(0), "alive\n"),
        // An orphan is reaped.
        (
            "(sh -c : &); i=0; while [ $i -lt 1000 ]; do grep -q ') Z' /proc/[0-9]*/stat || { echo reaped; break; }; \
             i=$((i + 1)); sleep 0.01; done",
            Code(0),
            "reaped\n",
        ),
    ]
}

/// How often a filter may be too late.
const ROUNDS: usize = 3;

/// Runs a shell that ends before its last filter, until the output of the filter came in time. On a busy machine, the filter may
/// not run at all within the time that it has.
async fn await_output_of_filter(scene: &Scene, sandbox: &Sandbox) {
    for _ in 0..ROUNDS {
        let outcome = scene.run(scene.shell(sandbox, "echo early; (echo late) &")).await;
        assert_eq!(outcome.exit, ProcessExit::Code(0), "{outcome:?}");
        let output = outcome.stdout.text();
        if output == "early\nlate\n" {
            return;
        }
        assert_eq!(output, "early\n", "{outcome:?}");
    }
    panic!("the output of a filter was lost {ROUNDS} times");
}

#[tokio::test]
async fn commands_end_as_they_would_outside() {
    name_supervisor();
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    for sandbox in [Sandbox::off(), Sandbox::workspace(), Sandbox::read_only().without_network()] {
        let inside = if sandbox.is_off() || !has_namespaces() { Vec::new() } else { commands_inside() };
        for (command, exit, output) in commands().into_iter().chain(inside) {
            let outcome = scene.run(scene.shell(&sandbox, command)).await;
            assert_eq!((outcome.exit, &*outcome.stdout.text()), (exit, output), "{command}: {outcome:?}");
        }
        await_output_of_filter(&scene, &sandbox).await;
        // A script without a first line, a program that does not exist any more, and a time limit.
        fs::write(scene.at("files/plain"), "echo plain\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(scene.at("files/plain"), mode).unwrap();
        let outcome = scene.run(ProcessSpec::new("./plain").sandbox(sandbox.clone())).await;
        assert_eq!(outcome.stdout.text(), "plain\n", "{outcome:?}");
        fs::write(scene.at("files/broken"), "#!/nonexistent\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(scene.at("files/broken"), mode).unwrap();
        let broken = ProcessSpec::new("./broken").sandbox(sandbox.clone());
        match scene.run_all(vec![broken]).await.remove(0) {
            Err(error) => assert!(error.contains("could not be started"), "{error}"),
            // Without a supervisor, a shell starts it.
            Ok(outcome) => assert!(!outcome.success() && !has_supervisor(), "{outcome:?}"),
        }
        let long = scene.shell(&sandbox, "sleep 1000").timeout(Duration::from_millis(300));
        assert_eq!(scene.run(long).await.exit, ProcessExit::TimedOut);
    }
}

#[test]
fn commands_of_an_ordinary_user_end_as_they_would_outside() {
    run_as_ordinary_user("escape::confined::namespaces::commands_end_as_they_would_outside");
}

#[test]
fn commands_without_namespaces_end_the_same_way() {
    run_without_namespaces("escape::confined::namespaces::commands_end_as_they_would_outside");
}

#[tokio::test]
async fn a_command_sees_its_own_processes_terminals_and_memory_only() {
    name_supervisor();
    if is_unsupported() || !has_program("python3") || !has_namespaces() {
        return;
    }
    let program = "
import multiprocessing, socket, subprocess
attempt('processes', lambda: sorted(int(name) for name in os.listdir('/proc') if name.isdigit()))
attempt('user', lambda: (os.getuid(), os.getgid()))
attempt('session', lambda: os.getsid(0) > 0)
attempt('shared memory', lambda: os.listdir('/dev/shm'))
attempt('semaphore', lambda: multiprocessing.Semaphore(1).acquire())
attempt('terminals', lambda: [name for name in os.listdir('/dev/pts') if name.isdigit()])
attempt('file', lambda: open('made', 'w').close())
";
    let scene = Scene::new().await;
    let results = attempt(&scene, &Sandbox::workspace(), program).await;
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    assert_eq!(results["processes"].split(',').count(), 2, "{results:?}");
    assert_eq!(results["user"], format!("({user}, {group})"));
    assert_eq!(results["session"], "True");
    assert_eq!((&*results["shared memory"], &*results["terminals"]), ("[]", "[]"));
    assert_eq!((&*results["semaphore"], &*results["file"]), ("True", "None"));
    let made = fs::metadata(scene.at("files/made")).unwrap();
    assert_eq!((made.uid(), made.gid()), (user.as_raw(), group.as_raw()));
    // A terminal of its own is the first one.
    let make = "
import pty
made = pty.openpty()
attempt('name', lambda: os.ttyname(made[1]))
attempt('through', lambda: (os.write(made[1], b'x'), os.read(made[0], 1).decode())[1])
";
    let results = attempt(&scene, &Sandbox::workspace().with_terminals(), make).await;
    assert_eq!((&*results["name"], &*results["through"]), ("/dev/pts/0", "x"));
    // What lies in the directory of shared memory, and is to be used, is there.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let sandbox = Sandbox::workspace().write(place.path());
    let command = format!("echo sewn > {}/file", place.path().display());
    let outcome = scene.run(scene.shell(&sandbox, &command)).await;
    assert!(outcome.success(), "{outcome:?}");
    assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "sewn\n");
}

#[test]
fn an_ordinary_user_sees_the_own_processes_only() {
    run_as_ordinary_user(
        "escape::confined::namespaces::a_command_sees_its_own_processes_terminals_and_memory_only",
    );
}

/// Kills the supervisor, and the first process, from outside. Nothing is left, without any search.
#[tokio::test]
async fn nothing_survives_the_supervisor_or_the_first_process() {
    name_supervisor();
    if is_unsupported() || !has_namespaces() {
        return;
    }
    for kills_supervisor in [true, false] {
        let held = HeldScene::new();
        let [_, sandbox] = held.sandboxes();
        let place = Hold::new(held.directory.path(), "place");
        let way = "(env -i setsid sh -c \"$HOLD\" > /dev/null 2>&1 < /dev/null &)";
        let command = format!(
            "echo $BACKSTITCH_GROUP > {}; {}",
            place.path.display(),
            script(&held.hold.path, way, "sleep 1000")
        );
        let sandbox = sandbox.write(&place.path);
        let (running, _) = held.start(sandbox, Duration::from_secs(300), &command).await;
        let supervisor = aside(move || {
            let mut text = Vec::new();
            await_that("the supervisor", || {
                place.read(&mut text);
                text.ends_with(b"\n")
            });
            String::from_utf8(text).unwrap().trim().parse().unwrap()
        })
        .await;
        held.await_holders(1).await;
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
        let first: i32 = children.trim().parse().unwrap();
        let killed = if kills_supervisor { supervisor } else { first };
        kill_process(Pid::from_raw(killed).unwrap(), Signal::KILL).unwrap();
        held.await_release("the end of the namespaces").await;
        drop(running.await.unwrap());
    }
}

#[test]
fn nothing_of_an_ordinary_user_survives_the_first_process() {
    run_as_ordinary_user(
        "escape::confined::namespaces::nothing_survives_the_supervisor_or_the_first_process",
    );
}
