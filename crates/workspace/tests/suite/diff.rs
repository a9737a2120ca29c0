//! Differences between two roots.

use backstitch_core::ports::{ChangeKind, Workspace as _};

use crate::support::Place;

#[test]
fn each_path_is_told_once_with_what_happened() {
    let place = Place::new();
    for path in ["same/file", "changed", "deleted", "mode", "becomes-dir", "dir/a", "dir/b"] {
        place.write(path, path);
    }
    place.write("becomes-file/inner", "x");
    place.directory("empty-gone");
    place.directory("becomes-full");
    place.link("link", "a");
    place.write("sub/.git/HEAD", "1");
    place.write("sub/.git/config", "1");
    let workspace = place.open();
    let from = place.capture(&workspace);
    place.shell(
        "echo x > changed; rm deleted; chmod 600 mode; rm becomes-dir; mkdir becomes-dir; echo x > becomes-dir/x; \
         rm -r becomes-file; echo x > becomes-file; rmdir empty-gone; mkdir empty-new; echo x > becomes-full/f; \
         ln -sfn b link; echo 2 > sub/.git/HEAD; rm -r dir; mkdir dir; chmod 700 dir; mkdir -p added/deep; \
         echo x > added/deep/file; chmod 644 $(find . -type f -newer sub/.git/config ! -name mode)",
    );
    place.mode("changed", 0o644);
    let to = place.capture(&workspace);
    let told: Vec<_> =
        workspace.diff(from, to).unwrap().into_iter().map(|change| (change.path, change.change)).collect();
    let wanted = [
        ("added/deep/file", ChangeKind::Added),
        ("becomes-dir", ChangeKind::Deleted),
        ("becomes-dir/x", ChangeKind::Added),
        ("becomes-file", ChangeKind::Added),
        ("becomes-file/inner", ChangeKind::Deleted),
        ("becomes-full/f", ChangeKind::Added),
        ("changed", ChangeKind::Modified),
        ("deleted", ChangeKind::Deleted),
        ("dir", ChangeKind::Mode),
        ("dir/a", ChangeKind::Deleted),
        ("dir/b", ChangeKind::Deleted),
        ("empty-gone", ChangeKind::Deleted),
        ("empty-new", ChangeKind::Added),
        ("link", ChangeKind::Modified),
        ("mode", ChangeKind::Mode),
        ("sub/.git/HEAD", ChangeKind::Modified),
    ];
    assert_eq!(told, wanted.map(|(path, change)| (path.to_owned(), change)));
    assert_eq!(workspace.diff(to, to).unwrap(), []);
}

#[test]
fn equal_directories_are_not_entered() {
    let place = Place::new();
    for number in 0..40 {
        place.write(format!("d{number}/file"), format!("{number}"));
    }
    let workspace = place.open();
    let from = place.capture(&workspace);
    place.write("d7/file", "changed");
    let to = place.capture(&workspace);
    // The two can be compared without the trees of other directories.
    let keep: Vec<_> = {
        let mut objects = place.objects.0.lock().unwrap();
        let other = backstitch_core::object::Object::blob(*b"8").id();
        let trees: Vec<_> = objects
            .iter()
            .filter(|(id, object)| {
                **id != from.tree
                    && **id != to.tree
                    && object.bytes().windows(20).any(|window| window == other.as_bytes())
            })
            .map(|(id, _)| *id)
            .collect();
        trees.iter().map(|id| objects.remove(id).unwrap()).collect()
    };
    assert_eq!(keep.len(), 1);
    assert_eq!(workspace.diff(from, to).unwrap().len(), 1);
}
