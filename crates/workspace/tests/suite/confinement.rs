//! No path of a tool leads outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::ports::{
    Access, Filesystem, FilesystemError, FilesystemLimits, Recursion, Workspace as _, WriteMode,
};
use backstitch_filesystem::FilePath;
use backstitch_workspace::HostFilesystem;
use proptest::prelude::*;

use crate::support::{Place, file_path as path};

const SECRET: &[u8] = b"outside";

/// A directory beside the workspace that must not change.
fn outside(place: &Place) -> std::path::PathBuf {
    let outside = place.above.join("outside");
    fs::create_dir_all(outside.join("dir")).unwrap();
    fs::write(outside.join("secret"), SECRET).unwrap();
    fs::write(outside.join("dir/secret"), SECRET).unwrap();
    outside
}

fn assert_untouched(outside: &std::path::Path) {
    assert_eq!(fs::read(outside.join("secret")).unwrap(), SECRET);
    assert_eq!(fs::read(outside.join("dir/secret")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(outside).unwrap().count(), 2);
    assert_eq!(fs::read_dir(outside.join("dir")).unwrap().count(), 1);
}

/// Runs every operation on a path, and returns all content that could be read.
fn everything(files: &dyn Filesystem, target: &FilePath) -> Vec<Vec<u8>> {
    let mut read = Vec::new();
    read.extend(files.read_bytes(target));
    let _ = files.stat(target);
    read.extend(files.list(target).into_iter().flatten().map(|entry| entry.name.into_bytes()));
    for mode in [WriteMode::Append, WriteMode::Overwrite, WriteMode::Create] {
        let _ = files.write_bytes(target, b"written", mode);
    }
    let _ = files.make_directory(target);
    let _ = files.rename(target, &path("renamed"));
    let _ = files.rename(&path("renamed"), target);
    let _ = files.delete(target, Recursion::None);
    let _ = files.delete(target, Recursion::All);
    read
}

#[test]
fn links_that_lead_out_lead_nowhere() {
    let place = Place::new();
    let outside = outside(&place);
    let absolute = outside.to_str().unwrap();
    let files =
        HostFilesystem::open(&place.root, None, Access::ReadWrite, FilesystemLimits::default()).unwrap();
    for (number, target) in [
        absolute,
        "../outside",
        "../outside/dir",
        "../outside/secret",
        "/",
        "..",
        "../..",
        "/etc/passwd",
        "../work/../outside",
        "/proc/self/root",
        "/proc/self/cwd",
    ]
    .iter()
    .enumerate()
    {
        let link = format!("link{number}");
        for below in ["", "/secret", "/dir/secret", "/new", "/new/deep"] {
            let _ = fs::remove_file(place.path(&link));
            place.link(&link, target);
            let name = path(&format!("{link}{below}"));
            let seen = everything(&files, &name);
            // If a file of the workspace has taken the name, its content is not secret.
            assert!(!seen.iter().any(|bytes| bytes == SECRET), "{target} {below}");
            assert_untouched(&outside);
        }
    }
    // A path that leaves the workspace and returns to it is outside too.
    place.write("inside", "x");
    place.link("around", "../work/inside");
    assert!(matches!(files.read_bytes(&path("around")), Err(FilesystemError::Outside { .. })));
}

#[test]
fn what_is_no_file_is_not_opened() {
    let place = Place::new();
    place.fifo("fifo");
    place.link("to-fifo", "fifo");
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    place.link("to-device", "/dev/zero");
    let files =
        HostFilesystem::open(&place.root, None, Access::ReadWrite, FilesystemLimits::default()).unwrap();
    // There is no peer: opening one would block for ever.
    for name in ["fifo", "to-fifo", "socket"] {
        assert!(matches!(files.read_bytes(&path(name)), Err(FilesystemError::Special { .. })), "{name}");
        for mode in [WriteMode::Overwrite, WriteMode::Append] {
            assert!(
                matches!(files.write_bytes(&path(name), b"x", mode), Err(FilesystemError::Special { .. })),
                "{name}"
            );
        }
    }
    assert!(matches!(files.read_bytes(&path("to-device")), Err(FilesystemError::Outside { .. })));
    // Only root can create a device, and not everywhere.
    let device = rustix::fs::makedev(1, 5);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("zero"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::RWXU,
        device,
    );
    if made.is_ok() {
        assert!(matches!(files.read_bytes(&path("zero")), Err(FilesystemError::Special { .. })));
        place.open().capture().unwrap();
    }
}

#[test]
fn the_runtimes_own_files_are_closed_whichever_way_one_comes() {
    let place = Place::new();
    place.write("cfg/store/database", "mine");
    place.write("cfg/other", "x");
    place.link("direct", "cfg/store");
    place.link("file", "cfg/store/database");
    place.link("cfg/beside", "store/../store");
    let workspace = place.open_with(|options| options.store_directory = place.path("cfg/store"));
    let before = fs::read(place.path("cfg/store/database")).unwrap();
    let files = workspace.filesystem();
    for name in [
        "cfg/store",
        "cfg/store/database",
        "cfg/store/new",
        "direct/database",
        "direct/new/x",
        "file",
        "cfg/beside/database",
    ] {
        for refused in [
            files.read_bytes(&path(name)).map(drop),
            files.write_bytes(&path(name), b"x", WriteMode::Append),
            files.write_bytes(&path(name), b"x", WriteMode::Overwrite),
        ] {
            // A missing entry is reported as missing.
            let missing = name == "direct/new/x" && matches!(refused, Err(FilesystemError::NotFound { .. }));
            assert!(
                missing || matches!(refused, Err(FilesystemError::Reserved { .. })),
                "{name}: {refused:?}"
            );
        }
        assert!(!place.path("cfg/store/new").exists(), "{name}");
    }
    for refused in [
        files.stat(&path("cfg/store")).map(drop),
        files.list(&path("cfg/store")).map(drop),
        files.list(&path("direct")).map(drop),
        files.delete(&path("cfg/store"), Recursion::All),
        files.delete(&path("cfg"), Recursion::All),
        files.rename(&path("cfg"), &path("moved")),
        files.rename(&path("cfg/store"), &path("moved")),
        files.make_directory(&path("cfg/store/new/er")),
        files.rename(&path("cfg/other"), &path("cfg/store/other")),
    ] {
        assert!(matches!(refused, Err(FilesystemError::Reserved { .. })), "{refused:?}");
    }
    let listed: Vec<_> = files.list(&path("cfg")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(listed, ["beside", "other"]);
    assert_eq!(fs::read(place.path("cfg/store/database")).unwrap(), before);
    for name in [".backstitch-tmp-1", "a/.backstitch-tmp-x/b"] {
        let refused = files.write_bytes(&path(name), b"", WriteMode::Create);
        assert!(matches!(refused, Err(FilesystemError::Reserved { .. })), "{refused:?}");
    }
}

/// A directory and a file are constantly swapped for links that lead out, while tools use them.
#[test]
fn a_link_that_is_swapped_in_leads_nowhere() {
    let place = Place::new();
    let outside = outside(&place);
    place.write("dir/secret", "inside");
    place.write("file", "inside");
    let files =
        HostFilesystem::open(&place.root, None, Access::ReadWrite, FilesystemLimits::default()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let hostile = {
        let (stop, root, outside) = (stop.clone(), place.root.clone(), outside.clone());
        std::thread::spawn(move || {
            let _ = symlink(&outside, root.join("l1"));
            let _ = symlink(outside.join("secret"), root.join("l2"));
            let swap = |left: &str, right: &str| {
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    root.join(left),
                    rustix::fs::CWD,
                    root.join(right),
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            };
            while !stop.load(Ordering::Relaxed) {
                swap("dir", "l1");
                swap("file", "l2");
            }
        })
    };
    let mut refused = 0;
    for round in 0..4_000 {
        for name in ["dir/secret", "file"] {
            match files.read_bytes(&path(name)) {
                Ok(bytes) => assert_ne!(bytes, SECRET),
                Err(_) => refused += 1,
            }
            let mode = if round % 2 == 0 { WriteMode::Append } else { WriteMode::Overwrite };
            let _ = files.write_bytes(&path(name), b"w", mode);
        }
        let _ = files.write_bytes(&path("dir/new/deep/file"), b"w", WriteMode::Overwrite);
        let _ = files.delete(&path("dir/new"), Recursion::All);
        let _ = files.rename(&path("dir/secret"), &path("dir/secret2"));
        let _ = files.rename(&path("dir/secret2"), &path("dir/secret"));
        if round % 64 == 0 {
            // Restore the files of the test.
            let _ = files.write_bytes(&path("dir/secret"), b"inside", WriteMode::Create);
        }
    }
    stop.store(true, Ordering::Relaxed);
    hostile.join().unwrap();
    assert_untouched(&outside);
    assert!(refused > 0, "the swapping was never met");
}

/// The same while a workspace is captured and restored.
#[test]
fn scans_and_restores_do_not_follow_a_link_that_is_swapped_in() {
    let place = Place::new();
    let outside = outside(&place);
    for number in 0..20 {
        place.write(format!("dir/f{number}"), "inside");
    }
    place.write("dir/secret", "inside");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let stop = Arc::new(AtomicBool::new(false));
    let hostile = {
        let (stop, base, outside) = (stop.clone(), place.root.clone(), outside.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(base.join("dir"), base.join("aside"));
                let _ = symlink(&outside, base.join("dir"));
                std::thread::yield_now();
                let _ = fs::remove_file(base.join("dir"));
                let _ = fs::rename(base.join("aside"), base.join("dir"));
            }
        })
    };
    for round in 0..150 {
        if let Ok(captured) = workspace.capture() {
            let secret = backstitch_core::object::Object::blob(SECRET).id();
            assert!(!captured.objects.iter().any(|object| object.id() == secret), "round {round}");
        }
        let _ = workspace.restore(root);
    }
    stop.store(true, Ordering::Relaxed);
    hostile.join().unwrap();
    assert_untouched(&outside);
    workspace.restore(root).unwrap();
    assert_eq!(place.capture(&workspace), root);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Arbitrary text is either not a path, or one that stays inside.
    #[test]
    fn hostile_paths_never_escape(
        segments in prop::collection::vec(
            prop_oneof![
                Just("..".to_owned()), Just(".".to_owned()), Just(String::new()), Just("out".to_owned()),
                Just("up".to_owned()), Just("dir".to_owned()), Just("secret".to_owned()), Just("outside".to_owned()),
                Just("~".to_owned()), Just("C:".to_owned()), Just("a\\..\\b".to_owned()), Just("\u{2024}\u{2024}".to_owned()),
                Just("%2e%2e".to_owned()), ".{0,6}", "[a-z/.\\\\]{0,8}",
            ],
            0..7,
        ),
        absolute in any::<bool>(),
    ) {
        let place = Place::new();
        let outside = outside(&place);
        place.write("dir/secret", "inside");
        place.link("out", "../outside");
        place.link("up", "..");
        place.link("dir/out", "../../outside/dir");
        let files = HostFilesystem::open(&place.root, None, Access::ReadWrite, FilesystemLimits::default()).unwrap();
        let text = format!("{}{}", if absolute { "/" } else { "" }, segments.join("/"));
        if let Ok(target) = FilePath::new(&text) {
            let seen = everything(&files, &target);
            prop_assert!(!seen.iter().any(|bytes| bytes == SECRET), "{text:?}");
        }
        assert_untouched(&outside);
        let beside: Vec<_> = fs::read_dir(&place.above).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        prop_assert_eq!(beside.len(), 2, "{:?} made {:?}", text, beside);
    }
}
