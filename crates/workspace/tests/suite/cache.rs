//! The stat cache saves reads, and never returns wrong content.

use std::fs::{self, File};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use backstitch_core::object::Object;
use backstitch_core::ports::Workspace as _;

use crate::support::{MarkedObjects, Place};

/// Waits until earlier writes are no longer racy.
fn settle() {
    std::thread::sleep(Duration::from_millis(120));
}

#[test]
fn what_did_not_change_is_not_read() {
    let place = Place::new();
    for number in 0..50 {
        place.write(format!("d{}/f{number}", number % 5), format!("{number}"));
    }
    place.link("link", "d1");
    settle();
    let workspace = place.open();
    place.capture(&workspace);
    assert_eq!(workspace.files_read(), 51);
    place.capture(&workspace);
    assert_eq!(workspace.files_read(), 51);
    place.write("d1/f1", "changed");
    settle();
    place.capture(&workspace);
    assert_eq!(workspace.files_read(), 52);
}

#[test]
fn edits_of_the_same_size_at_the_same_time_are_seen() {
    let place = Place::new();
    let path = place.path("file");
    let workspace = place.open();
    let mut last = None;
    for round in 0..200_u32 {
        fs::write(&path, format!("{round:08}")).unwrap();
        let root = workspace.capture().unwrap().root;
        assert_ne!(Some(root), last, "round {round}");
        last = Some(root);
    }
}

#[test]
fn an_edit_that_puts_the_time_back_is_seen() {
    let place = Place::new();
    place.write("file", "before");
    settle();
    let workspace = place.open();
    let before = place.capture(&workspace);
    let modified = fs::metadata(place.path("file")).unwrap().modified().unwrap();
    place.write("file", "after!");
    File::options().write(true).open(place.path("file")).unwrap().set_modified(modified).unwrap();
    assert_eq!(fs::metadata(place.path("file")).unwrap().modified().unwrap(), modified);
    settle();
    assert_ne!(place.capture(&workspace), before);
}

#[test]
fn a_file_from_the_future_or_of_whole_seconds_is_read_again() {
    let place = Place::new();
    place.write("future", "x");
    place.write("old", "y");
    let set = |path: &str, time| {
        File::options().write(true).open(place.path(path)).unwrap().set_modified(time).unwrap()
    };
    set("future", SystemTime::now() + Duration::from_secs(86_400));
    set("old", SystemTime::now() - Duration::from_secs(86_400));
    settle();
    let workspace = place.open();
    place.capture(&workspace);
    place.capture(&workspace);
    assert_eq!(workspace.files_read(), 3);
}

#[test]
fn the_next_process_need_not_read_either() {
    let place = Place::new();
    for number in 0..20 {
        place.write(format!("d/f{number}"), "content");
    }
    place.write("sub/.git/HEAD", "x");
    place.fifo("fifo");
    place.directory("empty");
    place.mode("d/f3", 0o600);
    settle();
    let first = place.open();
    let root = place.capture(&first);
    drop(first);
    let second = place.open();
    assert_eq!(place.capture(&second), root);
    assert_eq!(second.files_read(), 0);
    place.write("d/f7", "changed");
    let changed = place.capture(&second);
    assert_ne!(changed, root);
    drop(second);
    let third = place.open();
    assert_eq!(place.capture(&third), changed);
    assert!(third.capture().unwrap().objects.is_empty());
}

