//! Sessions that continue from a snapshot of everything.

use backstitch_core::execution::CompositeSnapshot;

use crate::agent::Agent;
use crate::driver::Driver;
use crate::error::RuntimeError;
use crate::runtime::{Runtime, SessionOptions};

impl Runtime {
    /// Creates a session that continues from a snapshot of everything: slices, snapshotable resources and files. Its latest evaluation
    /// can be resumed.
    ///
    /// Resources and files are those of the options, and become what the snapshot holds; the files as found are recorded before. A
    /// snapshot that does not fit them, or of which something is not stored here, is refused before anything is created or changed.
    pub async fn adopt_state(
        &self,
        agent: Agent,
        snapshot: &CompositeSnapshot,
        options: SessionOptions,
    ) -> Result<Driver, RuntimeError> {
        let resources = options.resources.clone().with_workspace(options.workspace.clone());
        let states = snapshot.resources.clone();
        let checked = tokio::task::spawn_blocking(move || resources.check_restore(&states)).await;
        checked.map_err(|_| RuntimeError::ShuttingDown)??;
        let driver = self.adopt_snapshot(agent, &snapshot.session, options).await?;
        driver.session().adopt_parts(snapshot.resources.clone()).await?;
        Ok(driver)
    }
}
