//! Panics on request, so that tests can check what a client of `--json` sees of a panic.

use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::crash;

/// Environment variable that names a crash point.
const POINT: &str = "BACKSTITCH_PANIC_AT";

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// Environment variable that names a crash point at which the process dies, as if it was killed.
const DEATH: &str = "BACKSTITCH_ABORT_AT";

/// Makes the command panic when it first reaches the crash point that the environment names.
pub(crate) fn arm() {
    if std::env::var_os(POINT).is_some() || std::env::var_os(DEATH).is_some() {
        crash::at_every_point(reach);
    }
}

fn reach(point: &'static str) {
    if std::env::var(DEATH).is_ok_and(|named| named == point) {
        std::process::abort();
    }
    let is_named = std::env::var(POINT).is_ok_and(|named| named == point);
    if is_named && !HAS_PANICKED.swap(true, Ordering::SeqCst) {
        panic!("a test wanted a panic at {point}");
    }
}
