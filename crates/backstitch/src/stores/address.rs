//! Addresses of stores, and stores that are opened by them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use backstitch_store::{MemoryStore, SqliteStore};
#[cfg(feature = "postgres")]
use backstitch_store::{PostgresAddress, PostgresStore, ServerCheck};

use super::{StoresError, prepare};
#[cfg(feature = "postgres")]
use super::{make_private, state_directory};
#[cfg(feature = "postgres")]
use crate::digest::Digest;
use crate::ports::{Objects, OpenError, Queue, Store, StoreAdmin};

/// The address of the store in memory.
const MEMORY: &str = "memory:";

/// What to do about an address that no store has.
const OTHER: &str = "name a file by its path, a PostgreSQL server by `postgres://…`, or `memory:` for a store that ends with the process";

/// Names a store: a path, or an address or a word for a store that is not a file.
///
/// ```
/// use backstitch::stores::StoreAddress;
///
/// assert_eq!(StoreAddress::new("memory:"), StoreAddress::Memory);
/// assert_eq!(StoreAddress::new("work/store.db"), StoreAddress::File("work/store.db".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreAddress {
    /// A path: the store is a SQLite file.
    File(PathBuf),
    /// `memory:`: a new store in memory, which is lost when the process ends.
    Memory,
    /// `postgres://…`: the store is a schema of a database in a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server(ServerAddress),
    /// An address that begins with `postgres://` and cannot be used. The rest of it may hold a password, and is not kept.
    #[cfg(feature = "postgres")]
    InvalidServer {
        /// What is wrong with it.
        reason: String,
    },
    /// An address of a kind that this program cannot open, such as `mysql://…`. The rest of it may hold a password, and is not kept.
    Other {
        /// The part before `://`.
        scheme: String,
    },
}

/// The variable that holds the password of a server whose address has none.
#[cfg(feature = "postgres")]
pub const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// A store in a server, with the directory of this machine for files beside it.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    address: Box<PostgresAddress>,
    directory: Option<PathBuf>,
}

#[cfg(feature = "postgres")]
impl ServerAddress {
    fn new(text: &str) -> Result<Self, String> {
        let address = PostgresAddress::parse(text).map_err(|error| error.reason)?;
        // The same store has the same directory, however its address is written.
        let digest = Digest::of(address.to_string().as_bytes()).to_string();
        let name: String = digest.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        let directory = state_directory().ok().map(|state| state.join("servers").join(name));
        Ok(Self { address: Box::new(address), directory })
    }

    /// Address with the password of the environment, if it has none itself.
    fn complete(&self) -> PostgresAddress {
        let address = (*self.address).clone();
        match std::env::var(PASSWORD_VARIABLE) {
            Ok(password) => address.with_password(&password),
            Err(_) => address,
        }
    }
}

impl StoreAddress {
    /// Reads an address. A file whose name is an address of another kind can be named as `./NAME`.
    pub fn new(address: impl AsRef<Path>) -> Self {
        let path = address.as_ref();
        let text = path.to_str().unwrap_or_default();
        match (text, scheme_of(text)) {
            (MEMORY, _) => Self::Memory,
            #[cfg(feature = "postgres")]
            (_, Some("postgres" | "postgresql")) => match ServerAddress::new(text) {
                Ok(server) => Self::Server(server),
                Err(reason) => Self::InvalidServer { reason },
            },
            (_, Some(scheme)) => Self::Other { scheme: scheme.to_owned() },
            _ => Self::File(path.to_owned()),
        }
    }

    /// Makes a path absolute, so that the address names the same store in every directory.
    pub fn absolute(&self) -> io::Result<Self> {
        match self {
            Self::File(path) => std::path::absolute(path).map(Self::File),
            other => Ok(other.clone()),
        }
    }

    /// Returns the path of a store that is a file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }

