//! An interrupted restore is simply repeated.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use backstitch_core::ports::Workspace as _;

use crate::support::Place;

fn furnish(place: &Place) {
    place.write("same", "same");
    place.write("changes", "before");
    place.write("dir/one", "1");
    place.write("dir/two", "2");
    place.mode("dir/two", 0o640);
    place.directory("dir/empty");
    place.link("link", "changes");
    place.write("becomes-dir", "file");
    place.write("becomes-file/inner", "x");
    place.write("sub/.git/HEAD", "x");
    place.mode("dir", 0o750);
}

fn wreck(place: &Place) {
    place.shell(
        "echo after > changes; rm -r dir; mkdir dir; echo 3 > dir/three; ln -sfn elsewhere link; rm becomes-dir; \
         mkdir becomes-dir; echo y > becomes-dir/y; rm -r becomes-file; echo z > becomes-file; rm -r sub; \
         mkdir -p new/a/b; echo n > new/a/b/n; chmod 700 same",
    );
}

#[test]
fn stopped_at_any_step_it_can_be_repeated() {
    let mut steps = 0;
    for stop_at in 0.. {
        let place = Place::new();
        furnish(&place);
        let workspace = place.open();
        let root = place.capture(&workspace);
        let before = place.picture();
        wreck(&place);
        let mut taken = 0;
        let mut progress = || {
            taken += 1;
            if taken > stop_at { Err(io::Error::other("stopped")) } else { Ok(()) }
        };
        let coverage = workspace.coverage();
        let result = workspace.restore_with(root, &coverage, Some(&mut progress));
        if result.is_ok() {
            assert_eq!(place.picture(), before);
            steps = stop_at;
            break;
        }
        if stop_at % 2 == 0 {
            // By the same process.
            workspace.restore(root).unwrap();
            assert_eq!(place.capture(&workspace), root, "step {stop_at}");
            drop(workspace);
            place.open();
        } else {
            // By the next process, as after a kill.
            drop(workspace);
            let next = place.open();
            next.restore(root).unwrap();
            assert_eq!(place.capture(&next), root, "step {stop_at}");
        }
        assert_eq!(place.picture(), before, "step {stop_at}");
    }
    assert!(steps > 20, "{steps}");
}

/// The mode of each directory below a place, but for temporary ones.
fn modes_of_directories(place: &Place) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    let mut open = vec![place.path("")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let is_temporary = entry.file_name().to_string_lossy().starts_with(".backstitch-tmp-");
            if entry.file_type().unwrap().is_dir() && !is_temporary {
                found.insert(entry.path(), entry.metadata().unwrap().permissions().mode() & 0o7777);
                open.push(entry.path());
            }
        }
    }
    found
}

/// Another mode would be taken for a change by a person.
#[test]
fn stopped_at_any_step_a_directory_has_the_mode_from_before_or_the_wanted_one() {
    for stop_at in 0.. {
        let place = Place::new();
        furnish(&place);
        place.shell("mkdir -p sealed/deep; echo x > sealed/deep/x; chmod 555 sealed/deep; chmod 500 sealed");
        let workspace = place.open();
        let root = place.capture(&workspace);
        let wanted = modes_of_directories(&place);
        place.shell("chmod -R u+w sealed; rm -r sealed");
        wreck(&place);
        let before = modes_of_directories(&place);
        let mut taken = 0;
        let mut progress = || {
            taken += 1;
            if taken > stop_at { Err(io::Error::other("stopped")) } else { Ok(()) }
        };
        let coverage = workspace.coverage();
        let result = workspace.restore_with(root, &coverage, Some(&mut progress));
        for (path, mode) in modes_of_directories(&place) {
            let known = [before.get(&path), wanted.get(&path)];
            assert!(known.contains(&Some(&mode)), "step {stop_at}: {} has {mode:o}", path.display());
        }
        if result.is_ok() {
            assert!(stop_at > 20, "{stop_at} steps");
            assert_eq!(modes_of_directories(&place), wanted);
            return;
        }
    }
}

