//! Addresses of stores, and stores that are opened by them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use backstitch_store::{MemoryStore, SqliteStore};

use super::{StoresError, prepare};
use crate::ports::{Objects, OpenError, Store, StoreAdmin};

/// The address of the store in memory.
const MEMORY: &str = "memory:";

/// What to do about an address that no store has.
const OTHER: &str = "name a file by its path, or `memory:` for a store that ends with the process";

/// Names a store: a path, or a word for a store that is not a file.
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
    /// An address of a kind that this program cannot open, such as `postgres://…`. The rest of it may hold a password, and is not kept.
    Other {
        /// The part before `://`.
        scheme: String,
    },
}

impl StoreAddress {
    /// Reads an address. A file whose name is an address of another kind can be named as `./NAME`.
    pub fn new(address: impl AsRef<Path>) -> Self {
        let path = address.as_ref();
        let text = path.to_str().unwrap_or_default();
        match (text, scheme_of(text)) {
            (MEMORY, _) => Self::Memory,
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

    /// Returns the directory of a store that is a file. No agent works in it.
    pub fn directory(&self) -> Option<&Path> {
        Some(self.path()?.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
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
}

impl OpenedStore {
    /// Creates a store in memory.
    pub fn in_memory() -> Self {
        Self::over(StoreAddress::Memory, MemoryStore::new())
    }

    fn over(address: StoreAddress, store: impl Store + Objects + StoreAdmin) -> Self {
        let store = Arc::new(store);
        Self { address, store: store.clone(), objects: store.clone(), admin: store }
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
        StoreAddress::Other { scheme } => Err(unknown(scheme)),
    }
}

/// Returns the administration of a store that may be damaged, or have an older version, for
/// [`backup`](StoreAdmin::backup) and [`salvage`](StoreAdmin::salvage). The store itself is not opened yet.
pub fn open_for_rescue(address: &StoreAddress) -> Result<Arc<dyn StoreAdmin>, OpenError> {
    match absolute(address)? {
        StoreAddress::File(path) => Ok(Arc::new(SqliteStore::for_rescue(path)?)),
        StoreAddress::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreAddress::Other { scheme } => Err(unknown(scheme)),
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
        for scheme in ["postgres", "postgresql", "http", "x-y+z.1"] {
            let address = StoreAddress::new(format!("{scheme}://me:secret@host/name"));
            assert_eq!(address, StoreAddress::Other { scheme: scheme.to_owned() });
            assert!(!format!("{address} {address:?}").contains("secret"));
        }
    }
}
