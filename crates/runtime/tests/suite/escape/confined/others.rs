//! Processes, shared memory and terminals of others: out of sight in namespaces, and partly open without them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use backstitch_core::ports::Sandbox;
use backstitch_runtime::has_namespaces;
use serde_json::Value;

use super::{PRELUDE, attempt, confined};
use crate::escape::{name_supervisor, run_as_ordinary_user, run_without_namespaces};
use crate::sandbox::{Scene, has_program, is_unsupported};

/// A program of the person, which shares what programs can share. It prints what it shares, and its state for each line of its
/// input.
const PERSON: &str = r#"
import json
CREATE = 0o1666
libc.shmat.restype = ctypes.c_void_p
key = 0x4b000000 | os.getpid()
name = f"backstitch-test-{os.getpid()}"
def keep():
    with open("/dev/shm/" + name, "w") as file:
        file.write("kept")
shared = {
    "PID": os.getpid(), "KEY": key, "NAME": name, "MEMORY": libc.shmget(key, 4096, CREATE),
    "QUEUE": libc.msgget(key, CREATE), "SEMAPHORE": libc.semget(key, 1, CREATE),
    "NAMED_QUEUE": libc.mq_open(("/" + name).encode(), os.O_CREAT | os.O_RDWR, 0o666, None),
    "SECRET": libc.syscall(ctypes.c_long(number("add_key")), b"user", name.encode(), b"kept", ctypes.c_long(4), ctypes.c_long(-4)),
}
place = libc.shmat(shared["MEMORY"], None, 0)
ctypes.memmove(place, b"kept", 4)
keep()
print(json.dumps(shared), flush=True)
for line in sys.stdin:
    message = ctypes.create_string_buffer(16)
    print(json.dumps({
        "memory": ctypes.string_at(place, 4).decode(), "named memory": open("/dev/shm/" + name).read(),
        "queue": libc.msgrcv(shared["QUEUE"], message, ctypes.c_long(1), ctypes.c_long(0), 0o4000),
        "semaphore": libc.semctl(shared["SEMAPHORE"], 0, 12),
        "processors": len(os.sched_getaffinity(0)), "scheduler": os.sched_getscheduler(0),
        "priority": os.getpriority(os.PRIO_PROCESS, 0), "disk priority": call("ioprio_get", 1, 0),
    }), flush=True)
libc.shmctl(shared["MEMORY"], 0, None)
libc.msgctl(shared["QUEUE"], 0, None)
libc.semctl(shared["SEMAPHORE"], 0, 0)
libc.mq_unlink(("/" + name).encode())
os.unlink("/dev/shm/" + name)
"#;

/// Tries to reach what the person shares. Prints `reached` for each success.
const REACH: &str = r#"
import resource
libc.shmat.restype = ctypes.c_void_p
def reach(name, work):
    attempt(name, lambda: (work(), "reached")[1])
def found(value):
    if value in (-1, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "")
    return value
def written(path):
    with open(path, "r+") as file:
        file.write("lost")
reach("signal", lambda: os.kill(PID, 0))
reach("group", lambda: os.getpgid(PID))
reach("processors", lambda: os.sched_setaffinity(PID, {min(os.sched_getaffinity(0))}))
reach("scheduler", lambda: os.sched_setscheduler(PID, os.SCHED_BATCH, os.sched_param(0)))
reach("priority", lambda: os.setpriority(os.PRIO_PROCESS, PID, 7))
reach("disk priority", lambda: call("ioprio_set", 1, PID, 3 << 13))
reach("limits", lambda: resource.prlimit(PID, resource.RLIMIT_NOFILE, (9, 9)))
reach("handle", lambda: os.pidfd_open(PID))
reach("status", lambda: open(f"/proc/{PID}/stat").read())
reach("environment", lambda: open(f"/proc/{PID}/environ").read())
reach("memory by key", lambda: found(libc.shmget(KEY, 0, 0)))
reach("memory", lambda: ctypes.memmove(found(libc.shmat(MEMORY, None, 0)), b"lost", 4))
reach("queue by key", lambda: found(libc.msgget(KEY, 0)))
reach("queue", lambda: found(libc.msgsnd(QUEUE, (ctypes.c_long * 2)(1, 1), ctypes.c_long(1), 0o4000)))
reach("semaphore by key", lambda: found(libc.semget(KEY, 1, 0)))
reach("semaphore", lambda: found(libc.semctl(SEMAPHORE, 0, 16, 5)))
reach("named memory", lambda: written("/dev/shm/" + NAME))
reach("named queue", lambda: found(libc.mq_open(("/" + NAME).encode(), os.O_RDWR, 0, None)))
reach("secret", lambda: call("keyctl", 11, SECRET, ctypes.create_string_buffer(8), 8))
reach("keyring", lambda: call("add_key", b"user", NAME.encode(), b"lost", 4, (1 << 64) - 4))
reach("request", lambda: call("request_key", b"user", NAME.encode(), 0, (1 << 64) - 4))
reach("terminal", lambda: os.close(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)))
"#;

