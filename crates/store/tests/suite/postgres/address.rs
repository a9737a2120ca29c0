//! Statements of the store have no names, and its errors no passwords.

use std::fs;
use std::path::Path;

/// A statement with a name would be another program's behind a pooler.
#[test]
fn no_statement_is_prepared() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres");
    let mut read = 0;
    for entry in fs::read_dir(place).unwrap().flatten() {
        if let Ok(text) = fs::read_to_string(entry.path()) {
            read += 1;
            for word in [".prepare", "_cached(", ".query_opt(", ".query_one(", ".query_raw(", ".execute("] {
                assert!(!text.contains(word), "{} has {word}", entry.path().display());
            }
        }
    }
    assert!(read > 20);
}
