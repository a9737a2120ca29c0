//! The packages of a release: each is installed as users do, and `quickstart` runs without Rust, git or a compiler.
//!
//! `BACKSTITCH_PACKAGES` names the directory that `./package` has made, since making it takes minutes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::backstitch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn each_package_installs_and_runs_the_quickstart() {
    let Some(packages) = std::env::var_os("BACKSTITCH_PACKAGES") else {
        eprintln!(
            "SKIPPED: BACKSTITCH_PACKAGES does not name a directory of `./package`; no package is tried"
        );
        return;
    };
    let status = Command::new(root().join("packaging/try")).arg(packages).status().unwrap();
    assert!(status.success(), "packaging/try: {status}");
}

#[test]
fn manual_pages_are_those_of_the_commands() {
    let page = backstitch(&["man", "schedule", "add"]).worked();
    assert!(page.contains(".TH backstitch-schedule-add 1") && page.contains(".SH EXAMPLES"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("man1");
    backstitch(&["man", "--directory", below.to_str().unwrap()]).worked();
    for name in ["backstitch.1", "backstitch-rewind.1", "backstitch-schedule-add.1"] {
        assert!(below.join(name).is_file(), "{name}");
    }
    let wrong = backstitch(&["man", "nope"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.errors.contains("backstitch --help"), "{}", wrong.errors);
}
