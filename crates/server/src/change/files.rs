//! The files of a session, for an operation that moves them.

use backstitch::OperationFiles;
use backstitch::code::ErrorCode;
use backstitch::view::JournalView;

use crate::problem::Problem;
use crate::rights::is_copy;
use crate::table::Call;

/// Returns the files of a session: those of its recorded definition, which knows where they were moved to, or else those of its journal.
pub(super) async fn files_of<Q, B>(call: &Call<Q, B>, view: &JournalView) -> Result<OperationFiles, Problem> {
    let Ok(definition) = call.runtime().recorded_agent(view.session_id()).await else {
        return Ok(OperationFiles::Recorded);
    };
    let Some(path) = &definition.workspace.path else { return Ok(OperationFiles::Untouched) };
    if !is_copy(view, path) {
        call.state.rights.check_directory(path)?;
    }
    let mut spec = definition.workspace_spec()?.unwrap_or_default();
    // A copy that was deleted is created again. No other directory is.
    spec.in_place = view.isolation().is_none();
    Ok(OperationFiles::Within(spec))
}

/// Refuses to move the files of another program, which may still run and does not report it here.
pub(super) fn check_own(view: &JournalView) -> Result<(), Problem> {
    if !view.created().agent.is_null() {
        return Ok(());
    }
    let detail = "another program works in this session, and its files are not moved over HTTP";
    Err(Problem::new(ErrorCode::GuardedSession, detail).with_hint(Some("use the command on this machine")))
}
