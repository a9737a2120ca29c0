//! Files that a process outside a call is writing are kept and listed.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the test is about printed output")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstitch_core::ports::{ChangeKind, UncoveredReason, Workspace as _};

use crate::support::Place;

/// Waits until a file has this end.
fn wait_for(path: &std::path::Path, end: &str) {
    let began = Instant::now();
    while !fs::read_to_string(path).is_ok_and(|text| text.ends_with(end)) {
        assert!(began.elapsed() < Duration::from_secs(60), "{end:?} was never written");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_file_behind_tee_stays_whole() {
    let place = Place::new();
    place.write("other", "before");
    let workspace = place.open();
    let without_log = place.capture(&workspace);
    place.directory("logs");
    let mut tee = Command::new("tee")
        .args(["run.log", "logs/new.log"])
        .current_dir(&place.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = tee.stdin.take().unwrap();
    let mut say = |text: &str| {
        input.write_all(text.as_bytes()).unwrap();
        wait_for(&place.path("run.log"), text);
        wait_for(&place.path("logs/new.log"), text);
    };
    say("one\n");
    let root = place.capture(&workspace);
    for round in 0..3 {
        say(&format!("two {round}\n"));
        place.write("other", "after");
        place.write("added", "new");
        let restored = workspace.restore(root).unwrap();
        assert_eq!(fs::read(place.path("other")).unwrap(), b"before");
        assert!(!place.path("added").exists());
        let kept: Vec<_> = restored.kept.iter().map(|kept| (kept.path.as_str(), kept.reason)).collect();
        assert_eq!(kept, [("logs/new.log", UncoveredReason::InUse), ("run.log", UncoveredReason::InUse)]);
        let changed: Vec<_> = restored.changed.iter().map(|one| (one.path.as_str(), one.change)).collect();
        assert_eq!(changed, [("added", ChangeKind::Deleted), ("other", ChangeKind::Modified)]);
    }
    // They are not deleted either, nor is the directory of one of them.
    let restored = workspace.restore(without_log).unwrap();
    assert_eq!(restored.kept.len(), 2, "{restored:?}");
    say("three\n");
    drop(input);
    tee.wait().unwrap();
    for log in ["run.log", "logs/new.log"] {
        assert_eq!(
            fs::read_to_string(place.path(log)).unwrap(),
            "one\ntwo 0\ntwo 1\ntwo 2\nthree\n",
            "{log}"
        );
    }
    // Once it is closed it is a file like any other.
    let restored = workspace.restore(without_log).unwrap();
    assert_eq!(restored.kept, []);
    assert!(!place.path("run.log").exists() && !place.path("logs").exists());
}

/// Child of the test below: its output goes to files in its own workspace.
#[test]
#[ignore = "started by output_into_the_workspace_stays_whole"]
fn child_that_prints_into_its_workspace() {
    let Ok(root) = std::env::var("BACKSTITCH_TEST_PRINTS_INTO") else { return };
    let objects = std::sync::Arc::new(crate::support::MemoryObjects::default());
    let above = PathBuf::from(root);
    let mut options =
        backstitch_workspace::OpenOptions::new(above.join("work"), above.join("store"), objects.clone());
    options.locks = Some(above.join("locks"));
    let workspace = backstitch_workspace::HostWorkspace::open(options).unwrap();
    println!("begun");
    eprintln!("begun");
    let captured = workspace.capture().unwrap();
    objects.0.lock().unwrap().extend(captured.objects.into_iter().map(|object| (object.id(), object)));
    println!("captured");
    eprintln!("captured");
    fs::write(above.join("work/other"), "after").unwrap();
    let restored = workspace.restore(captured.root).unwrap();
    println!("restored {:?}", restored.kept.iter().map(|kept| &*kept.path).collect::<Vec<_>>());
    eprintln!("restored");
}

#[test]
fn output_into_the_workspace_stays_whole() {
    let place = Place::new();
    place.write("other", "before");
    let (output, errors) = (place.path("out.log"), place.path("err.log"));
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_use::child_that_prints_into_its_workspace", "--ignored", "--nocapture"])
        .env("BACKSTITCH_TEST_PRINTS_INTO", &place.above)
        .stdout(File::create(&output).unwrap())
        .stderr(File::create(&errors).unwrap())
        .status()
        .unwrap();
    let (output, errors) = (fs::read_to_string(output).unwrap(), fs::read_to_string(errors).unwrap());
    assert!(status.success(), "{output}{errors}");
    assert!(output.contains(r#"restored ["err.log", "out.log"]"#), "{output}");
    assert!(output.contains("begun\ncaptured\n") && output.contains("test result: ok"), "{output}");
    assert!(errors.contains("begun\ncaptured\nrestored\n"), "{errors}");
    assert_eq!(fs::read(place.path("other")).unwrap(), b"before");
}

#[test]
fn a_directory_with_a_file_in_use_stays_where_a_file_was() {
    let place = Place::new();
    place.write("seam", "a file");
    let workspace = place.open();
    let root = place.capture(&workspace);
    fs::remove_file(place.path("seam")).unwrap();
    place.directory("seam");
    let mut tee = Command::new("tee")
        .arg("seam/log")
        .current_dir(&place.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = tee.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    wait_for(&place.path("seam/log"), "one\n");
    let restored = workspace.restore(root).unwrap();
    assert!(restored.kept.iter().any(|kept| kept.reason == UncoveredReason::InUse), "{restored:?}");
    assert_eq!(fs::read_to_string(place.path("seam/log")).unwrap(), "one\n");
    drop(input);
    tee.wait().unwrap();
    let restored = workspace.restore(root).unwrap();
    assert_eq!(restored.kept, []);
    assert_eq!(fs::read_to_string(place.path("seam")).unwrap(), "a file");
}
