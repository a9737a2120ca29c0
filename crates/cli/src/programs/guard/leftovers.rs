//! Directories of conversations that nothing needs any more.
//!
//! Each conversation has a small directory beside the store. It is needed as long as its session exists, since the program may
//! continue the conversation at any time. Those of deleted sessions, and of conversations that never had one, are removed
//! when another conversation starts, at most once a day.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use backstitch_bridge::Program;

use super::session;
use crate::open::OpenStore;
use crate::open::guarded::Binding;

/// How long a directory without a session stays: a hook may be about to use it.
const YOUNG: Duration = Duration::from_hours(1);

/// Removes the directories of conversations without a session.
pub(super) async fn remove(place: &OpenStore) {
    for program in Program::ALL {
        let Ok(entries) = fs::read_dir(place.directory.join("guard").join(program.name())) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
            if is_young(&path) {
                continue;
            }
            let binding = Binding::at(path.clone());
            // A conversation that a hook works on is left alone.
            let Ok(Some(_lock)) = binding.lock(Instant::now()) else { continue };
            if session::find_bound(place, &binding).await.is_none() {
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

fn is_young(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|found| found.modified()).ok();
    let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_none_or(|age| age < YOUNG)
}
