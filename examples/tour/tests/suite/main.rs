//! The tour runs, offline, and checks what it prints. It needs nothing beside the library and an async runtime.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_tour_holds_what_it_prints() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tour-{}", std::process::id()));
    // A run that failed, in a process of the same number, has left it.
    let _ = std::fs::remove_dir_all(&place);
    let output = Command::new(env!("CARGO_BIN_EXE_tour")).arg(&place).output().unwrap();
    let (printed, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{printed}{errors}");
    let chapters: Vec<&str> =
        printed.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    assert_eq!(chapters, ["start", "stream", "approve", "rewind", "restore", "fork", "resume", "redact"]);
    assert!(printed.starts_with("start: I close the hem. I need thread."), "{printed}");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_program_depends_on_the_library_and_an_async_runtime_only() {
    let manifest = include_str!("../../Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("\n\n").unwrap();
    let names: Vec<&str> = dependencies.lines().filter_map(|line| line.split('.').next()).collect();
    assert_eq!(names, ["backstitch", "tokio"]);
    assert!(!manifest.contains("dev-dependencies"));
}
