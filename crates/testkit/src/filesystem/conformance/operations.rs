//! Each operation, and the errors that it returns.

use backstitch_core::ports::{FileKind, FilesystemError, Recursion, WriteMode};
use backstitch_filesystem::FilePath;

use super::{Factory, for_all, open, open_empty, path};
use crate::filesystem::model::{Model, operations};
use crate::filesystem::tree::{Leaf, Tree, tree_of};

/// Asserts that a result is one of these errors.
macro_rules! assert_refused {
    ($result:expr, $pattern:pat) => {
        match $result {
            Err($pattern) => {}
            other => panic!("{}: {other:?}", stringify!($result)),
        }
    };
}

fn files(tree: &[(&str, &str)]) -> Tree {
    tree.iter().map(|(path, text)| ((*path).to_owned(), Leaf::file(*text))).collect()
}

/// Written bytes can be read, in each write mode; missing parent directories are created.
pub fn files_are_written_and_read(factory: Factory) {
    let subject = open_empty(factory);
    let fs = subject.filesystem();
    fs.write_bytes(&path("a/b/c.txt"), b"one", WriteMode::Create).unwrap();
    assert_eq!(fs.read_bytes(&path("a/b/c.txt")).unwrap(), b"one");
    fs.write_bytes(&path("a/b/c.txt"), b"2", WriteMode::Overwrite).unwrap();
    assert_eq!(fs.read_bytes(&path("a/b/c.txt")).unwrap(), b"2");
    fs.write_bytes(&path("a/b/c.txt"), b"3", WriteMode::Append).unwrap();
    assert_eq!(fs.read_bytes(&path("a/b/c.txt")).unwrap(), b"23");
    fs.write_bytes(&path("new"), b"x", WriteMode::Append).unwrap();
    fs.write_bytes(&path("also new"), b"", WriteMode::Overwrite).unwrap();
    assert_eq!(tree_of(&*fs), files(&[("a/b/c.txt", "23"), ("new", "x"), ("also new", "")]));
}

/// A write to a directory, below a file, or with `Create` to an existing file is refused, and changes
/// nothing.
pub fn writes_that_do_not_fit_are_refused(factory: Factory) {
    let tree = files(&[("file", "x"), ("directory/file", "y")]);
    let subject = open(factory, &tree);
    let fs = subject.filesystem();
    let write = |at: &str, mode| fs.write_bytes(&path(at), b"z", mode);
    assert_refused!(write("file", WriteMode::Create), FilesystemError::Exists { .. });
    assert_refused!(
        write("directory", WriteMode::Create),
        FilesystemError::Exists { .. } | FilesystemError::IsDirectory { .. }
    );
    for mode in [WriteMode::Overwrite, WriteMode::Append] {
        assert_refused!(write("directory", mode), FilesystemError::IsDirectory { .. });
        assert_refused!(write("file/below", mode), FilesystemError::NotDirectory { .. });
        assert_refused!(write("file/far/below", mode), FilesystemError::NotDirectory { .. });
    }
    for mode in [WriteMode::Create, WriteMode::Overwrite, WriteMode::Append] {
        assert!(fs.write_bytes(&FilePath::root(), b"z", mode).is_err(), "the root is not a file");
    }
    assert_refused!(fs.read_bytes(&path("directory")), FilesystemError::IsDirectory { .. });
    assert_refused!(fs.read_bytes(&FilePath::root()), FilesystemError::IsDirectory { .. });
    assert_refused!(fs.read_bytes(&path("nothing")), FilesystemError::NotFound { .. });
    assert_refused!(fs.read_bytes(&path("no/thing")), FilesystemError::NotFound { .. });
    assert_refused!(fs.read_bytes(&path("file/below")), FilesystemError::NotDirectory { .. });
    assert_eq!(tree_of(&*fs), tree);
}

/// A stat returns kind, size and executable flag of a path.
pub fn files_have_a_stat(factory: Factory) {
    let subject = open(factory, &files(&[("directory/file", "four")]));
    let fs = subject.filesystem();
    let file = fs.stat(&path("directory/file")).unwrap();
    assert_eq!((file.kind, file.bytes, file.executable), (FileKind::File, 4, false));
    assert_eq!(fs.stat(&path("directory")).unwrap().kind, FileKind::Directory);
    assert_eq!(fs.stat(&FilePath::root()).unwrap().kind, FileKind::Directory);
    assert_refused!(fs.stat(&path("nothing")), FilesystemError::NotFound { .. });
    assert_refused!(fs.stat(&path("directory/file/below")), FilesystemError::NotDirectory { .. });
}