    /// Sets the password of a server, unless the address has one.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn with_password(self, password: Option<&str>) -> Self {
        match (self, password) {
            (Self::Server(server), Some(password)) => {
                let address = Box::new(server.address.with_password(password));
                Self::Server(ServerAddress { address, ..server })
            }
            (other, _) => other,
        }
    }

    /// Returns the directory of a store that is a file, or that of this user for files beside a store in a server. No agent works in it.
    pub fn directory(&self) -> Option<&Path> {
        #[cfg(feature = "postgres")]
        if let Self::Server(server) = self {
            return server.directory.as_deref();
        }
        Some(self.path()?.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    }

    /// Returns whether the store is in a server, so that several machines may use it.
    pub fn is_server(&self) -> bool {
        #[cfg(feature = "postgres")]
        if matches!(self, Self::Server(_)) {
            return true;
        }
        false
    }

    /// Returns whether the store certainly has to be created.
    pub fn is_missing(&self) -> bool {
        self.path().is_some_and(|path| !path.exists())
    }
}

/// Returns the part of a text before `://`, if it looks like the address of a server.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (is_scheme && scheme.bytes().all(is_of_scheme)).then_some(scheme)
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => fmt::Display::fmt(&path.display(), formatter),
            Self::Memory => formatter.write_str(MEMORY),
            #[cfg(feature = "postgres")]
            Self::Server(server) => fmt::Display::fmt(&server.address, formatter),
            #[cfg(feature = "postgres")]
            Self::InvalidServer { .. } => formatter.write_str("postgres://…"),
            Self::Other { scheme } => write!(formatter, "{scheme}://…"),
        }
    }
}

/// An open store by its ports.
///
/// ```
/// use backstitch::stores::{self, StoreAddress};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let opened = stores::open(&StoreAddress::Memory)?;
/// assert!(opened.store.sessions().await?.is_empty());
/// assert!(opened.admin.verify().await?.is_sound());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenedStore {
    /// The address, with an absolute path.
    pub address: StoreAddress,
    /// What sessions need.
    pub store: Arc<dyn Store>,
    /// The stored content, which workspaces need.
    pub objects: Arc<dyn Objects>,
    /// What looks after the store itself.
    pub admin: Arc<dyn StoreAdmin>,
    /// The sessions that wait for workers.
    pub queue: Arc<dyn Queue>,
}

impl OpenedStore {
    /// Creates a store in memory.
    pub fn in_memory() -> Self {
        Self::over(StoreAddress::Memory, MemoryStore::new())
    }

    fn over(address: StoreAddress, store: impl Store + Objects + StoreAdmin + Queue + 'static) -> Self {
        let store = Arc::new(store);
        Self { address, store: store.clone(), objects: store.clone(), admin: store.clone(), queue: store }
    }
}

impl fmt::Debug for OpenedStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenedStore").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Opens a store for reading and writing, and creates it, and its directory, if it does not exist.
pub fn open(address: &StoreAddress) -> Result<OpenedStore, StoresError> {
    let unopened = |source| StoresError::Open { address: address.clone(), source };
    let absolute = absolute(address).map_err(unopened)?;
    if let Some(path) = absolute.path() {
        prepare(path)?;
    }
    #[cfg(feature = "postgres")]
    if let StoreAddress::Server(server) = &absolute {
        if let Some(directory) = &server.directory {
            let unusable = |source| StoresError::Unusable { path: directory.clone(), source };
            make_private(directory).map_err(unusable)?;
        }
        let store = PostgresStore::open(&server.complete()).map_err(unopened)?;
        return Ok(OpenedStore::over(absolute, store));
    }
    open_by(absolute, SqliteStore::open).map_err(unopened)
}

/// Opens an existing store for reading. Nothing is changed, and every write is refused.
pub fn open_read_only(address: &StoreAddress) -> Result<OpenedStore, OpenError> {
    open_by(absolute(address)?, SqliteStore::open_read_only)
}

