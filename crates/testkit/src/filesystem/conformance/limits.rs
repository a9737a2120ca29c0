//! Read-only access and limits.

use backstitch_core::ports::{Access, FilesystemError, FilesystemLimits, Recursion, WriteMode};
use backstitch_filesystem::FilePath;

use super::{Factory, open_limited, open_read_only, path};
use crate::filesystem::tree::{Leaf, Tree, tree_of};

/// Read-only files can be read, and every change is refused.
pub fn read_only_files_are_not_changed(factory: Factory) {
    let tree = Tree::from([("d/file".to_owned(), Leaf::file("x")), ("e".to_owned(), Leaf::EmptyDirectory)]);
    let subject = open_read_only(factory, &tree);
    let fs = subject.filesystem();
    assert_eq!(fs.access(), Access::ReadOnly);
    let mut results = Vec::new();
    for mode in [WriteMode::Create, WriteMode::Overwrite, WriteMode::Append] {
        results.push(fs.write_bytes(&path("new"), b"y", mode));
        results.push(fs.write_bytes(&path("d/file"), b"y", mode));
    }
    for recursion in [Recursion::None, Recursion::All] {
        results.push(fs.delete(&path("d/file"), recursion));
        results.push(fs.delete(&path("e"), recursion));
    }
    results.push(fs.make_directory(&path("new")));
    results.push(fs.rename(&path("d/file"), &path("moved")));
    for result in results {
        assert!(matches!(result, Err(FilesystemError::ReadOnly { .. })), "{result:?}");
    }
    assert_eq!(tree_of(&*fs), tree);
}

/// A file may have the size of the limit but not more, in every write mode.
pub fn files_have_a_size_limit(factory: Factory) {
    let limits = FilesystemLimits { file_bytes: 10, ..FilesystemLimits::default() };
    let subject = open_limited(factory, limits);
    let fs = subject.filesystem();
    assert_eq!(fs.limits().file_bytes, 10);
    fs.write_bytes(&path("file"), &[7; 10], WriteMode::Create).unwrap();
    fs.write_bytes(&path("small"), &[7; 4], WriteMode::Create).unwrap();
    for (name, bytes, mode) in [
        ("new", 11, WriteMode::Create),
        ("file", 11, WriteMode::Overwrite),
        ("file", 1, WriteMode::Append),
        ("small", 7, WriteMode::Append),
    ] {
        let result = fs.write_bytes(&path(name), &vec![7; bytes], mode);
        assert!(matches!(result, Err(FilesystemError::TooLarge { limit: 10, .. })), "{name}: {result:?}");
    }
    fs.write_bytes(&path("small"), &[7; 6], WriteMode::Append).unwrap();
    let full = Leaf::file([7; 10]);
    assert_eq!(tree_of(&*fs), [("file".to_owned(), full.clone()), ("small".to_owned(), full)].into());
}

/// Paths that are longer than the filesystem's own limits are refused by every operation.
pub fn paths_have_limits(factory: Factory) {
    let limits = FilesystemLimits { path_depth: 3, segment_bytes: 8, ..FilesystemLimits::default() };
    let subject = open_limited(factory, limits);
    let fs = subject.filesystem();
    fs.write_bytes(&path("a/b/c"), b"", WriteMode::Create).unwrap();
    fs.write_bytes(&path("12345678"), b"", WriteMode::Create).unwrap();
    for wrong in ["a/b/d/e", "123456789", "a/123456789"] {
        let wrong = path(wrong);
        let results = [
            fs.write_bytes(&wrong, b"", WriteMode::Create),
            fs.make_directory(&wrong),
            fs.rename(&path("12345678"), &wrong),
            fs.delete(&wrong, Recursion::All),
            fs.read_bytes(&wrong).map(drop),
            fs.stat(&wrong).map(drop),
            fs.list(&wrong).map(drop),
        ];
        for result in results {
            assert!(matches!(result, Err(FilesystemError::InvalidPath(_))), "{wrong}: {result:?}");
        }
    }
    assert_eq!(fs.list(&FilePath::root()).unwrap().len(), 2);
}
