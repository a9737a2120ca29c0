//! Sessions that are copied to other stores and to bundles.

use std::path::Path;

use crate::id::SessionId;
use crate::ports::{Progress, TransferProgress};
use crate::report::{BundleExport, SessionCopy};
use crate::{Runtime, RuntimeError};

impl Runtime {
    /// Copies a session, with everything that it depends on, to another store. What that has already is not written again.
    pub async fn copy(
        &self,
        session: SessionId,
        to: &Runtime,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<SessionCopy, RuntimeError> {
        let report = self.store.admin.copy_session(session, &*to.store.admin, progress).await?;
        Ok(SessionCopy { transfer: report.into(), store: to.store.address.to_string() })
    }

    /// Writes a session, with everything that it depends on, to a new file, at which nothing may exist. [`Runtime::import`] reads it on
    /// another machine. A process may drive the session: the bundle has the records of this moment.
    pub async fn export(
        &self,
        session: SessionId,
        to: &Path,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<BundleExport, RuntimeError> {
        let driver = self.store().holder(session).await?;
        let report = self.store.admin.export_bundle(session, to, progress).await?;
        Ok(BundleExport {
            transfer: report.content.into(),
            bundle: to.to_owned(),
            bytes: report.bytes,
            driver: driver.map(|owner| owner.to_string()),
        })
    }
}
