//! A proxy before a server, which loses what networks lose.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::PORT;

/// Calls whose answers are lost.
const CALLS: [&str; 4] = ["append_1(", "append_queued_1(", "take_2(", "release_1("];

/// A proxy on a socket in a directory. Its threads end with the process.
#[derive(Clone)]
pub struct Proxy(Arc<ProxyState>);

#[derive(Default)]
struct ProxyState {
    /// The socket of the server.
    target: Mutex<PathBuf>,
    /// How many answers to lose.
    left: AtomicU32,
    lost: AtomicU32,
    /// Whether no connection is accepted.
    is_away: AtomicBool,
    /// Whether connections stay open and nothing passes.
    is_frozen: AtomicBool,
    /// Time by which everything is late.
    delay_millis: AtomicU64,
    /// Connections that are open.
    open: Mutex<Vec<UnixStream>>,
}

impl Proxy {
    /// Starts a proxy on a socket in a directory, before the server with this socket.
    pub fn start(directory: &Path, server: impl Into<PathBuf>) -> Self {
        let proxy = Self(Arc::default());
        proxy.lead_to(server);
        let listener = UnixListener::bind(directory.join(format!(".s.PGSQL.{PORT}")))
            .expect("a proxy listens in a directory of its own");
        let state = Arc::clone(&proxy.0);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is down refuses the connection too.
                let _ = state.connect(client);
            }
        });
        proxy
    }

    /// Leads new connections to another server.
    pub fn lead_to(&self, server: impl Into<PathBuf>) {
        *self.0.target.lock().unwrap_or_else(PoisonError::into_inner) = server.into();
    }

    /// Loses so many of the next answers: each ends its connection after the server has sent it.
    pub fn lose(&self, answers: u32) {
        self.0.left.store(answers, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub fn lost(&self) -> u32 {
        self.0.lost.load(Ordering::SeqCst)
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for one in self.0.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = one.shutdown(Shutdown::Both);
        }
    }

    /// Accepts no connections. Those that are open stay.
    pub fn refuse(&self) {
        self.0.is_away.store(true, Ordering::SeqCst);
    }

    /// Ends all connections, and accepts none.
    pub fn stop(&self) {
        self.refuse();
        self.cut();
    }

    /// Lets nothing pass, and ends no connection. What was sent meanwhile arrives when it resumes.
    pub fn freeze(&self) {
        self.0.is_frozen.store(true, Ordering::SeqCst);
    }

    /// Delays everything.
    pub fn delay(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0.delay_millis.store(millis, Ordering::SeqCst);
    }

    /// Accepts connections and lets everything pass again.
    pub fn resume(&self) {
        self.0.is_away.store(false, Ordering::SeqCst);
        self.0.is_frozen.store(false, Ordering::SeqCst);
        self.delay(Duration::ZERO);
    }
}

impl ProxyState {
    fn connect(self: &Arc<Self>, client: UnixStream) -> std::io::Result<()> {
        if self.is_away.load(Ordering::SeqCst) {
            return Ok(());
        }
        let target = self.target.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let server = UnixStream::connect(target)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A stop may have ended the others since.
        if self.is_away.load(Ordering::SeqCst) {
            return Ok(());
        }
        open.push(client.try_clone()?);
        drop(open);
        let is_commit = Arc::new(AtomicBool::new(false));
        let (from, to) = (client.try_clone()?, server.try_clone()?);
        let (seen, state) = (Arc::clone(&is_commit), Arc::clone(self));
        std::thread::spawn(move || {
            state.pump(from, to, |bytes| {
                let has = |call: &&str| bytes.windows(call.len()).any(|part| part == call.as_bytes());
                seen.store(CALLS.iter().any(has), Ordering::SeqCst);
                true
            });
        });
        let state = Arc::clone(self);
        std::thread::spawn(move || {
            let losing = Arc::clone(&state);
            state.pump(server, client, |_| {
                let take = |left: u32| left.checked_sub(1);
                let is_lost = is_commit.swap(false, Ordering::SeqCst)
                    && losing.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
                if is_lost {
                    losing.lost.fetch_add(1, Ordering::SeqCst);
                }
                !is_lost
            });
        });
        Ok(())
    }

    /// Passes bytes on until one side ends or `passes` says no.
    fn pump(&self, mut from: UnixStream, mut to: UnixStream, passes: impl Fn(&[u8]) -> bool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            let delay = self.delay_millis.load(Ordering::SeqCst);
            if delay > 0 {
                std::thread::sleep(Duration::from_millis(delay));
            }
            while self.is_frozen.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !passes(&bytes[..length]) || to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }
}
