//! Stores in schemas of their own.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::{OpenBundle, OpenError, Queue, Store, StoreAdmin, StoreError};
use backstitch_store::{Bundle, PostgresAddress, PostgresOptions, PostgresStore};
use backstitch_testkit::postgres::{self, TestServer, schema_of};

use crate::conformance::HasStore;
use crate::conformance::admin::HasAdmin;
use crate::conformance::queue::HasQueue;

/// Generates tests that run those of these names again, on a server of version 18.
macro_rules! also_on_18 {
    ($($test:ident)*) => {
        mod on_18 {$(
            #[test]
            fn $test() {
                backstitch_testkit::postgres::on_18(super::$test);
            }
        )*}
    };
}
pub(crate) use also_on_18;

/// A store in a new schema.
pub(crate) struct Temporary {
    // Closed before the server may stop.
    store: PostgresStore,
    pub(crate) server: TestServer,
    pub(crate) address: String,
}

pub(crate) fn parsed(address: &str) -> PostgresAddress {
    PostgresAddress::parse(address).expect("addresses of tests are valid")
}

/// Options of tests: garbage of any age is collected.
pub(crate) fn options() -> PostgresOptions {
    PostgresOptions::default().with_garbage_age(Duration::ZERO)
}

/// Repeats what the short deadline of a test ends on a busy machine.
pub(crate) fn until_available<T>(mut run: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 0..100 {
        match run() {
            Err(StoreError::Unavailable { .. }) => {}
            done => return done,
        }
    }
    run()
}

impl Temporary {
    pub(crate) fn new() -> Option<Self> {
        Self::with(options())
    }

    pub(crate) fn with(options: PostgresOptions) -> Option<Self> {
        let server = postgres::server()?;
        let address = server.address();
        Some(Self::at(server, address, options))
    }

    /// The same through the pooler.
    pub(crate) fn pooled() -> Option<Self> {
        let server = postgres::server()?;
        let address = server.pooled_address()?;
        // The two connections of the pooler serve all tests that run at a time. A renewal waits for them like any statement, so the lease is longer.
        let (deadline, lease) = (Duration::from_secs(60), Duration::from_secs(300));
        Some(Self::at(server, address, options().with_deadline(deadline).with_lease(lease)))
    }

    /// A store in a server of version 18.
    pub(crate) fn on_18() -> Option<Self> {
        postgres::on_18(Self::new)
    }

    /// The same through the pooler.
    pub(crate) fn pooled_on_18() -> Option<Self> {
        postgres::on_18(Self::pooled)
    }

    pub(crate) fn at(server: TestServer, address: String, options: PostgresOptions) -> Self {
        let open = || PostgresStore::open_with(&parsed(&address), options.clone());
        // A deadline that a test needs to be short may be over before a busy machine has created the tables.
        let is_late = |error: &OpenError| error.code() == ErrorCode::StoreUnavailable;
        let mut attempts = (0..100).map(|_| open());
        let opened = attempts.find(|opened| !opened.as_ref().is_err_and(is_late)).unwrap_or_else(open);
        Self { store: opened.expect("a new store can be made"), server, address }
    }

    /// Opens the store again.
    pub(crate) fn reopen(&self) -> PostgresStore {
        PostgresStore::open_with(&parsed(&self.address), options()).expect("a store can be opened again")
    }

    /// Executes SQL, in which `{schema}` is the schema of the store.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.sql(&sql.replace("{schema}", schema_of(&self.address)))
    }
}

impl Deref for Temporary {
    type Target = PostgresStore;

    fn deref(&self) -> &PostgresStore {
        &self.store
    }
}

impl HasStore for Temporary {
    fn store(&self) -> &dyn Store {
        &self.store
    }
}

impl HasQueue for Temporary {
    fn queue(&self) -> &dyn Queue {
        &self.store
    }
}

impl HasAdmin for Temporary {
    fn admin(&self) -> &(dyn StoreAdmin + 'static) {
        &self.store
    }

    fn first_parameter(&self) -> &'static str {
        "$1"
    }

    fn open_bundle(&self, path: &Path) -> Option<Box<dyn OpenBundle>> {
        Some(Box::new(Bundle::open(path, &mut |_| {}).expect("the bundle is sound")))
    }
}
