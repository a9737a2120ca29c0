//! Crash points: named places where a process may die.
//!
//! Tests kill a real process at each of them and check that nothing is lost. A point costs nothing unless the
//! feature `crash-points` is on, which only tests enable; it then calls the hook that the process installed.

/// All crash points, in the order in which a session reaches them. Only the handlers of tests reach
/// `call.in_handler`.
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
    "isolate.copied",
    "apply.before",
    "apply.recorded",
    "apply.restored",
    "apply.finished",
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
    "redact.begun",
    "redact.objects",
    "redact.records",
    "redact.inbox",
    "remove.unlisted",
    "remove.records",
    "remove.collected",
    "erase.rebuilt",
];

/// Returns whether a point has this name. Evaluated at compile time.
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

/// Installs the hook that every later point calls. Only the first hook is kept.
#[cfg(feature = "crash-points")]
pub fn at_every_point(hook: fn(&'static str)) {
    let _ = HOOK.set(hook);
}

/// Calls the hook, if one is installed.
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

/// Marks a crash point. Its name must be listed in [`POINTS`](crate::crash::POINTS).
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {{
        const { assert!($crate::crash::is_point($name), "a crash point must be listed in the table") };
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
