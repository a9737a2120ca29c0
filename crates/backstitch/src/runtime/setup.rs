//! Commands that set up the copy of a project, such as the installation of dependencies that were not copied.
//!
//! They run in the copy and in the sandbox of the agent, like the commands of the agent itself. A sandbox that writes nothing
//! lets them write the copy. Their output is reported as it is written, and no process of theirs outlives them.

use std::path::Path;
use std::sync::Arc;

use backstitch_runtime::{
    DirectoryError, ServerProcess, ServerStreams, SystemClock, WorkspaceSpec, fresh_ids,
};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use super::workspace_event::{Report, WorkspaceEvent};
use crate::id::CallId;
use crate::ports::{ProcessError, ProcessSpec, Sandbox, SandboxMode};

/// Maximum length of a line that is reported.
const LONGEST_LINE: usize = 4096;

/// Runs a command without input, and then prints a word and its exit code.
const SCRIPT: &str = "sh -c \"$1\" < /dev/null; printf '\\n%s %s\\n' \"$2\" \"$?\"";

/// Runs the commands of a specification in a copy, in order. The first one that fails ends the rest.
pub(crate) async fn run(
    spec: &WorkspaceSpec,
    directory: &Path,
    report: &Report,
) -> Result<(), DirectoryError> {
    let mut sandbox = spec.sandbox.clone();
    if sandbox.mode == SandboxMode::ReadOnly {
        sandbox.mode = SandboxMode::Workspace;
    }
    for command in &spec.setup {
        report(WorkspaceEvent::SetupStarted { command: command.clone() });
        let code = run_one(command, directory, &sandbox, report)
            .await
            .map_err(|source| DirectoryError::SetupStart { command: command.clone(), source })?;
        if code.as_deref() != Some("0") {
            let reason = code.map_or("it was killed".to_owned(), |code| format!("exit status: {code}"));
            let is_confined = !sandbox.is_off();
            return Err(DirectoryError::Setup { command: command.clone(), reason, is_confined });
        }
    }
    Ok(())
}

/// Returns the exit code of a command. `None` if it did not end by itself.
async fn run_one(
    command: &str,
    directory: &Path,
    sandbox: &Sandbox,
    report: &Report,
) -> Result<Option<String>, ProcessError> {
    let ids = fresh_ids(Arc::new(SystemClock::new()))
        .map_err(|error| ProcessError::Start { program: "sh".to_owned(), source: error.into() })?;
    let mark: CallId = ids.next();
    let word = mark.to_string();
    let spec = ProcessSpec::new("sh").args(["-c", SCRIPT, "setup", command, &word]).sandbox(sandbox.clone());
    let (mut process, streams) = ServerProcess::start_command(spec, Some(directory.to_owned()), mark).await?;
    let ServerStreams { stdin, stdout, stderr } = streams;
    let mut reading =
        std::pin::pin!(async { tokio::join!(read(stdout, Some(&word), report), read(stderr, None, report)) });
    let read = tokio::select! {
        (code, _) = &mut reading => Some(code),
        () = process.wait_for_exit() => None,
    };
    drop(stdin);
    // This also ends processes that it left behind, which keep the streams open.
    process.end().await?;
    Ok(match read {
        Some(code) => code,
        None => reading.await.0,
    })
}

/// Reports the lines of a stream as they come, up to the one that begins with the word. The rest of it is returned.
async fn read(stream: impl AsyncRead + Unpin, word: Option<&str>, report: &Report) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let available = match reader.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(available) => available,
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if end.is_some() || line.len() > LONGEST_LINE {
            if let Some(code) = word.and_then(|word| line.strip_prefix(word.as_bytes())) {
                return Some(String::from_utf8_lossy(code).trim().to_owned());
            }
            report_line(&mut line, report);
        }
    }
    report_line(&mut line, report);
    None
}

fn report_line(line: &mut Vec<u8>, report: &Report) {
    let shown = line.trim_ascii_end();
    if !shown.is_empty() {
        report(WorkspaceEvent::SetupOutput { line: String::from_utf8_lossy(shown).into_owned() });
    }
    line.clear();
}
