//! The directory from the view of tools.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;

use backstitch_core::ports::{
    Access, FileKind, Filesystem, FilesystemError, FilesystemLimits, Recursion, Workspace as _, WriteMode,
};
use backstitch_workspace::HostFilesystem;

use crate::support::{Place, file_path as path};

fn open(place: &Place) -> Arc<dyn Filesystem> {
    Arc::new(HostFilesystem::open(&place.root, None, Access::ReadWrite, FilesystemLimits::default()).unwrap())
}

#[test]
fn files_are_written_in_three_ways() {
    let place = Place::new();
    let files = open(&place);
    files.write_bytes(&path("a/b/c"), b"one", WriteMode::Create).unwrap();
    let error = files.write_bytes(&path("a/b/c"), b"two", WriteMode::Create).unwrap_err();
    assert!(matches!(error, FilesystemError::Exists { path } if path == "a/b/c"));
    files.write_bytes(&path("a/b/c"), b"two", WriteMode::Overwrite).unwrap();
    files.write_bytes(&path("a/b/c"), b"!", WriteMode::Append).unwrap();
    assert_eq!(files.read_bytes(&path("a/b/c")).unwrap(), b"two!");
    files.write_bytes(&path("new/x"), b"1", WriteMode::Append).unwrap();
    files.write_bytes(&path("new2/y"), b"2", WriteMode::Overwrite).unwrap();
    assert_eq!(files.read_bytes(&path("new/x")).unwrap(), b"1");
    assert_eq!(files.read_bytes(&path("new2/y")).unwrap(), b"2");
    for mode in [WriteMode::Overwrite, WriteMode::Append] {
        let error = files.write_bytes(&path("a/b"), b"", mode).unwrap_err();
        assert!(matches!(error, FilesystemError::IsDirectory { .. }), "{error:?}");
        let error = files.write_bytes(&path("a/b/c/d"), b"", mode).unwrap_err();
        assert!(matches!(error, FilesystemError::NotDirectory { .. }), "{error:?}");
    }
    let error = files.write_bytes(&path("a/b"), b"", WriteMode::Create).unwrap_err();
    assert!(matches!(error, FilesystemError::Exists { .. }), "{error:?}");
    let error = files.write_bytes(&path(""), b"", WriteMode::Create).unwrap_err();
    assert!(matches!(error, FilesystemError::IsDirectory { .. }), "{error:?}");
}

#[test]
fn overwriting_is_atomic_and_keeps_the_mode() {
    let place = Place::new();
    place.write("run", "one");
    place.mode("run", 0o751);
    let before = fs::metadata(place.path("run")).unwrap();
    fs::hard_link(place.path("run"), place.above.join("elsewhere")).unwrap();
    open(&place).write_bytes(&path("run"), b"two", WriteMode::Overwrite).unwrap();
    let after = fs::metadata(place.path("run")).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!(after.permissions().mode() & 0o7777, 0o751);
    // A hard link to the same file, outside, is not written to.
    assert_eq!(fs::read(place.above.join("elsewhere")).unwrap(), b"one");
    assert_eq!(fs::read_dir(&place.root).unwrap().count(), 1);
}

#[test]
fn listing_and_looking() {
    let place = Place::new();
    place.write("b", "12345");
    place.write("a/x", "");
    place.write("run", "");
    place.mode("run", 0o755);
    place.link("c", "b");
    place.fifo("f");
    place.write(b"n\xff".as_slice(), "");
    let files = open(&place);
    let listed: Vec<_> = files
        .list(&path(""))
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, entry.kind, entry.bytes))
        .collect();
    let wanted = [
        ("a", FileKind::Directory, 0),
        ("b", FileKind::File, 5),
        ("c", FileKind::Link, 0),
        ("f", FileKind::Other, 0),
        ("n\u{fffd}", FileKind::File, 0),
        ("run", FileKind::File, 0),
    ];
    assert_eq!(listed, wanted.map(|(name, kind, bytes)| (name.to_owned(), kind, bytes)));
    let stat = files.stat(&path("run")).unwrap();
    assert_eq!((stat.kind, stat.executable), (FileKind::File, true));
    assert!(stat.modified.is_some());
    assert_eq!(files.stat(&path("c")).unwrap().kind, FileKind::Link);
    assert_eq!(files.stat(&path("")).unwrap().kind, FileKind::Directory);
    assert!(
        matches!(files.stat(&path("nothing/here")), Err(FilesystemError::NotFound { path }) if path == "nothing/here")
    );
    assert!(matches!(files.stat(&path("b/x")), Err(FilesystemError::NotDirectory { .. })));
    assert!(matches!(files.list(&path("b")), Err(FilesystemError::NotDirectory { .. })));
    assert!(matches!(files.list(&path("nothing")), Err(FilesystemError::NotFound { .. })));
    assert!(matches!(files.read_bytes(&path("a")), Err(FilesystemError::IsDirectory { .. })));
    assert!(matches!(files.read_bytes(&path("")), Err(FilesystemError::IsDirectory { .. })));
    assert!(matches!(files.read_bytes(&path("nothing")), Err(FilesystemError::NotFound { .. })));
}

