//! Opens the session that records a conversation, with its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch::SessionOptions;
use backstitch::agent_file::AgentDefinition;
use backstitch::host::ObservedSession;
use backstitch::id::SessionId;
use backstitch::message::PolicyName;
use backstitch::ports::Workspace;
use backstitch::stores::state_directory;
use backstitch_bridge::Program;
use backstitch_bridge::settings::Memory;

use crate::open::OpenStore;
use crate::open::guarded::{Binding, CONVERSATION, PROGRAM, Patience};

/// Returns the directory that is covered for a program that was started in a directory: the repository that holds it, since
/// the program works in all of that, or else the directory itself. A repository around the home directory does not count.
pub(super) fn covered(directory: &Path) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let above = directory.ancestors().take_while(|above| Some(*above) != home.as_deref());
    let mut repositories = above.filter(|above| above.join(".git").exists());
    repositories.next().map_or_else(|| directory.to_owned(), Path::to_owned)
}

/// Returns where it is remembered what the guard has changed in files of programs.
pub(super) fn memory() -> Memory {
    Memory::new(state_directory().ok().as_deref())
}

/// Returns the binding of the session that `guard install` made for a directory. The first conversation there takes it over.
pub(super) fn open_prepared(
    place: &OpenStore,
    program: Program,
    directory: &Path,
) -> std::io::Result<Binding> {
    Binding::open(&place.directory, program, &format!("prepared for {}", directory.display()))
}

/// Returns the session of a binding, if it still exists.
pub(super) async fn find_bound(place: &OpenStore, binding: &Binding) -> Option<SessionId> {
    let session = binding.session()?;
    place.store.head(session).await.is_ok().then_some(session)
}

/// Opens a session, and waits for other processes that hold it or its files.
pub(super) async fn open(
    place: &OpenStore,
    program: &str,
    session: SessionId,
    directory: &Path,
    patience: Patience,
) -> anyhow::Result<ObservedSession> {
    let files = files(place, directory, session, patience).await?;
    open_with(place, program, session, files, patience).await
}

/// Opens a session with files that are open, and waits for other processes that hold it.
pub(super) async fn open_with(
    place: &OpenStore,
    program: &str,
    session: SessionId,
    files: Arc<dyn Workspace>,
    patience: Patience,
) -> anyhow::Result<ObservedSession> {
    let name = PolicyName::new(program)?;
    let opened = patience.retry(place, || {
        let options = SessionOptions::with_workspace(files.clone());
        place.runtime.open_observed(session, name.clone(), options)
    });
    Ok(opened.await?)
}

/// Creates a session with this id, for a directory: that of a conversation, or one for the next conversation.
pub(super) async fn create_with_id(
    place: &OpenStore,
    program: &str,
    conversation: Option<&str>,
    (directory, id): (&Path, SessionId),
    patience: Patience,
) -> anyhow::Result<ObservedSession> {
    let files = files(place, directory, id, patience).await?;
    let mut definition = AgentDefinition { name: program.to_owned(), ..AgentDefinition::default() };
    definition.workspace.path = Some(directory.to_owned());
    let tags = [Some((PROGRAM, program)), conversation.map(|conversation| (CONVERSATION, conversation))];
    let options = SessionOptions {
        workspace: Some(files),
        tags: tags.into_iter().flatten().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        id: Some(id),
        ..SessionOptions::default()
    };
    let name = PolicyName::new(program)?;
    Ok(place.runtime.create_observed(definition.to_recorded(), name, options).await?)
}

/// Opens the files of a session, and waits for other processes that hold them.
pub(super) async fn files(
    place: &OpenStore,
    directory: &Path,
    session: SessionId,
    patience: Patience,
) -> anyhow::Result<Arc<dyn Workspace>> {
    Ok(patience.retry(place, || place.runtime.open_to_capture(directory, session)).await?)
}
