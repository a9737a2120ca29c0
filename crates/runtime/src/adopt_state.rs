//! Creation of sessions from a composite snapshot.

use backstitch_core::execution::CompositeSnapshot;

use crate::adopt::Export;
use crate::agent::Agent;
use crate::driver::Driver;
use crate::error::RuntimeError;
use crate::runtime::{Runtime, SessionOptions};

impl Runtime {
    /// Creates a session that continues from a composite snapshot: slices, snapshotable resources and files.
    /// Its latest evaluation can be resumed.
    ///
    /// The options name the resources and files, and these are restored from the snapshot. The previous state
    /// of the files is recorded first. If the snapshot does not fit them, or if a part of it is not stored
    /// here, this fails before anything is created or changed.
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
        let adopted = self.adopt(&agent, Export::of_snapshot(&snapshot.session)?, options).await?;
        let states = snapshot.resources.clone();
        let opening = async move {
            let done = adopted.adopt_parts(states).await;
            adopted.or_release(done).await
        };
        let live = self.open_in_task(opening).await?;
        Ok(Driver::new(live, agent))
    }
}
