//! The stored form is stable: a directory has the same root in all versions.

use backstitch_core::object::ObjectId;

use crate::support::Place;

#[test]
fn a_directory_with_all_kinds_of_exceptions_has_the_root_that_it_always_had() {
    let place = Place::new();
    place.write("plain.txt", "plain\n");
    place.write("bin/run", "#!/bin/sh\n");
    place.mode("bin/run", 0o755);
    place.write("secret/key", "key\n");
    place.mode("secret/key", 0o600);
    place.mode("secret", 0o700);
    place.link("link", "bin/run");
    place.link("modules/.gitmodules", "elsewhere");
    place.directory("empty/inside");
    place.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    place.write("nested/.git/objects/.git/x", "x");
    place.mode("nested/.git/HEAD", 0o444);
    place.directory("nested/.git/refs");
    place.write(b"\xff/.git/x", "x");
    place.directory(b"\xfe");
    let workspace = place.open();
    let root = place.capture(&workspace);
    let id = |text: &str| text.parse::<ObjectId>().unwrap();
    assert_eq!(root.tree, id("18c5b34dcc5513bb80506b45f09f288df5ec94de"));
    assert_eq!(root.manifest, id("ec7318f6a1951fc0990ba0c22c5b69c410a72f20"));
}