#[test]
fn a_cache_of_another_time_or_place_is_not_used() {
    let place = Place::new();
    place.write("file", "content");
    settle();
    let cache = place.above.join("cache");
    let open = || place.open_with(|options| options.cache = Some(cache.clone()));
    let first = open();
    let root = place.capture(&first);
    first.save_cache().unwrap();
    drop(first);
    let good = fs::read(&cache).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(good.windows(36).any(|window| window == boot.trim().as_bytes()));

    // A wrong byte anywhere, including the boot id, invalidates the cache.
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&cache, bad).unwrap();
        let workspace = open();
        assert_eq!(place.capture(&workspace), root, "byte {at}");
        assert_eq!(workspace.files_read(), 1, "byte {at}");
        workspace.save_cache().unwrap();
        drop(workspace);
    }
    for end in [0, 1, 16, 48, good.len() - 1] {
        fs::write(&cache, &good[..end]).unwrap();
        let workspace = open();
        place.capture(&workspace);
        assert_eq!(workspace.files_read(), 1, "{end} bytes");
    }
    // Well-formed, but of another boot.
    let mut other = good.clone();
    let at = good.windows(36).position(|window| window == boot.trim().as_bytes()).unwrap();
    other[at] = if other[at] == b'0' { b'1' } else { b'0' };
    let digest = blake3::hash(&other[48..]);
    other[16..48].copy_from_slice(digest.as_bytes());
    fs::write(&cache, other).unwrap();
    let workspace = open();
    place.capture(&workspace);
    assert_eq!(workspace.files_read(), 1);
    drop(workspace);
    // Of the current boot.
    fs::write(&cache, &good).unwrap();
    let workspace = open();
    place.capture(&workspace);
    assert_eq!(workspace.files_read(), 0);
}

#[test]
fn what_the_store_lost_is_read_and_given_again() {
    let place = Place::new();
    place.write("file", "content");
    settle();
    let first = place.open();
    let root = place.capture(&first);
    drop(first);
    place.objects.0.lock().unwrap().clear();
    let second = place.open();
    let captured = second.capture().unwrap();
    assert_eq!(captured.root, root);
    assert_eq!(captured.objects.len(), 3);
}

#[test]
fn the_next_process_need_not_ask_the_store_either() {
    let place = Place::new();
    for number in 0..200 {
        place.write(format!("d{}/f{number}", number % 9), format!("content {number}"));
    }
    settle();
    let objects = Arc::new(MarkedObjects::default());
    let open = || place.open_with(|options| options.objects = objects.clone());
    let first = open();
    let root = objects.keep(first.capture().unwrap());
    drop(first);
    // What was new is asked about once, and that is remembered.
    objects.asked();
    let second = open();
    assert_eq!(second.capture().unwrap().root, root);
    drop(second);
    assert!(objects.asked() >= 200);
    let third = open();
    let captured = third.capture().unwrap();
    assert_eq!((captured.root, captured.objects.len()), (root, 0));
    assert_eq!(third.files_read(), 0);
    drop(third);
    // Only about the manifest, which no file stands for.
    assert_eq!(objects.asked(), 1);

    // A collection removed an object: it is found missing, read, and given again.
    let lost = Object::blob(b"content 7".to_vec());
    objects.objects.0.lock().unwrap().remove(&lost.id()).unwrap();
    objects.generation.fetch_add(1, Ordering::SeqCst);
    let fourth = open();
    let captured = fourth.capture().unwrap();
    assert_eq!(captured.root, root);
    assert_eq!(captured.objects, std::slice::from_ref(&lost));
    drop(fourth);
    // The capture was not stored, so its object is still missing.
    let fifth = open();
    let captured = fifth.capture().unwrap();
    assert_eq!(captured.objects, std::slice::from_ref(&lost));
    objects.keep(captured);
    // A collection while the process lives.
    objects.objects.0.lock().unwrap().remove(&lost.id()).unwrap();
    objects.generation.fetch_add(1, Ordering::SeqCst);
    assert_eq!(fifth.capture().unwrap().objects, [lost]);
}

#[test]
fn a_restore_leaves_a_cache_that_is_true() {
    let place = Place::new();
    place.write("a", "one");
    place.write("b", "two");
    settle();
    let objects = Arc::new(MarkedObjects::default());
    let open = || place.open_with(|options| options.objects = objects.clone());
    let first = open();
    let before = objects.keep(first.capture().unwrap());
    place.write("a", "changed");
    fs::remove_file(place.path("b")).unwrap();
    // This state is never stored.
    first.capture().unwrap();
    drop(first);
    let second = open();
    second.restore(before).unwrap();
    drop(second);
    let third = open();
    let captured = third.capture().unwrap();
    assert_eq!((captured.root, captured.objects.len()), (before, 0));
}
