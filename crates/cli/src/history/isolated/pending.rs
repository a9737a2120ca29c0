//! Applications that were interrupted. Every command completes those of its store first.

use backstitch::host::interrupted_applies;
use backstitch::stores::StoreAddress;

use crate::common::Common;
use crate::error::message_of;
use crate::open::place::{OpenStore, short};

/// Completes applications of the store that were interrupted. What cannot be completed is reported, and left to the next
/// command.
pub(crate) async fn complete_interrupted(common: &Common) {
    let store = common.known_store().and_then(|store| store.absolute().ok());
    let Some(directory) = store.as_ref().and_then(StoreAddress::directory) else { return };
    if interrupted_applies(directory).is_empty() {
        return;
    }
    let Ok(place) = OpenStore::existing(common) else { return };
    for (session, completed) in place.runtime.complete_applies().await {
        let session = short(session);
        match completed {
            Ok(done) => {
                eprintln!("completed the interrupted apply of session {session} to {}", done.directory);
            }
            Err(error) => {
                let message = message_of(&error.into());
                eprintln!(
                    "warning: the apply of session {session} was interrupted, and cannot be completed: {message}"
                );
            }
        }
    }
}
