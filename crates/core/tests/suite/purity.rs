//! The pure crates stay pure, as far as the dependency graph shows it. `clippy.toml` forbids the rest.
#![allow(
    clippy::disallowed_methods,
    reason = "a test may ask cargo; it is the crate that starts no processes"
)]

use std::collections::BTreeSet;
use std::process::Command;

/// Runtimes, networks, files, databases, system clocks and system entropy.
const IMPURE: [&str; 32] = [
    "actix-rt",
    "async-io",
    "async-std",
    "cap-std",
    "chrono",
    "curl",
    "fastrand",
    "fs4",
    "getrandom",
    "h2",
    "hyper",
    "iana-time-zone",
    "libsqlite3-sys",
    "memmap2",
    "mio",
    "native-tls",
    "notify",
    "polling",
    "rand",
    "reqwest",
    "ring",
    "rusqlite",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "sqlx",
    "tempfile",
    "time",
    "tokio",
    "ureq",
    "walkdir",
];

/// A package of a graph: its name, and the features that it is built with.
type Package = (String, BTreeSet<String>);

/// Returns the dependencies of a package on all platforms, without those of its tests.
fn graph(package: &str, depth: &str) -> BTreeSet<Package> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--manifest-path", manifest, "--package", package, "--edges", "normal,build"])
        .args(["--target", "all", "--all-features", "--locked", "--offline", "--depth", depth])
        .args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let package = |line: &str| {
        let (name, features) = line.split_once('|').unwrap();
        let name = name.split(' ').next().unwrap().to_owned();
        (name, features.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned).collect())
    };
    lines.lines().map(package).collect()
}

fn names(graph: &BTreeSet<Package>) -> BTreeSet<&str> {
    graph.iter().map(|(name, _)| name.as_str()).collect()
}

#[track_caller]
fn assert_pure(package: &str) {
    let graph = graph(package, "64");
    let names = names(&graph);
    assert!(names.contains(package) && names.contains("serde_json"), "this is not a graph: {names:?}");
    let impure: Vec<_> = IMPURE.iter().filter(|name| names.contains(**name)).collect();
    assert!(impure.is_empty(), "{package} must do no IO, but is built from {impure:?}");
    for (name, features) in &graph {
        let of_the_system = |feature: &&String| {
            ["tz-system", "tzdb-zoneinfo", "tzdb-concatenated", "os_rng", "sys_rng", "rng", "v4", "fast-rng"]
                .contains(&feature.as_str())
        };
        let asked: Vec<_> = features.iter().filter(of_the_system).collect();
        assert!(asked.is_empty(), "{name} below {package} asks the system: {asked:?}");
    }
}

/// Each dependency is a decision: adding one to a pure crate requires an entry here.
#[track_caller]
fn assert_depends_on(package: &str, wanted: &[&str]) {
    let graph = graph(package, "1");
    let mut direct = names(&graph);
    direct.remove(package);
    assert_eq!(direct, wanted.iter().copied().collect());
}

#[test]
fn core_does_no_io() {
    assert_pure("backstitch-core");
}

#[test]
fn filesystem_does_no_io() {
    assert_pure("backstitch-filesystem");
}

#[test]
fn lisp_does_no_io() {
    assert_pure("backstitch-lisp");
}

#[test]
fn repl_does_no_io() {
    assert_pure("backstitch-repl");
}

#[test]
fn core_depends_on_what_is_stated_here() {
    assert_depends_on(
        "backstitch-core",
        &[
            "base64",
            "blake3",
            "imbl",
            "jiff",
            "memchr",
            "rand_chacha",
            "rand_core",
            "schemars",
            "serde",
            "serde_json",
            "sha1-checked",
            "shlex",
            "thiserror",
            "tracing",
            "url",
            "uuid",
        ],
    );
}

#[test]
fn filesystem_depends_on_what_is_stated_here() {
    assert_depends_on(
        "backstitch-filesystem",
        &[
            "backstitch-core",
            "base64",
            "diffy",
            "globset",
            "imbl",
            "regex",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
        ],
    );
}

#[test]
fn lisp_depends_on_what_is_stated_here() {
    assert_depends_on(
        "backstitch-lisp",
        &[
            "imbl",
            "indexmap",
            "jiff",
            "num-bigint",
            "num-integer",
            "num-traits",
            "regex",
            "regex-automata",
            "serde_json",
        ],
    );
}

#[test]
fn repl_depends_on_what_is_stated_here() {
    assert_depends_on(
        "backstitch-repl",
        &["backstitch-core", "backstitch-lisp", "imbl", "indexmap", "serde", "serde_json", "thiserror"],
    );
}
