//! The directory of a run, with its store, and a way to the store for each process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    BoxFuture, Objects, Owner, Policy, Queue, Store, StoreAdmin, Workspace, directory_holder,
};
use backstitch_core::session::BoxError;
use backstitch_runtime::{Adapters, OpenedWorkspace, Runtime, SessionFiles, WorkspaceSpec};
use backstitch_store::{PostgresAddress, PostgresOptions, PostgresStore, SqliteStore};
use backstitch_testkit::postgres::{self, PORT, Proxy, TestServer, USER};
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

use super::PATIENCE;
use super::checks::Acknowledgements;
use crate::counting::CountingStore;

/// How many workers there are.
pub(crate) const WORKERS: usize = 4;
/// The number of the test among the processes, which no fault hits.
pub(crate) const TEST: usize = WORKERS;
/// The worker that reaches the server through the pooler.
pub(crate) const POOLED: usize = 3;
/// Time after which a worker that no longer renews its lease holds nothing.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Postgres,
    Sqlite,
}

pub(crate) struct Place {
    pub(crate) root: PathBuf,
    /// The address of the store for each process, or its path.
    addresses: Vec<String>,
    /// A proxy for each process.
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) server: Option<TestServer>,
    _directories: Vec<TempDir>,
}

impl Place {
    /// A new place, with the tables of a server on a disk of so many bytes. `None`, loudly, without a server.
    pub(crate) fn new(backend: Backend, disk: Option<u64>) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["files", "outside", "store"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let (mut addresses, mut proxies, mut server) = (Vec::new(), Vec::new(), None);
        let mut directories = vec![directory];
        match backend {
            Backend::Sqlite => {
                let path = root.join("store/store.db").to_str().unwrap().to_owned();
                addresses = vec![path; WORKERS + 1];
            }
            Backend::Postgres => {
                let own = tempfile::tempdir().unwrap();
                let mut started = postgres::private_server(own.path())?;
                if let Some(bytes) = disk {
                    started.use_small_disk(bytes);
                }
                for process in 0..=WORKERS {
                    let sockets = root.join(process.to_string());
                    std::fs::create_dir(&sockets).unwrap();
                    let pooler = started.pooler_socket().filter(|_| process == POOLED);
                    proxies.push(Proxy::start(&sockets, pooler.unwrap_or(started.socket())));
                    let host = sockets.to_str().unwrap().replace('/', "%2F");
                    addresses.push(format!("postgres://{USER}@{host}:{PORT}/postgres?schema=chaos"));
                }
                server = Some(started);
                directories.push(own);
            }
        }
        Some(Self { root, addresses, proxies, server, _directories: directories })
    }

    /// The place of another process.
    pub(crate) fn existing(root: PathBuf, process: usize, address: String) -> Self {
        let mut addresses = vec![String::new(); WORKERS + 1];
        addresses[process] = address;
        Self { root, addresses, proxies: Vec::new(), server: None, _directories: Vec::new() }
    }

    /// The place of the test for a thread of its own.
    pub(crate) fn of_test(&self) -> Self {
        Self::existing(self.root.clone(), TEST, self.address(TEST).to_owned())
    }

    /// Migrates the store, as a new version does that opens it. The server may just be away.
    pub(crate) fn migrate(&self) {
        let began = Instant::now();
        while let Err(error) = self.open(TEST) {
            assert!(began.elapsed() < PATIENCE, "the store cannot be migrated while workers run: {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn address(&self, process: usize) -> &str {
        &self.addresses[process]
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// Kills the server, and lets its standby take its place.
    pub(crate) fn fail_over(&self) {
        let Some(server) = &self.server else { return };
        let socket = server.fail_over();
        for proxy in &self.proxies {
            proxy.lead_to(&socket);
            proxy.cut();
        }
    }

    /// Opens the store as a process.
    pub(crate) fn open(&self, process: usize) -> Result<Opened, BoxError> {
        let address = self.address(process);
        if !address.starts_with("postgres:") {
            return Ok(Opened::of(Arc::new(SqliteStore::open(address)?)));
        }
        let options = PostgresOptions::default().with_lease(LEASE).with_deadline(LEASE);
        Ok(Opened::of(Arc::new(PostgresStore::open_with(&PostgresAddress::parse(address)?, options)?)))
    }
}

/// The ports of an open store.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) admin: Arc<dyn StoreAdmin>,
    objects: Arc<dyn Objects>,
}

impl Opened {
    fn of<S: Store + Queue + StoreAdmin + Objects + 'static>(store: Arc<S>) -> Self {
        Self { store: store.clone(), queue: store.clone(), admin: store.clone(), objects: store }
    }

    /// A runtime that keeps outside of the store what the store has acknowledged.
    pub(crate) fn runtime(&self, place: &Place, process: usize) -> Runtime {
        let acknowledged = Acknowledgements::open(place);
        let store = CountingStore::noting(self.store.clone(), move |session, first, bodies| {
            acknowledged.note(session, first, bodies);
        });
        let directories = Directories { root: place.root.clone(), process, objects: self.objects.clone() };
        let owner = Owner::new(format!("worker {process}, process {}", std::process::id()));
        Runtime::new(Arc::new(store))
            .with_owner(owner)
            .with_queue(self.queue.clone())
            .with_adapters(Arc::new(directories))
    }
}

/// Opens a directory for each session.
struct Directories {
    root: PathBuf,
    process: usize,
    objects: Arc<dyn Objects>,
}

impl Adapters for Directories {
    fn model(&self, _: &str) -> Result<Arc<dyn Policy>, BoxError> {
        Err("agents bring their policies".into())
    }

    fn workspace<'a>(
        &'a self,
        _: &'a WorkspaceSpec,
        session: SessionId,
        _: SessionFiles,
    ) -> BoxFuture<'a, Result<OpenedWorkspace, BoxError>> {
        let directory = files_of(&self.root, session);
        let mut options = OpenOptions::new(
            &directory,
            self.root.join(format!("own.{}", self.process)),
            self.objects.clone(),
        );
        options.locks = Some(self.root.join("locks"));
        options.holder = directory_holder(session);
        Box::pin(async move {
            let opening = move || -> Result<Arc<dyn Workspace>, BoxError> {
                std::fs::create_dir_all(&directory)?;
                Ok(Arc::new(HostWorkspace::open(options)?))
            };
            Ok(tokio::task::spawn_blocking(opening).await??.into())
        })
    }
}

/// The directory of a session.
pub(crate) fn files_of(root: &Path, session: SessionId) -> PathBuf {
    root.join("files").join(session.to_string())
}
