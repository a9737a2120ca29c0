//! Stores in schemas of their own.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use backstitch_core::ports::{OpenBundle, Queue, Store, StoreAdmin};
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
        // The two connections of the pooler serve all tests that run at a time.
        Some(Self::at(server, address, options().with_deadline(Duration::from_secs(60))))
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
        let store = PostgresStore::open_with(&parsed(&address), options).expect("a new store can be made");
        Self { store, server, address }
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