#[test]
fn what_an_interrupted_write_left_is_swept_at_the_next_open() {
    let place = Place::new();
    place.write("a/b/file", "x");
    place.write("excluded/file", "x");
    let workspace = place.open();
    let root = place.capture(&workspace);
    for path in [".backstitch-tmp-1-1", "a/b/.backstitch-tmp-2-2", "a/.backstitch-tmp-3-w1"] {
        place.write(path, "half");
    }
    place.write("a/.backstitch-tmp-9-9/deep/file", "hoisted");
    // It is not part of any root, and not shown.
    assert_eq!(place.capture(&workspace), root);
    assert_eq!(workspace.filesystem().list(&crate::support::file_path("a")).unwrap().len(), 1);
    drop(workspace);
    let workspace = place.open();
    assert!(!place.path("a/b/.backstitch-tmp-2-2").exists());
    assert!(!place.path("a/.backstitch-tmp-9-9").exists());
    assert!(!place.path(".backstitch-tmp-1-1").exists());
    assert_eq!(fs::read_dir(place.path("a")).unwrap().count(), 1);
    assert_eq!(place.capture(&workspace), root);
}

/// Child of the test below: it is killed during a restore.
#[test]
#[ignore = "started by stopped_by_a_kill_it_can_be_repeated"]
fn child_that_is_killed() {
    let Ok(root) = std::env::var("BACKSTITCH_TEST_ROOT") else { return };
    let stop_at: usize = std::env::var("BACKSTITCH_TEST_STOP").unwrap().parse().unwrap();
    let above = std::path::PathBuf::from(root);
    let objects = std::sync::Arc::new(crate::support::MemoryObjects::default());
    for entry in fs::read_dir(above.join("objects")).unwrap() {
        let path = entry.unwrap().path();
        let kind = match path.extension().unwrap().to_str().unwrap() {
            "blob" => backstitch_core::object::ObjectKind::Blob,
            _ => backstitch_core::object::ObjectKind::Tree,
        };
        let object = backstitch_core::object::Object::new(kind, fs::read(&path).unwrap());
        objects.0.lock().unwrap().insert(object.id(), object);
    }
    let text = fs::read_to_string(above.join("root")).unwrap();
    let (tree, manifest) = text.split_once(' ').unwrap();
    let wanted = backstitch_core::journal::WorkspaceRoot {
        tree: tree.parse().unwrap(),
        manifest: manifest.parse().unwrap(),
    };
    let mut options =
        backstitch_workspace::OpenOptions::new(above.join("work"), above.join("store"), objects);
    options.locks = Some(above.join("locks"));
    let workspace = backstitch_workspace::HostWorkspace::open(options).unwrap();
    let mut taken = 0;
    let mut progress = || {
        taken += 1;
        if taken > stop_at {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
        Ok(())
    };
    let coverage = workspace.coverage();
    workspace.restore_with(wanted, &coverage, Some(&mut progress)).unwrap();
}

#[test]
fn stopped_by_a_kill_it_can_be_repeated() {
    use std::os::unix::process::ExitStatusExt as _;
    let place = Place::new();
    furnish(&place);
    let workspace = place.open();
    let root = place.capture(&workspace);
    let before = place.picture();
    drop(workspace);
    fs::create_dir(place.above.join("objects")).unwrap();
    for (id, object) in &*place.objects.0.lock().unwrap() {
        let name = format!("{id}.{}", object.kind().as_str());
        fs::write(place.above.join("objects").join(name), object.bytes()).unwrap();
    }
    fs::write(place.above.join("root"), format!("{} {}", root.tree, root.manifest)).unwrap();
    for stop_at in [0, 3, 7, 12, 18, 25] {
        place.shell("chmod -R u+rwx .; find . -mindepth 1 -delete");
        furnish(&place);
        wreck(&place);
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "interrupt::child_that_is_killed", "--ignored", "--quiet"])
            .env("BACKSTITCH_TEST_ROOT", &place.above)
            .env("BACKSTITCH_TEST_STOP", stop_at.to_string())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9), "step {stop_at}");
        // The lock of the killed process is free.
        let workspace = place.open();
        workspace.restore(root).unwrap();
        assert_eq!(place.picture(), before, "step {stop_at}");
        assert_eq!(place.capture(&workspace), root, "step {stop_at}");
    }
}

#[test]
fn a_workspace_that_is_only_captured_leaves_temporary_files_and_their_content_out() {
    let place = Place::new();
    furnish(&place);
    let root = {
        let workspace = place.open();
        place.capture(&workspace)
    };
    let left = "dir/.backstitch-tmp-left";
    place.write(left, "half");
    {
        let workspace = place.open_with(|options| options.sweeps = false);
        assert_eq!(place.capture(&workspace), root);
    }
    assert!(place.path(left).exists());
    drop(place.open());
    assert!(!place.path(left).exists());
}
