//! Panics and deaths on request, so that tests can check what remains of a command that ends anywhere.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use backstitch_core::crash;

/// Environment variable that names a crash point at which the command panics, once.
const PANIC: &str = "BACKSTITCH_PANIC_AT";

/// Environment variable that names a crash point at which the process is killed: `POINT`, or `POINT#HIT` for a later
/// time than the first.
const DEATH: &str = "BACKSTITCH_ABORT_AT";

/// Environment variable that names a file to which every crash point is added when it is reached.
const REACHED: &str = "BACKSTITCH_REACHED";

/// Environment variable that names a file. Points that are reached before it exists do not count.
const FROM: &str = "BACKSTITCH_REACHED_FROM";

/// What the environment asks for.
#[derive(Default)]
struct Requests {
    panic: Option<String>,
    death: Option<(String, u64)>,
    reached: Option<PathBuf>,
    from: Option<PathBuf>,
}

static REQUESTS: OnceLock<Requests> = OnceLock::new();
static HITS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Makes the command do what the environment asks for at crash points.
pub(crate) fn arm() {
    let requests = Requests {
        panic: std::env::var(PANIC).ok(),
        death: std::env::var(DEATH).ok().map(|named| match named.split_once('#') {
            Some((point, hit)) => (point.to_owned(), hit.parse().unwrap_or(1)),
            None => (named, 1),
        }),
        reached: std::env::var_os(REACHED).map(Into::into),
        from: std::env::var_os(FROM).map(Into::into),
    };
    if requests.panic.is_some() || requests.death.is_some() || requests.reached.is_some() {
        let _ = REQUESTS.set(requests);
        crash::at_every_point(reach);
    }
}

fn reach(point: &'static str) {
    let Some(requests) = REQUESTS.get() else { return };
    if requests.from.as_ref().is_some_and(|file| !file.exists()) {
        return;
    }
    // Held until the process is dead, so that no other thread passes a point after this one.
    let mut hits = HITS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = hits.entry(point).or_default();
    *count += 1;
    if let Some(file) = &requests.reached {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
        let _ = opened.and_then(|mut file| file.write_all(format!("{point}\n").as_bytes()));
    }
    if requests.death.as_ref().is_some_and(|(named, hit)| named == point && hit == count) {
        die();
    }
    let panics = requests.panic.as_ref().is_some_and(|named| named == point) && *count == 1;
    drop(hits);
    if panics {
        panic!("a test wanted a panic at {point}");
    }
}

/// Ends the process at once, without any handler.
fn die() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort();
}
