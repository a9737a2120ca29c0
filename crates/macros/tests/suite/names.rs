//! Names of tools, which the macro and the core have to judge alike.

/// Names, and whether a tool may have them.
pub(crate) fn names() -> Vec<(String, bool)> {
    let valid = ["a", "Read-2_x", "-", "9"].map(str::to_owned).into_iter().chain(["x".repeat(64)]);
    let wrong = ["", "a b", "a.b", "\u{e9}", "runtime", "executor"].map(str::to_owned).into_iter();
    let wrong = wrong.chain(["x".repeat(65)]);
    valid.map(|name| (name, true)).chain(wrong.map(|name| (name, false))).collect()
}
