//! Attempts to leave the sandbox, from inside of a real one, with the world outside compared before and after.
//!
//! The attempts are small programs in Python. Each prints one line per attempt; a test fails if an attempt changed
//! something outside, whatever the attempt itself reports. `sandbox::all_of_it_holds_for_an_ordinary_user` runs all of
//! this again as an ordinary user.

mod files;
mod limits;
mod namespaces;
mod others;
mod sockets;

use std::collections::BTreeMap;

use backstitch_core::ports::{ProcessOutcome, ProcessSpec, Sandbox, SandboxSockets};

use crate::sandbox::Scene;

/// Every confined mode: the files, the network, and the sockets that are not `on`.
fn confined() -> Vec<(String, Sandbox)> {
    let mut all = Vec::new();
    for (mode, sandbox) in [("workspace", Sandbox::workspace()), ("read-only", Sandbox::read_only())] {
        for sockets in [SandboxSockets::Off, SandboxSockets::Inside] {
            for network in [true, false] {
                let sandbox = Sandbox { network, ..sandbox.clone().sockets(sockets) };
                all.push((format!("{mode}, sockets {sockets}, network {network}"), sandbox));
            }
        }
    }
    all
}

/// Helpers of the attempts: `attempt` prints the name of an attempt, and its result or error; `call` makes a call of
/// the system by its number on this machine, and `number` returns it.
const PRELUDE: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
NUMBERS = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "ioctl": (16, 29), "prlimit": (302, 261),
    "fchmodat": (268, 53), "fchmodat2": (452, 452), "openat": (257, 56), "openat2": (437, 437), "mknodat": (259, 33),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}
def number(name):
    return NUMBERS[name][0 if X86 else 1]
def call(name, *arguments):
    code = name if isinstance(name, int) else number(name)
    done = libc.syscall(ctypes.c_long(code), *[
        value if isinstance(value, (bytes, ctypes.Array)) or hasattr(value, "_obj") else ctypes.c_ulong(value)
        for value in arguments])
    if done == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
def attempt(name, work):
    try:
        print(name, "=", work(), flush=True)
    except OSError as error:
        print(name, "=", error.errno, flush=True)
    except Exception as error:
        print(name, "=", repr(error), flush=True)
"#;

/// Runs a program of attempts, and returns their results by name.
async fn attempt(scene: &Scene, sandbox: &Sandbox, program: &str) -> BTreeMap<String, String> {
    let outcome = run(scene, sandbox, program).await;
    let text = outcome.stdout.text();
    let results = text.lines().filter_map(|line| line.split_once(" = "));
    let results: BTreeMap<_, _> =
        results.map(|(name, result)| (name.to_owned(), result.to_owned())).collect();
    assert!(!results.is_empty(), "{outcome:?}");
    results
}

async fn run(scene: &Scene, sandbox: &Sandbox, program: &str) -> ProcessOutcome {
    let spec = ProcessSpec::new("python3").arg("-c").arg(format!("{PRELUDE}\n{program}"));
    let spec = spec.env("HOME", scene.at("home").display().to_string());
    scene.run(spec.env("BASE", scene.at("").display().to_string()).sandbox(sandbox.clone())).await
}
