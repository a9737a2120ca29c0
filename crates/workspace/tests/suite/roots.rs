//! Directories that can be workspaces, and claims to them.

use std::fs;
use std::path::Path;

use backstitch_core::ports::WorkspaceError;
use backstitch_workspace::{HostWorkspace, OpenOptions};

use crate::support::Place;

fn refusal(place: &Place, root: &Path) -> String {
    let mut options = OpenOptions::new(root, place.above.join("store"), place.objects.clone());
    options.locks = Some(place.above.join("locks"));
    match HostWorkspace::open(options) {
        Err(WorkspaceError::RefusedRoot { reason, .. }) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("{} was opened", root.display()),
    }
}

#[test]
fn directories_that_belong_to_more_than_one_project_are_refused() {
    let place = Place::new();
    for root in ["/", "/etc", "/usr", "/tmp", "/home", "/proc/self", "/dev"] {
        if Path::new(root).is_dir() {
            refusal(&place, Path::new(root));
        }
    }
    if let Some(home) = std::env::var_os("HOME").filter(|home| Path::new(home).is_dir()) {
        let home = fs::canonicalize(home).unwrap();
        assert!(refusal(&place, &home).contains("home") || home == Path::new("/"));
    }
    place.write("file", "x");
    assert_eq!(refusal(&place, &place.path("file")), "it is not a directory");
    std::os::unix::fs::symlink("/", place.path("link")).unwrap();
    assert_eq!(refusal(&place, &place.path("link")), "it is the root of the system");
    fs::create_dir_all(place.above.join("store/inside")).unwrap();
    assert!(refusal(&place, &place.above.join("store/inside")).contains("runtime's own directory"));
    assert!(refusal(&place, &place.above.join("store")).contains("runtime's own directory"));
}

#[test]
fn one_session_holds_a_directory_and_those_inside_and_around() {
    let place = Place::new();
    place.directory("inner/most");
    place.directory("inner-beside");
    fs::create_dir(place.above.join("work2")).unwrap();
    let open = |root: &Path, holder: &str| {
        // Each with its own store, as if they were unrelated.
        let mut options = OpenOptions::new(root, root.join(".backstitch"), place.objects.clone());
        options.locks = Some(place.above.join("locks"));
        options.holder = holder.to_owned();
        HostWorkspace::open(options)
    };
    let held = |result: Result<HostWorkspace, WorkspaceError>| match result {
        Err(WorkspaceError::Held { path, holder }) => (path, holder),
        other => panic!("{other:?}"),
    };
    let inner = open(&place.path("inner"), "session A").unwrap();
    let wanted =
        (place.path("inner").display().to_string(), format!("session A (process {})", std::process::id()));
    assert_eq!(held(open(&place.path("inner"), "B")), wanted);
    assert_eq!(held(open(&place.root, "B")), wanted);
    assert_eq!(held(open(&place.path("inner/most"), "B")), wanted);
    let beside = open(&place.path("inner-beside"), "B").unwrap();
    let elsewhere = open(&place.above.join("work2"), "C").unwrap();
    drop(inner);
    drop((beside, elsewhere));
    let outer = open(&place.root, "D").unwrap();
    let wanted = (place.root.display().to_string(), format!("D (process {})", std::process::id()));
    assert_eq!(held(open(&place.path("inner"), "E")), wanted);
    assert_eq!(held(open(&place.root, "E")), wanted);
    drop(outer);
    open(&place.path("inner"), "F").unwrap();
}
