//! What killed processes have left outside of the store with data of sessions: parts of backups and exports, and the temporary directories of
//! calls, servers and engines. What a running process uses is never among it.

use std::path::PathBuf;

use backstitch::host::{left_temporaries, remove_left_temporaries};
use backstitch::ports::StoreAdmin;

/// Removes the remainders, unless this is a dry run, and returns their paths.
pub(crate) async fn remove(store: &dyn StoreAdmin, dry_run: bool) -> Vec<PathBuf> {
    let (mut files, directories) = match dry_run {
        true => (store.unfinished().await, left_temporaries()),
        false => (store.remove_unfinished().await, remove_left_temporaries()),
    };
    files.extend(directories);
    files
}

/// Prints what [`remove`] returned.
pub(crate) fn print(paths: &[PathBuf], dry_run: bool) {
    let verb = if dry_run { "would remove" } else { "removed" };
    for path in paths {
        println!("{verb} {}, which a killed process had left", path.display());
    }
}
