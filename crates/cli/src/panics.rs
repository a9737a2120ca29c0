//! Panics that tests ask for, so that they see what a program on the other side of a pipe sees of one.

use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::crash;

/// The variable of the environment that names a crash point.
const POINT: &str = "BACKSTITCH_PANIC_AT";

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// Lets the command panic at the crash point that the environment names, when it first gets there.
pub(crate) fn arm() {
    if std::env::var_os(POINT).is_some() {
        crash::at_every_point(reach);
    }
}

fn reach(point: &'static str) {
    let is_named = std::env::var(POINT).is_ok_and(|named| named == point);
    if is_named && !HAS_PANICKED.swap(true, Ordering::SeqCst) {
        panic!("a test wanted a panic at {point}");
    }
}
