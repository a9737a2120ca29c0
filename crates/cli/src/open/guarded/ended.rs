//! Calls of guarded sessions that have ended without a report.
//!
//! A program that is interrupted or killed does not report the end of its call. Its transcript may hold the result, and a
//! program that is gone makes no more calls. So a command that has to wait for the end of a call looks there first, and closes
//! what has ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstitch::SessionOptions;
use backstitch::code::ErrorCode;
use backstitch::host::{ObservedCall, ObservedSession};
use backstitch::message::PolicyName;
use backstitch::view::JournalView;
use backstitch_bridge::{Program, transcript};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binding::Binding;
use super::processes;
use super::resume::{GuardedSession, open_calls};
use crate::open::place::OpenStore;

/// Name of the file, beside the binding of the conversation.
const FILE: &str = "program.json";

/// The hooks after which a process is certainly the program, and not one that the program starts for each hook.
const CERTAIN: u32 = 2;

/// The process of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ProgramProcess {
    v: u32,
    process: u32,
    /// When it started, as the system counts: the ids of processes are used again.
    started: u64,
    /// The namespace in which this is its id: each container counts its own processes.
    namespace: Option<u64>,
    /// How many hooks it has started, up to [`CERTAIN`].
    hooks: u32,
}

impl Binding {
    /// Remembers the program that has started this hook.
    pub(crate) fn remember_program(&self) -> io::Result<()> {
        let Some((process, started)) = processes::program_above() else { return Ok(()) };
        let known = self.program().filter(|known| (known.process, known.started) == (process, started));
        let hooks = known.map_or(0, |known| known.hooks);
        if hooks >= CERTAIN {
            return Ok(());
        }
        let namespace = processes::namespace();
        let program = ProgramProcess { v: 1, process, started, namespace, hooks: hooks + 1 };
        let temporary = self.directory().join(format!("{FILE}.{}", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(&program)?)?;
        fs::rename(temporary, self.directory().join(FILE))
    }

    fn program(&self) -> Option<ProgramProcess> {
        serde_json::from_slice(&fs::read(self.directory().join(FILE)).ok()?).ok()
    }

    /// Whether the program of the conversation has ended. A program that is not known counts as running.
    fn has_ended(&self) -> bool {
        let known = self.program().filter(|known| known.hooks >= CERTAIN);
        let known = known.filter(|known| known.namespace == processes::namespace());
        known.is_some_and(|known| processes::started_at(known.process) != Some(known.started))
    }
}

/// Records the results of open calls that are in the transcript of the program.
pub(crate) async fn record_results(
    session: &ObservedSession,
    program: Program,
    path: &Path,
) -> anyhow::Result<()> {
    let view = session.view().await;
    if view.calls().all(|call| !call.is_open()) {
        return Ok(());
    }
    for (call, result) in transcript::results(program, path) {
        let id = session.call_id(&call.id).await;
        if let Some(open) = view.call(id).filter(|call| call.is_open()) {
            let call = ObservedCall::new(call.id, &open.name, Value::Null);
            session.record_call_end(call, result).await?;
        }
    }
    Ok(())
}

/// Closes the open calls of a guarded session that have ended, and returns its view after that.
pub(crate) async fn close_ended(place: &OpenStore, view: JournalView) -> anyhow::Result<JournalView> {
    let Some(guarded) = GuardedSession::of(&view) else { return Ok(view) };
    let conversations = guarded.open_conversations(&view, &open_calls(place, &view).await?);
    if conversations.is_empty() {
        return Ok(view);
    }
    let directory = view.directory().map(PathBuf::from).filter(|directory| directory.is_dir());
    let Some(directory) = directory else { return Ok(view) };
    let (session, program) = (view.session_id(), guarded.program());
    let (mut is_gone, mut transcripts) = (true, Vec::new());
    for (conversation, transcript) in conversations {
        is_gone &= Binding::open(&place.directory, program, &conversation)?.has_ended();
        transcripts.extend(transcript);
    }
    if !is_gone && transcripts.is_empty() {
        return Ok(view);
    }
    let name = PolicyName::new(program.name())?;
    let opened = async {
        let files = place.runtime.open_to_capture(&directory, session).await?;
        place.runtime.open_observed(session, name, SessionOptions::with_workspace(files)).await
    };
    let observed = match opened.await {
        // It is in use, so it is not quiet.
        Err(error) if matches!(error.code(), ErrorCode::SessionHeld | ErrorCode::WorkspaceHeld) => {
            return Ok(view);
        }
        opened => opened?,
    };
    let closed = close(&observed, program, &transcripts, is_gone).await;
    observed.release().await?;
    closed?;
    place.view(session).await
}

async fn close(
    observed: &ObservedSession,
    program: Program,
    transcripts: &[PathBuf],
    is_gone: bool,
) -> anyhow::Result<()> {
    for path in transcripts {
        record_results(observed, program, path).await?;
    }
    if is_gone {
        observed.barrier(None).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_ended_when_its_process_is_another_one() {
        let store = tempfile::tempdir().unwrap();
        let binding = Binding::open(store.path(), Program::ClaudeCode, "one").unwrap();
        assert!(!binding.has_ended(), "it is not known");
        for hooks in 1..=CERTAIN {
            binding.remember_program().unwrap();
            assert!(!binding.has_ended(), "it has started this test");
            // Where the system does not show processes, nothing is known.
            let Some(known) = binding.program() else { return };
            let other = ProgramProcess { started: known.started + 1, ..known };
            let file = binding.directory().join(FILE);
            fs::write(&file, serde_json::to_vec(&other).unwrap()).unwrap();
            assert_eq!(binding.has_ended(), hooks == CERTAIN, "{hooks}");
            let elsewhere = ProgramProcess { namespace: Some(1), ..other };
            fs::write(&file, serde_json::to_vec(&elsewhere).unwrap()).unwrap();
            assert!(!binding.has_ended(), "its id means nothing here");
            fs::write(&file, serde_json::to_vec(&known).unwrap()).unwrap();
        }
    }
}