/// A list is sorted by the bytes of the names, and covers one directory.
pub fn directories_are_listed_by_name(factory: Factory) {
    let tree = files(&[("b", "1"), ("a/x", "22"), ("a-b", "333"), ("a.b", ""), ("ä", ""), ("B", "")]);
    let subject = open(factory, &tree);
    let fs = subject.filesystem();
    let list = fs.list(&FilePath::root()).unwrap();
    let names: Vec<_> = list.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    let file = FileKind::File;
    let wanted =
        [("B", file), ("a", FileKind::Directory), ("a-b", file), ("a.b", file), ("b", file), ("ä", file)];
    assert_eq!(names, wanted);
    assert_eq!(list[2].bytes, 3);
    assert_eq!(fs.list(&path("a")).unwrap().len(), 1);
    fs.make_directory(&path("empty")).unwrap();
    assert_eq!(fs.list(&path("empty")).unwrap(), []);
    assert_refused!(fs.list(&path("b")), FilesystemError::NotDirectory { .. });
    assert_refused!(fs.list(&path("b/below")), FilesystemError::NotDirectory { .. });
    assert_refused!(fs.list(&path("nothing")), FilesystemError::NotFound { .. });
}

/// Directories are created with their parents; existing directories do not change.
pub fn directories_are_made(factory: Factory) {
    let subject = open(factory, &files(&[("file", "x"), ("directory/file", "y")]));
    let fs = subject.filesystem();
    fs.make_directory(&path("new/deep")).unwrap();
    fs.make_directory(&path("new/deep")).unwrap();
    fs.make_directory(&path("directory")).unwrap();
    fs.make_directory(&FilePath::root()).unwrap();
    assert_refused!(
        fs.make_directory(&path("file")),
        FilesystemError::Exists { .. } | FilesystemError::NotDirectory { .. }
    );
    assert_refused!(fs.make_directory(&path("file/below")), FilesystemError::NotDirectory { .. });
    let mut wanted = files(&[("file", "x"), ("directory/file", "y")]);
    wanted.insert("new/deep".to_owned(), Leaf::EmptyDirectory);
    assert_eq!(tree_of(&*fs), wanted);
}

/// Files and empty directories can be deleted, other directories only with `Recursion::All`, the root never.
pub fn files_and_directories_are_deleted(factory: Factory) {
    let subject =
        open(factory, &files(&[("file", "x"), ("d/e/file", "y"), ("d/file", "z"), ("kept/file", "")]));
    let fs = subject.filesystem();
    assert_refused!(fs.delete(&path("nothing"), Recursion::All), FilesystemError::NotFound { .. });
    assert_refused!(fs.delete(&path("file/below"), Recursion::All), FilesystemError::NotDirectory { .. });
    assert_refused!(fs.delete(&path("d"), Recursion::None), FilesystemError::NotEmpty { .. });
    for recursion in [Recursion::None, Recursion::All] {
        assert!(fs.delete(&FilePath::root(), recursion).is_err(), "the root cannot be deleted");
    }
    assert_eq!(tree_of(&*fs).len(), 4, "nothing changed so far");
    fs.delete(&path("file"), Recursion::None).unwrap();
    fs.delete(&path("d/e/file"), Recursion::All).unwrap();
    fs.delete(&path("d/e"), Recursion::None).unwrap();
    fs.delete(&path("d"), Recursion::All).unwrap();
    assert_eq!(tree_of(&*fs), files(&[("kept/file", "")]));
    fs.delete(&path("kept/file"), Recursion::None).unwrap();
    assert_eq!(fs.list(&path("kept")).unwrap(), [], "a directory stays when its last file is deleted");
}

