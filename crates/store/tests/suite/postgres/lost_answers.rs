//! A proxy that loses the answers of commits: the batch is stored, and its writer does not hear of it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use backstitch_core::ports::{StoreAdmin, StoreError};
use backstitch_store::PostgresOptions;
use backstitch_testkit::postgres::{self, PORT};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Temporary, options};
use crate::sqlite::support::{Writer, notes, read};

/// Calls whose answers are lost.
const CALLS: [&str; 4] = ["append_1(", "append_queued_1(", "take_2(", "release_1("];

/// Cuts connections whose next answer is that of such a call, after the server has sent it.
#[derive(Default)]
pub(super) struct Cuts {
    /// How many answers to lose.
    left: AtomicU32,
    lost: AtomicU32,
    /// Whether no connection is accepted.
    is_away: AtomicBool,
    /// Connections that are open.
    open: std::sync::Mutex<Vec<UnixStream>>,
}

impl Cuts {
    /// Loses the next answer.
    pub(super) fn lose_next(&self) {
        self.left.store(1, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub(super) fn lost(&self) -> u32 {
        self.lost.load(Ordering::SeqCst)
    }

    /// Ends all connections, and accepts none.
    pub(super) fn stop(&self) {
        self.is_away.store(true, Ordering::SeqCst);
        for one in self.open.lock().unwrap().drain(..) {
            let _ = one.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Accepts connections again.
    pub(super) fn resume(&self) {
        self.is_away.store(false, Ordering::SeqCst);
    }
}

fn serve(place: &Path, server: PathBuf, cuts: Arc<Cuts>) {
    let listener = UnixListener::bind(place.join(format!(".s.PGSQL.{PORT}"))).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if cuts.is_away.load(Ordering::SeqCst) {
                continue;
            }
            let (server, cuts) = (UnixStream::connect(&server).unwrap(), Arc::clone(&cuts));
            cuts.open.lock().unwrap().push(client.try_clone().unwrap());
            let is_append = Arc::new(AtomicBool::new(false));
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let seen = Arc::clone(&is_append);
            std::thread::spawn(move || {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(length @ 1..) = from.read(&mut bytes) {
                    let text = &bytes[..length];
                    let has = |call: &&str| text.windows(call.len()).any(|part| part == call.as_bytes());
                    seen.store(CALLS.iter().any(has), Ordering::SeqCst);
                    if to.write_all(text).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let (mut from, mut to) = (server, client);
            std::thread::spawn(move || {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(length @ 1..) = from.read(&mut bytes) {
                    let take = |left: u32| left.checked_sub(1);
                    if is_append.swap(false, Ordering::SeqCst)
                        && cuts.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
                    {
                        cuts.lost.fetch_add(1, Ordering::SeqCst);
                        break;
                    }
                    if to.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
}

pub(super) fn behind_proxy() -> Option<(Temporary, Arc<Cuts>, TempDir)> {
    behind_proxy_with(|options| options.with_deadline(std::time::Duration::from_secs(3)))
}

pub(super) fn behind_proxy_with(
    set: impl FnOnce(PostgresOptions) -> PostgresOptions,
) -> Option<(Temporary, Arc<Cuts>, TempDir)> {
    let server = postgres::server()?;
    let (place, cuts) = (TempDir::new().unwrap(), Arc::<Cuts>::default());
    serve(place.path(), server.directory.join(format!(".s.PGSQL.{PORT}")), Arc::clone(&cuts));
    let address = server.address_on(place.path(), PORT);
    Some((Temporary::at(server, address, set(options())), cuts, place))
}

#[test]
fn a_batch_whose_answer_is_lost_is_acknowledged_once() {
    let Some((store, cuts, _place)) = behind_proxy() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    for number in 0..20 {
        cuts.left.store(number % 2, Ordering::SeqCst);
        writer.append(sample::notes([number.to_string()])).expect("a lost answer is found out");
    }
    assert_eq!(cuts.lost.load(Ordering::SeqCst), 10);
    let wanted: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(notes(&*store, sample::session(1)), wanted);
    assert!(block_on(StoreAdmin::verify(&*store)).unwrap().is_sound());
}

#[test]
fn an_outcome_that_cannot_be_found_out_is_said_to_be_unknown() {
    let Some((store, cuts, _place)) = behind_proxy() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    cuts.is_away.store(true, Ordering::SeqCst);
    cuts.left.store(1000, Ordering::SeqCst);
    // The other connections of the pool end too.
    store.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%{schema}%' AND pid <> pg_backend_pid()");
    let unknown = writer.append(sample::notes(["one"]));
    let is_unknown =
        matches!(&unknown, Err(StoreError::OutcomeUnknown { .. } | StoreError::Unavailable { .. }));
    assert!(is_unknown, "{unknown:?}");
    cuts.is_away.store(false, Ordering::SeqCst);
    cuts.left.store(0, Ordering::SeqCst);
    // A busy machine may need more than one attempt for a new connection.
    while matches!(read(&*store, sample::session(1)), Err(StoreError::Unavailable { .. })) {}
    let stored = notes(&*store, sample::session(1));
    assert!(stored.is_empty() || stored == ["one"]);
}

#[test]
fn a_server_that_lost_what_it_acknowledged_is_found_out() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["one", "two"])).unwrap();
    store.sql("DELETE FROM {schema}.records WHERE position = 2");
    store.sql(
        "UPDATE {schema}.sessions s SET head = 2, chain = (SELECT checksum FROM {schema}.records r WHERE r.session = s.id AND r.position = 1)",
    );
    let lost = writer.append(sample::notes(["three"]));
    assert!(matches!(&lost, Err(StoreError::HistoryLost { .. })), "{lost:?}");
    assert_eq!(notes(&*store, sample::session(1)), ["one"]);
}
