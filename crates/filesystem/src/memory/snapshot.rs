//! Snapshots of an in-memory filesystem as a resource of execution state. Its files are a value, so a
//! snapshot is a clone.

use backstitch_core::execution::{LiveSnapshot, PreparedRestore, ResourceSnapshot, Snapshotable};
use backstitch_core::session::BoxError;
use serde_json::Value;

use super::{MemoryFiles, MemoryFilesystem};

impl LiveSnapshot for MemoryFiles {
    fn to_json(&self) -> Result<Value, BoxError> {
        Ok(serde_json::to_value(self)?)
    }
}

impl Snapshotable for MemoryFilesystem {
    fn snapshot_name(&self) -> &'static str {
        "filesystem"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        Ok(ResourceSnapshot::live(MemoryFilesystem::snapshot(self)))
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        let files = match snapshot.downcast::<MemoryFiles>() {
            Some(files) => files.clone(),
            None => serde_json::from_value(snapshot.to_json()?)?,
        };
        Ok(PreparedRestore::new(move |here: &mut Self| {
            here.restore(files);
            Ok(())
        }))
    }
}