/// Files and directories are moved with their content.
pub fn files_and_directories_are_moved(factory: Factory) {
    let subject = open(factory, &files(&[("a/b/file", "x"), ("other", "y")]));
    let fs = subject.filesystem();
    fs.make_directory(&path("a/empty")).unwrap();
    fs.rename(&path("a"), &path("moved")).unwrap();
    fs.rename(&path("other"), &path("moved/b/other")).unwrap();
    let mut wanted = files(&[("moved/b/file", "x"), ("moved/b/other", "y")]);
    wanted.insert("moved/empty".to_owned(), Leaf::EmptyDirectory);
    assert_eq!(tree_of(&*fs), wanted);
}

/// A move from a missing path, to an existing path, or of a directory into itself is refused, and changes
/// nothing.
pub fn moves_that_do_not_fit_are_refused(factory: Factory) {
    let tree = files(&[("a/b/file", "x"), ("other", "y")]);
    let subject = open(factory, &tree);
    let fs = subject.filesystem();
    let rename = |from: &str, to: &str| fs.rename(&path(from), &path(to));
    assert_refused!(rename("nothing", "new"), FilesystemError::NotFound { .. });
    assert_refused!(rename("other", "a"), FilesystemError::Exists { .. });
    assert_refused!(rename("a", "other"), FilesystemError::Exists { .. });
    assert_refused!(rename("other", "a/b/file"), FilesystemError::Exists { .. });
    assert_refused!(rename("a", "other/below"), FilesystemError::NotDirectory { .. });
    assert_refused!(rename("other", "no/such/place"), FilesystemError::NotFound { .. });
    for (from, to) in [("a", "a/new"), ("a", "a/b/new"), ("", "new"), ("a", "")] {
        assert!(rename(from, to).is_err(), "{from} to {to}");
    }
    assert_eq!(tree_of(&*fs), tree);
}

/// An executable file stays executable when it is written or moved.
pub fn the_executable_flag_stays(factory: Factory) {
    let subject = open(factory, &files(&[("run", "#!"), ("plain", "x")]));
    let fs = subject.filesystem();
    subject.set_executable(&path("run"), true);
    fs.write_bytes(&path("run"), b"#!/bin/sh\n", WriteMode::Overwrite).unwrap();
    fs.write_bytes(&path("run"), b"true\n", WriteMode::Append).unwrap();
    fs.rename(&path("run"), &path("moved")).unwrap();
    assert!(fs.stat(&path("moved")).unwrap().executable);
    assert!(!fs.stat(&path("plain")).unwrap().executable);
    subject.set_executable(&path("moved"), false);
    assert!(!fs.stat(&path("moved")).unwrap().executable);
}

/// Any bytes are read exactly as they were written.
pub fn bytes_are_kept_as_they_are(factory: Factory) {
    let subject = open_empty(factory);
    let fs = subject.filesystem();
    let all: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for (name, bytes) in
        [("all", &all[..]), ("zeros", &[0; 5_000]), ("cr", b"a\r\nb\r"), ("bom", b"\xef\xbb\xbfx")]
    {
        fs.write_bytes(&path(name), bytes, WriteMode::Create).unwrap();
        assert_eq!(fs.read_bytes(&path(name)).unwrap(), bytes, "{name}");
        assert_eq!(fs.stat(&path(name)).unwrap().bytes, bytes.len() as u64, "{name}");
    }
}

/// A path may have as many segments as the limits permit.
pub fn trees_may_be_deep(factory: Factory) {
    let subject = open_empty(factory);
    let fs = subject.filesystem();
    let deep = vec!["d"; fs.limits().path_depth.min(64)].join("/");
    fs.write_bytes(&path(&deep), b"deep", WriteMode::Create).unwrap();
    assert_eq!(tree_of(&*fs), files(&[(&deep, "deep")]));
    fs.delete(&path("d"), Recursion::All).unwrap();
    assert_eq!(tree_of(&*fs), Tree::new());
}

/// Random operations succeed and fail as in a plain model, and leave the same files.
pub fn random_operations_do_as_the_model_does(factory: Factory) {
    for_all(operations(), |operations| {
        let subject = open_empty(factory);
        let fs = subject.filesystem();
        let mut model = Model::default();
        for operation in &operations {
            let before = model.clone();
            let (done, wanted) = (operation.apply(&*fs), model.apply(operation));
            assert_eq!(done.is_ok(), wanted, "{operation:?} returned {done:?}");
            assert!(wanted || before == model, "the model changes nothing that it refuses");
            assert_eq!(tree_of(&*fs), model.tree(), "after {operation:?}");
        }
    });
}
