//! Checkouts: how the files of a session are opened for a worker that has claimed it.
//!
//! The journal names the files that the session continues with, and the store holds them. So they can be written on any machine. Whether
//! a session works in a checkout or in its own directory is decided by the [adapters](crate::Adapters). A session in a checkout is an
//! isolated one: its changes are merged into the project by [`Runtime::apply`], and it is never continued in the project itself.

use std::path::PathBuf;

use backstitch_core::ports::SessionClaim;

use super::opening::unopened;
use crate::adapters::CheckoutRequest;
use crate::agent::Agent;
use crate::error::Result;
use crate::live::{files_to_continue, load_view};
use crate::runtime::Runtime;
use crate::workspace::OpenedWorkspace;

impl Runtime {
    /// Opens the checkout of a claimed session, if it works in one here.
    pub(super) async fn checkout_of(
        &self,
        agent: &Agent,
        claim: &SessionClaim,
    ) -> Result<Option<OpenedWorkspace>> {
        let spec = agent.workspace_spec().filter(|spec| spec.opened().is_none() && !spec.in_place);
        let Some(spec) = spec.filter(|_| self.adapters.has_checkouts()) else { return Ok(None) };
        let session = claim.session;
        let reading = self.read_off_thread(move |store| async move {
            let view = load_view(&*store, session, None).await?;
            let directory = view.directory().map(PathBuf::from);
            Ok((directory, files_to_continue(&*store, view).await?))
        });
        let (directory, files) = reading.await?;
        let request =
            CheckoutRequest { directory, files, ..CheckoutRequest::new(session, &spec, claim.fence) };
        self.adapters.checkout(request).await.map_err(|error| unopened(&spec.path, error))
    }
}
