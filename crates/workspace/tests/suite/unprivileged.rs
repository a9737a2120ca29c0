//! Effects of permissions. They do not apply to root, so these tests run again as another user.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use backstitch_core::ports::{UncoveredReason, Workspace as _};

use crate::support::{Place, uncovered};

/// Runs a test of this binary as user `nobody`, or directly if this process is not root.
fn as_nobody(test: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--quiet"]).env("TMPDIR", "/tmp").current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
        }
        // The binary lies where that user has no access.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
}

#[test]
fn unreadable_files_are_said() {
    as_nobody("unprivileged::unreadable");
}

#[test]
#[ignore = "started by unreadable_files_are_said"]
fn unreadable() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    place.write("file", "x");
    place.write("closed/inside", "y");
    place.write("blind/inside", "z");
    place.mode("file", 0o000);
    place.mode("closed", 0o000);
    place.mode("blind", 0o600);
    let workspace = place.open();
    let captured = workspace.capture().unwrap();
    let mut found = uncovered(&captured);
    found.sort();
    let wanted = ["blind/inside", "closed", "file"];
    assert_eq!(found, wanted.map(|path| (path.to_owned(), UncoveredReason::Unreadable)));
    let root = place.store(captured);
    assert_eq!(workspace.restore(root).unwrap().changed, []);
    place.mode("closed", 0o755);
    place.mode("blind", 0o755);
}

#[test]
fn what_was_locked_away_comes_back() {
    as_nobody("unprivileged::locked_away");
}

#[test]
#[ignore = "started by what_was_locked_away_comes_back"]
fn locked_away() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    place.write("dir/file", "x");
    place.write("dir/deep/file", "y");
    place.write("readonly/file", "z");
    place.mode("readonly/file", 0o400);
    place.mode("readonly", 0o500);
    let workspace = place.open();
    let root = place.capture(&workspace);
    let before = place.picture();
    place.shell(
        "chmod 700 readonly; echo more > readonly/more; chmod 600 readonly/file; echo q > readonly/file; chmod 500 readonly; \
         chmod 0 dir/file; echo n > dir/deep/new; chmod 0 dir/deep; chmod 0 dir; mkdir -p new/closed; echo x > new/closed/x; \
         chmod 0 new/closed new",
    );
    workspace.restore(root).unwrap();
    assert_eq!(place.picture(), before);
    assert_eq!(place.capture(&workspace), root);

    // The same with a new workspace, and once more after the restore.
    place.shell("chmod 0 dir/deep; chmod 0 dir");
    drop(workspace);
    let other = place.open_with(|options| options.cache = Some(place.above.join("none")));
    other.restore(root).unwrap();
    assert_eq!(place.picture(), before);
    place.mode("readonly", 0o755);
}

#[test]
fn what_cannot_be_changed_blocks() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // A file that not even root may change, where the filesystem supports it.
    let place = Place::new();
    place.write("dir/file", "one");
    let workspace = place.open();
    let root = place.capture(&workspace);
    place.write("dir/file", "two");
    let locked = Command::new("chattr").args(["+i", place.path("dir/file").to_str().unwrap()]).output();
    if !locked.is_ok_and(|output| output.status.success()) {
        return;
    }
    let blocked = workspace.restore(root);
    let unlocked = Command::new("chattr").args(["-i", place.path("dir/file").to_str().unwrap()]).status();
    assert!(unlocked.unwrap().success());
    assert_eq!(crate::support::blocked(blocked), "dir/file");
    workspace.restore(root).unwrap();
    assert_eq!(fs::read(place.path("dir/file")).unwrap(), b"one");
}