/// The numbers of calls that only these programs use.
const NUMBERS: &str = r#"
NUMBERS.update({"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "ioprio_set": (251, 30), "ioprio_get": (252, 31)})
"#;

struct Person {
    program: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    shared: Value,
}

impl Person {
    fn start() -> Self {
        let mut command = Command::new("python3");
        command.arg("-c").arg(format!("{PRELUDE}{NUMBERS}{PERSON}"));
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (program.stdin.take(), BufReader::new(program.stdout.take().unwrap()));
        let mut person = Self { program, input, output, shared: Value::Null };
        person.shared = person.read();
        person
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn state(&mut self) -> Value {
        self.input.as_ref().unwrap().write_all(b"\n").unwrap();
        self.read()
    }

    /// The program of attempts to reach this person, and a terminal.
    fn attempts(&self, terminal: &str) -> String {
        let shared = self.shared.as_object().unwrap();
        let values: String = shared.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        format!("{NUMBERS}{values}TERMINAL = {terminal:?}\n{REACH}")
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // It removes what it shares.
        self.input = None;
        let _ = self.program.wait();
    }
}

/// A terminal of the person, with its path.
fn terminal() -> (pty_process::blocking::Pty, pty_process::blocking::Pts, String) {
    use std::os::fd::AsRawFd as _;

    let (pty, side) = pty_process::blocking::open().unwrap();
    let path = std::fs::read_link(format!("/proc/self/fd/{}", side.as_raw_fd())).unwrap();
    (pty, side, path.display().to_string())
}

#[tokio::test]
async fn nothing_of_others_is_reached_in_namespaces() {
    name_supervisor();
    if is_unsupported() || !has_program("python3") || !has_namespaces() {
        return;
    }
    let mut person = Person::start();
    let (_pty, _side, path) = terminal();
    let before = person.state();
    let program = person.attempts(&path);
    for (mode, sandbox) in confined() {
        for sandbox in [sandbox.clone(), sandbox.with_terminals()] {
            let scene = Scene::new().await;
            let results = attempt(&scene, &sandbox, &program).await;
            assert!(results.len() > 20, "{mode}: {results:?}");
            for (name, result) in results {
                assert_ne!(result, "reached", "{mode}: {name}");
            }
        }
    }
    assert_eq!(person.state(), before);
    // All processes of the user means those inside.
    if !rustix::process::geteuid().is_root() {
        let all = "attempt('all', lambda: os.setpriority(os.PRIO_USER, os.getuid(), 7))";
        let scene = Scene::new().await;
        attempt(&scene, &Sandbox::workspace(), all).await;
        assert_eq!(person.state(), before);
    }
}

/// What `docs/security.md` lists as open without namespaces. It also shows that the attempts work.
#[tokio::test]
#[ignore = "started by another test, on a system without namespaces"]
async fn scheduling_and_memory_of_others_are_open_without_namespaces() {
    name_supervisor();
    if is_unsupported() || !has_program("python3") {
        return;
    }
    assert!(!has_namespaces());
    let (_pty, _side, path) = terminal();
    let open = [
        "processors",
        "scheduler",
        "priority",
        "disk priority",
        "handle",
        "status",
        "memory by key",
        "memory",
        "queue by key",
        "queue",
        "semaphore by key",
        "semaphore",
        "named memory",
        "terminal",
    ];
    for sandbox in [Sandbox::workspace(), Sandbox::read_only().without_network()] {
        let mut person = Person::start();
        let before = person.state();
        let scene = Scene::new().await;
        let results = attempt(&scene, &sandbox, &person.attempts(&path)).await;
        for name in open {
            assert_eq!(results[name], "reached", "{name}");
        }
        for name in ["limits", "environment", "named queue", "secret", "keyring", "request"] {
            assert_ne!(results[name], "reached", "{name}");
        }
        let after = person.state();
        for name in ["memory", "named memory", "queue", "semaphore", "scheduler", "priority"] {
            assert_ne!(after[name], before[name], "{name}");
        }
    }
}

#[test]
fn systems_without_namespaces_run_commands_all_the_same() {
    run_without_namespaces(
        "escape::confined::others::scheduling_and_memory_of_others_are_open_without_namespaces",
    );
}

#[test]
fn nothing_of_others_is_reached_by_an_ordinary_user_in_namespaces() {
    run_as_ordinary_user("escape::confined::others::nothing_of_others_is_reached_in_namespaces");
}