fn open_by(
    address: StoreAddress,
    open: fn(PathBuf) -> Result<SqliteStore, OpenError>,
) -> Result<OpenedStore, OpenError> {
    match address {
        StoreAddress::File(path) => {
            let store = open(path.clone())?;
            Ok(OpenedStore::over(StoreAddress::File(path), store))
        }
        StoreAddress::Memory => Ok(OpenedStore::in_memory()),
        #[cfg(feature = "postgres")]
        StoreAddress::Server(server) => {
            let store = PostgresStore::open_read_only(&server.complete())?;
            Ok(OpenedStore::over(StoreAddress::Server(server), store))
        }
        #[cfg(feature = "postgres")]
        StoreAddress::InvalidServer { reason } => Err(OpenError::InvalidAddress { reason }),
        StoreAddress::Other { scheme } => Err(unknown(scheme)),
    }
}

/// Returns the administration of a store that may be damaged, or have an older version, for
/// [`backup`](StoreAdmin::backup) and [`salvage`](StoreAdmin::salvage). The store itself is not opened yet.
pub fn open_for_rescue(address: &StoreAddress) -> Result<Arc<dyn StoreAdmin>, OpenError> {
    match absolute(address)? {
        StoreAddress::File(path) => Ok(Arc::new(SqliteStore::for_rescue(path)?)),
        StoreAddress::Memory => Ok(Arc::new(MemoryStore::new())),
        #[cfg(feature = "postgres")]
        StoreAddress::Server(server) => Ok(Arc::new(PostgresStore::open_read_only(&server.complete())?)),
        #[cfg(feature = "postgres")]
        StoreAddress::InvalidServer { reason } => Err(OpenError::InvalidAddress { reason }),
        StoreAddress::Other { scheme } => Err(unknown(scheme)),
    }
}

/// Checks the settings of a server that the promises of its store depend on. A store without a server has none.
#[cfg(feature = "postgres")]
pub fn check_server(address: &StoreAddress) -> Result<Vec<ServerCheck>, OpenError> {
    match address {
        StoreAddress::Server(server) => {
            Ok(PostgresStore::open_read_only(&server.complete())?.check_server()?)
        }
        _ => Ok(Vec::new()),
    }
}

fn absolute(address: &StoreAddress) -> Result<StoreAddress, OpenError> {
    let io = |source| OpenError::Io { path: address.to_string().into(), source };
    address.absolute().map_err(io)
}

fn unknown(scheme: String) -> OpenError {
    OpenError::UnknownAddress { scheme: format!("{scheme}://"), hint: OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_unless_they_look_like_something_else() {
        for path in ["store.db", "/a/b", "./memory:", "memory", "memory:x", "a/b://c", "://x", "é://x", ""] {
            assert_eq!(StoreAddress::new(path), StoreAddress::File(path.into()), "{path}");
        }
        assert_eq!(StoreAddress::new("memory:"), StoreAddress::Memory);
        for scheme in ["mysql", "http", "x-y+z.1"] {
            let address = StoreAddress::new(format!("{scheme}://me:secret@host/name"));
            assert_eq!(address, StoreAddress::Other { scheme: scheme.to_owned() });
            assert!(!format!("{address} {address:?}").contains("secret"));
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn the_address_of_a_server_is_shown_without_its_password() {
        for scheme in ["postgres", "postgresql"] {
            let address = StoreAddress::new(format!("{scheme}://me:secret@host/name"));
            assert_eq!(address.to_string(), "postgres://me@host/name");
            assert!(!format!("{address:?}").contains("secret") && address.path().is_none());
            assert_eq!(address.directory(), StoreAddress::new("postgres://me@host/name").directory());
        }
        let address = StoreAddress::new("postgres://me:secret@host/name?schema=NO");
        assert!(matches!(&address, StoreAddress::InvalidServer { reason } if reason.contains("schema")));
        assert!(!format!("{address} {address:?}").contains("secret"));
    }
}
