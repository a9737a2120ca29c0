//! Opens stores by their addresses.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_store::{Bundle, MemoryStore, SqliteStore};

use super::{StoreAddress, StoresError, prepare};
use crate::ports::{
    BundleError, Objects, OpenBundle, OpenError, Progress, Store, StoreAdmin, TransferProgress,
};

/// What to do about an address that no store has.
const OTHER: &str = "name a file by its path, or `memory:` for a store that ends with the process";

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

/// Opens a bundle, and checks all of it: tables, checksums, journals, objects, references. The file is not changed.
pub fn open_bundle(
    path: &Path,
    progress: Progress<'_, TransferProgress>,
) -> Result<Box<dyn OpenBundle>, BundleError> {
    Ok(Box::new(Bundle::open(path, progress)?))
}

fn absolute(address: &StoreAddress) -> Result<StoreAddress, OpenError> {
    let io = |source| OpenError::Io { path: address.to_string().into(), source };
    address.absolute().map_err(io)
}

fn unknown(scheme: String) -> OpenError {
    OpenError::UnknownAddress { scheme: format!("{scheme}://"), hint: OTHER }
}
