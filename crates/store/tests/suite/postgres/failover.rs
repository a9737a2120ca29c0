//! A standby that takes the place of its server, while a writer holds a session.

use backstitch_core::ports::{StoreAdmin, StoreError};
use backstitch_testkit::postgres::{self, PORT, Proxy};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Temporary, options};
use crate::sqlite::support::{Writer, notes};

/// A store on a server with a standby, and the proxy before them. The directories are removed last.
fn with_standby() -> Option<([TempDir; 2], Temporary, Proxy)> {
    let (own, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = postgres::private_server(own.path())?;
    server.start_standby();
    let proxy = Proxy::start(place.path(), server.socket());
    let address = server.address_on(place.path(), PORT);
    Some(([own, place], Temporary::at(server, address, options()), proxy))
}

fn fail_over(store: &Temporary, proxy: &Proxy) {
    proxy.stop();
    proxy.lead_to(store.server.fail_over());
    proxy.resume();
}

#[test]
fn a_synchronous_standby_has_what_was_acknowledged() {
    let Some((_places, store, proxy)) = with_standby() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["one", "two"])).unwrap();
    fail_over(&store, &proxy);
    writer.append(sample::notes(["three"])).expect("the claim moved with the journal");
    assert_eq!(notes(&*store, sample::session(1)), ["one", "two", "three"]);
    assert!(block_on(StoreAdmin::verify(&*store)).unwrap().is_sound());
}

#[test]
fn a_standby_that_lags_is_found_out_and_nothing_is_written_on_it() {
    let Some((_places, store, proxy)) = with_standby() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["one"])).unwrap();
    store.server.detach_standby();
    writer.append(sample::notes(["two"])).unwrap();
    fail_over(&store, &proxy);
    let lost = writer.append(sample::notes(["three"]));
    assert!(matches!(&lost, Err(StoreError::HistoryLost { .. })), "{lost:?}");
    assert_eq!(notes(&*store, sample::session(1)), ["one"]);
}