#[test]
fn deleting_moving_and_making_directories() {
    let place = Place::new();
    place.write("dir/sub/file", "x");
    place.write("target", "kept");
    place.link("dir/link", "../target");
    place.link("dir/to-dir", "../other");
    place.write("other/file", "kept");
    let files = open(&place);
    assert!(matches!(files.delete(&path("dir"), Recursion::None), Err(FilesystemError::NotEmpty { .. })));
    files.rename(&path("dir"), &path("moved")).unwrap();
    assert!(matches!(files.rename(&path("moved"), &path("moved/in")), Err(FilesystemError::Io { .. })));
    assert!(matches!(files.rename(&path("moved"), &path("other")), Err(FilesystemError::Exists { .. })));
    assert!(
        matches!(files.rename(&path("gone"), &path("x")), Err(FilesystemError::NotFound { path }) if path == "gone")
    );
    assert!(
        matches!(files.rename(&path("moved"), &path("no/where")), Err(FilesystemError::NotFound { path }) if path == "no")
    );
    assert!(matches!(
        files.rename(&path("moved"), &path("target/x")),
        Err(FilesystemError::NotDirectory { .. })
    ));
    files.delete(&path("moved"), Recursion::All).unwrap();
    assert_eq!(files.read_bytes(&path("other/file")).unwrap(), b"kept");
    assert_eq!(files.read_bytes(&path("target")).unwrap(), b"kept");
    assert!(matches!(files.delete(&path("moved"), Recursion::All), Err(FilesystemError::NotFound { .. })));
    assert!(matches!(files.delete(&path(""), Recursion::All), Err(FilesystemError::Outside { .. })));
    assert!(matches!(files.rename(&path(""), &path("x")), Err(FilesystemError::Outside { .. })));
    files.make_directory(&path("x/y/z")).unwrap();
    files.make_directory(&path("x/y/z")).unwrap();
    files.delete(&path("x/y/z"), Recursion::None).unwrap();
    assert!(matches!(files.make_directory(&path("target")), Err(FilesystemError::Exists { .. })));
    assert!(matches!(files.make_directory(&path("target/x")), Err(FilesystemError::NotDirectory { .. })));
    files.delete(&path("target"), Recursion::None).unwrap();
}

#[test]
fn links_inside_are_followed_for_reading_and_writing() {
    let place = Place::new();
    place.write("real/file", "one");
    place.link("one", "real/file");
    place.link("deep/two", "../one");
    place.link("dir", "real");
    place.link("loop", "loop");
    place.link("new", "real/new");
    place.link("up", "real/..");
    let files = open(&place);
    assert_eq!(files.read_bytes(&path("deep/two")).unwrap(), b"one");
    assert_eq!(files.read_bytes(&path("dir/file")).unwrap(), b"one");
    files.write_bytes(&path("deep/two"), b"two", WriteMode::Overwrite).unwrap();
    files.write_bytes(&path("deep/two"), b"!", WriteMode::Append).unwrap();
    assert_eq!(fs::read(place.path("real/file")).unwrap(), b"two!");
    assert!(fs::symlink_metadata(place.path("one")).unwrap().is_symlink());
    files.write_bytes(&path("new"), b"made", WriteMode::Overwrite).unwrap();
    assert_eq!(fs::read(place.path("real/new")).unwrap(), b"made");
    assert!(files.write_bytes(&path("new"), b"", WriteMode::Create).is_err());
    assert!(matches!(files.read_bytes(&path("loop")), Err(FilesystemError::Outside { .. })));
    assert!(matches!(files.read_bytes(&path("up")), Err(FilesystemError::IsDirectory { .. })));
}

#[test]
fn limits_and_read_only_access_hold() {
    let place = Place::new();
    place.write("large", vec![0; 200]);
    let limits = FilesystemLimits { file_bytes: 100, ..FilesystemLimits::default() };
    let files = HostFilesystem::open(&place.root, None, Access::ReadWrite, limits).unwrap();
    assert!(matches!(
        files.read_bytes(&path("large")),
        Err(FilesystemError::TooLarge { bytes: 200, limit: 100, .. })
    ));
    assert!(matches!(
        files.write_bytes(&path("x"), &[0; 101], WriteMode::Create),
        Err(FilesystemError::TooLarge { .. })
    ));
    files.write_bytes(&path("x"), &[0; 60], WriteMode::Create).unwrap();
    assert!(matches!(
        files.write_bytes(&path("x"), &[0; 60], WriteMode::Append),
        Err(FilesystemError::TooLarge { bytes: 120, .. })
    ));

    let workspace = place.open_with(|options| options.access = Access::ReadOnly);
    let files = workspace.filesystem();
    assert_eq!(files.access(), Access::ReadOnly);
    let before = place.picture();
    for refused in [
        files.write_bytes(&path("new"), b"", WriteMode::Create),
        files.write_bytes(&path("x"), b"", WriteMode::Overwrite),
        files.write_bytes(&path("x"), b"", WriteMode::Append),
        files.delete(&path("x"), Recursion::All),
        files.make_directory(&path("d")),
        files.rename(&path("x"), &path("y")),
    ] {
        assert!(matches!(refused, Err(FilesystemError::ReadOnly { .. })), "{refused:?}");
    }
    assert_eq!(files.read_bytes(&path("x")).unwrap().len(), 60);
    assert_eq!(place.picture(), before);
}
