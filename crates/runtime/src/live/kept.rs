//! Files that rewinds leave as they are.
//!
//! A program that reports its own work has settings in the files that it works on, with the hooks of that report and with
//! permissions that a person has granted. They are recorded like all files. A rewind that restored them would install hooks
//! that were removed since, and take back permissions. So its target has these files as they are now.

use std::sync::Arc;

use backstitch_core::journal::WorkspaceRevision;
use backstitch_core::object::Object;
use backstitch_core::ports::{FilePath, ObjectOverlay, Objects};
use backstitch_filesystem::format;

use super::{LiveSession, blocking, recorded};
use crate::error::RuntimeError;

/// Files that rewinds leave as they are.
#[derive(Clone)]
pub struct KeptFiles {
    /// The files. Those that do not exist are left missing.
    pub paths: Vec<FilePath>,
    /// The objects of the store of the session.
    pub objects: Arc<dyn Objects>,
}

impl LiveSession {
    /// Makes rewinds of this session, and undoing or repeating them, leave these files as they are. Restoring them by name
    /// still does. Only the first call has an effect.
    pub fn keep_files(&self, kept: KeptFiles) {
        let _ = self.kept_files.set(kept);
    }

    /// Returns the target of a rewind with the kept files as they are now, and the objects of it that are not stored.
    pub(crate) async fn with_kept_files(
        &self,
        target: Option<WorkspaceRevision>,
    ) -> Result<(Option<WorkspaceRevision>, Vec<Object>), RuntimeError> {
        let (Some(kept), Some(files)) = (self.kept_files.get().cloned(), target) else {
            return Ok((target, Vec::new()));
        };
        let Some(now) = self.capture_files().await? else { return Ok((target, Vec::new())) };
        let (now, mut objects) = recorded(now);
        let grafted = blocking(move || {
            let known = ObjectOverlay::new(objects.iter().cloned(), &*kept.objects);
            let paths: Vec<&[u8]> = kept.paths.iter().map(|path| path.as_str().as_bytes()).collect();
            let grafted = format::graft(&known, files.root, now.root, &paths)?;
            objects.extend(grafted.objects);
            Ok((grafted.root, objects))
        });
        let (root, objects) = grafted.await?;
        if root == files.root {
            return Ok((target, Vec::new()));
        }
        Ok((Some(WorkspaceRevision { root, ..files }), objects))
    }
}

debug_fields!(KeptFiles { paths });
