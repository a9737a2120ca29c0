//! A full disk: deletions of a restore make space for its writes.
#![allow(clippy::print_stderr, reason = "a skipped test reports it")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use backstitch_core::ports::Workspace as _;

use crate::support::MemoryObjects;

/// Child of the test below, in a private filesystem of 1 MiB.
#[test]
#[ignore = "started by a_full_disk_does_not_hinder_a_restore"]
fn child_with_a_small_disk() {
    let Ok(above) = std::env::var("BACKSTITCH_TEST_SMALL_DISK").map(PathBuf::from) else { return };
    let root = above.join("work");
    let objects = std::sync::Arc::new(MemoryObjects::default());
    let mut options = backstitch_workspace::OpenOptions::new(&root, above.join("store"), objects.clone());
    options.locks = Some(above.join("locks"));
    let workspace = backstitch_workspace::HostWorkspace::open(options).unwrap();
    let content = |seed: u8| vec![seed; 200_000];
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("keep"), content(1)).unwrap();
    fs::write(root.join("a/b/grows"), content(2)).unwrap();
    fs::write(root.join("z"), content(3)).unwrap();
    let captured = workspace.capture().unwrap();
    objects.0.lock().unwrap().extend(captured.objects.into_iter().map(|object| (object.id(), object)));

    type Wreck = &'static str;
    let wrecks: [Wreck; 4] = [
        // A new file with a later name occupies the space of a deleted one.
        "rm keep; cat /dev/zero > zz",
        "rm -r a; mkdir -p zz/deep; cat /dev/zero > zz/deep/er",
        // An existing file has taken all the space, or has changed so that both versions do not fit.
        "rm keep; cat /dev/zero >> a/b/grows",
        "rm keep; tr '\\3' x < z > z2; mv z2 z; cat /dev/zero >> a/b/grows",
    ];
    for wreck in wrecks {
        let script = format!("({wreck}) 2> /dev/null; cat /dev/zero > filler; true");
        Command::new("sh")
            .args(["-c", &script])
            .stderr(std::process::Stdio::null())
            .current_dir(&root)
            .status()
            .unwrap();
        workspace.restore(captured.root).unwrap_or_else(|error| panic!("{wreck}: {error}"));
        for (name, seed) in [("keep", 1), ("a/b/grows", 2), ("z", 3)] {
            assert!(fs::read(root.join(name)).unwrap() == content(seed), "{wreck}: {name}");
        }
        assert!(!root.join("zz").exists() && !root.join("filler").exists(), "{wreck}");
        assert_eq!(workspace.capture().unwrap().root, captured.root, "{wreck}");
    }
}

#[test]
fn a_full_disk_does_not_hinder_a_restore() {
    let place = tempfile::tempdir().unwrap();
    let above = place.path().canonicalize().unwrap();
    fs::create_dir(above.join("work")).unwrap();
    let script = "mount -t tmpfs -o size=1m none \"$1\" || exit 77; shift; exec \"$@\"";
    let status = Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(above.join("work"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::child_with_a_small_disk", "--ignored", "--nocapture"])
        .env("BACKSTITCH_TEST_SMALL_DISK", &above)
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => {}
        Ok(Some(1 | 77)) if !can_mount(&above) => {
            eprintln!("SKIPPED: this user may not mount a small filesystem, so a full disk was not tried");
        }
        Err(error) => eprintln!("SKIPPED: without unshare(1) a full disk was not tried: {error}"),
        other => panic!("{other:?}"),
    }
}

fn can_mount(above: &std::path::Path) -> bool {
    let script = "mount -t tmpfs -o size=1m none \"$1\"";
    let status =
        Command::new("unshare").args(["-rm", "sh", "-c", script, "sh"]).arg(above.join("work")).status();
    status.is_ok_and(|status| status.success())
}
