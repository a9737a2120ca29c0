//! Other processes change files during captures and restores: nothing fails, and untouched files are exact.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::ports::Workspace as _;

use crate::support::{Picture, Place};

/// Creates and removes directories and files below a directory, without a pause.
fn create_and_remove(below: &Path, stop: &AtomicBool) {
    let mut number = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let top = below.join(format!("tmp{}", number % 3));
        let _ = fs::create_dir_all(top.join("a/b"));
        let _ = fs::write(top.join("a/b/o"), format!("object {number}"));
        let _ = fs::write(top.join(".gitignore"), "b\n");
        let _ = fs::remove_dir_all(&top);
    }
}

/// Renames files and directories back and forth, so that names change their kind.
fn rename(below: &Path, stop: &AtomicBool) {
    let (one, other) = (below.join("moved"), below.join("moved-away"));
    while !stop.load(Ordering::Relaxed) {
        let _ = fs::create_dir_all(one.join("inside"));
        let _ = fs::write(one.join("inside/file"), "content");
        let _ = fs::rename(&one, &other);
        let _ = fs::write(&one, "a file now");
        let _ = fs::remove_file(&one);
        let _ = std::os::unix::fs::symlink("moved-away", &one);
        let _ = fs::remove_file(&one);
        let _ = fs::remove_dir_all(&other);
    }
}

/// Removes a directory that a root contains, and creates it again.
fn remove_what_is_wanted(below: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let _ = fs::remove_dir_all(below.join("wanted"));
        let _ = fs::create_dir_all(below.join("wanted/deep"));
        let _ = fs::write(below.join("wanted/deep/file"), "other");
    }
}

/// Present entries, without those that the other processes touch.
fn untouched(place: &Place) -> Picture {
    let mut picture = Picture::new();
    for name in ["own", "kept.txt", "build/own.txt"] {
        collect(&place.root, &place.path(name), &mut picture);
    }
    picture
}

fn collect(root: &Path, path: &Path, picture: &mut Picture) {
    use std::os::unix::ffi::OsStrExt as _;
    let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
    match fs::read_dir(path) {
        Ok(entries) => {
            picture.insert(name, ('d', 0, Vec::new()));
            entries.for_each(|entry| collect(root, &entry.unwrap().path(), picture));
        }
        Err(_) => drop(picture.insert(name, ('f', 0, fs::read(path).unwrap_or_default()))),
    }
}

fn others_work(others: &[fn(&Path, &AtomicBool)]) {
    let place = Place::new();
    for number in 0..20 {
        place.write(format!("own/{number}/file"), format!("content {number}"));
    }
    place.write("kept.txt", "kept");
    place.write("build/own.txt", "between the others");
    place.write("build/wanted/deep/file", "as it was");
    let workspace = place.open();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for other in others {
            scope.spawn(|| other(&place.path("build"), &stop));
        }
        // A failure must not leave them running.
        let rounds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..40 {
                let captured = workspace.capture().unwrap_or_else(|error| panic!("round {round}: {error}"));
                let coverage = captured.coverage.clone();
                let root = place.store(captured);
                let coverage = coverage.map(|object| {
                    let id = object.id();
                    place.objects.0.lock().unwrap().insert(id, object);
                    id
                });
                let before = untouched(&place);
                place.shell(
                    "echo more >> kept.txt; rm -r own/3; mkdir own/new; echo x > own/new/x; rm build/own.txt",
                );
                assert_ne!(untouched(&place), before, "round {round}");
                workspace.rescue(coverage, 1 << 20).unwrap_or_else(|error| panic!("round {round}: {error}"));
                let restored = workspace.restore_covering(root, coverage);
                restored.unwrap_or_else(|error| panic!("round {round}: {error}"));
                assert_eq!(untouched(&place), before, "round {round}");
            }
        }));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = rounds {
            std::panic::resume_unwind(panic);
        }
    });
    // Without other processes everything is exact again.
    let root = place.capture(&workspace);
    let before = place.picture();
    place.shell("rm -r build own; echo x > build");
    workspace.restore(root).unwrap();
    assert_eq!(place.picture(), before);
}

#[test]
fn others_may_create_and_remove_concurrently() {
    others_work(&[create_and_remove]);
}

#[test]
fn others_may_rename_concurrently() {
    others_work(&[rename, create_and_remove]);
}

#[test]
fn others_may_remove_what_is_wanted_concurrently() {
    others_work(&[remove_what_is_wanted]);
}
