//! The guides: each is a doc test, and the index lists it.

use std::path::Path;

#[test]
fn every_guide_is_compiled_and_listed() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    let tests = include_str!("../doc/guides.rs");
    let index = std::fs::read_to_string(guides.join("README.md")).unwrap();
    for entry in std::fs::read_dir(&guides).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        assert!(tests.contains(&format!("docs/guides/{name}\"")), "{name} is not a doc test");
        assert!(index.contains(&format!("({name})")), "{name} is missing in the index");
    }
}
