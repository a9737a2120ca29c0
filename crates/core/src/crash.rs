//! Crash points: places where a process may die, by name.
//!
//! Tests kill a real process at each of them and see that nothing is lost. A point costs nothing unless the feature
//! `crash-points` is on, which only tests turn on; and then it does what the process was told to do there.

/// Every place at which a crash is tried, in the order in which a session reaches them. `call.in_handler` is reached by the
/// handlers of tests alone.
pub const POINTS: &[&str] = &[
    "store.create.prepared",
    "store.create.named",
    "store.create.log",
    "store.create.done",
    "session.claimed",
    "session.created",
    "ask.before",
    "ask.after",
    "append.before",
    "append.after",
    "machine.recorded",
    "call.before_intent",
    "call.after_intent",
    "call.in_handler",
    "process.before_record",
    "process.recorded",
    "child.created",
    "child.ended",
    "child.settled",
    "call.handler_done",
    "call.files_captured",
    "call.before_restore",
    "call.after_restore",
    "call.finished",
    "workspace.scan.begun",
    "workspace.scan.done",
    "workspace.restore.begun",
    "workspace.restore.half",
    "workspace.restore.done",
    "rewind.before",
    "rewind.recorded",
    "rewind.restored",
    "fork.before",
    "fork.created",
    "fork.restored",
    "recover.before",
    "recover.rescued",
    "recover.restored",
    "resolve.before",
    "resolve.restored",
    "snapshot.before",
    "snapshot.after",
    "store.before_commit",
    "store.after_commit",
    "gc.marked",
    "gc.swept",
];

/// Whether there is a point of this name. It is asked while compiling.
#[doc(hidden)]
pub const fn is_point(name: &str) -> bool {
    let mut index = 0;
    while index < POINTS.len() {
        if same(POINTS[index].as_bytes(), name.as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(feature = "crash-points")]
static HOOK: std::sync::OnceLock<fn(&'static str)> = std::sync::OnceLock::new();

/// Says what is done at every point from now on. Only the first to say so is heard.
#[cfg(feature = "crash-points")]
pub fn at_every_point(hook: fn(&'static str)) {
    let _ = HOOK.set(hook);
}

/// The process is at this point.
#[doc(hidden)]
#[inline]
pub fn reach(name: &'static str) {
    #[cfg(feature = "crash-points")]
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
    #[cfg(not(feature = "crash-points"))]
    let _ = name;
}

/// Marks a place where a crash is tried. The name has to stand in [`POINTS`](crate::crash::POINTS).
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {{
        const { assert!($crate::crash::is_point($name), "a crash point has to stand in the table") };
        $crate::crash::reach($name);
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_known() {
        for (index, name) in POINTS.iter().enumerate() {
            assert!(is_point(name));
            assert!(!POINTS[..index].contains(name), "{name}");
        }
        assert!(!is_point("append.during"));
        crate::crash_point!("append.before");
    }
}
