//! The clients of the revisions with a handshake, and when each was last heard.
//!
//! A client may vanish without a farewell. So their number is limited, and the one that was silent for longest is
//! forgotten first; one that has a request open is not silent. A forgotten client begins again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// The most clients at a time.
const MOST_CLIENTS: usize = 1000;

/// The clients of a server. Clones share them.
#[derive(Clone, Default)]
pub(super) struct KnownClients(Arc<Mutex<HashMap<String, ClientUse>>>);

struct ClientUse {
    last_request: Instant,
    /// The number of its open requests and streams.
    open: usize,
}

/// An open request of a client, until it is dropped.
pub(super) struct OpenRequest {
    clients: KnownClients,
    client: String,
}

impl KnownClients {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, ClientUse>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a request of a client.
    pub(super) fn note_request(&self, client: &str) -> OpenRequest {
        self.with(|clients| {
            let new = || ClientUse { last_request: Instant::now(), open: 0 };
            let client = clients.entry(client.to_owned()).or_insert_with(new);
            (client.last_request, client.open) = (Instant::now(), client.open + 1);
        });
        OpenRequest { clients: self.clone(), client: client.to_owned() }
    }

    /// Removes a client that said farewell, or that the server does not know.
    pub(super) fn remove(&self, client: &str) {
        self.with(|clients| clients.remove(client));
    }

    /// Returns the clients to forget, so that there is room for a new one.
    pub(super) fn forget_silent(&self) -> Vec<String> {
        self.with(|clients| {
            let mut forgotten = Vec::new();
            while clients.len() >= MOST_CLIENTS {
                let silent = clients.iter().min_by_key(|(_, client)| (client.open > 0, client.last_request));
                let Some(name) = silent.map(|(name, _)| name.clone()) else { break };
                clients.remove(&name);
                forgotten.push(name);
            }
            forgotten
        })
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.clients.with(|clients| {
            if let Some(client) = clients.get_mut(&self.client) {
                (client.last_request, client.open) = (Instant::now(), client.open.saturating_sub(1));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_was_silent_for_longest_is_forgotten_first() {
        let clients = KnownClients::default();
        let busy = clients.note_request("busy");
        for number in 0..MOST_CLIENTS - 1 {
            drop(clients.note_request(&format!("client-{number}")));
        }
        drop(clients.note_request("client-0"));
        assert_eq!(clients.forget_silent(), ["client-1"]);
        assert!(clients.forget_silent().is_empty());
        drop(clients.note_request("new"));
        assert_eq!(clients.forget_silent(), ["client-2"]);
        drop(busy);
    }
}
