//! Commands that set up the copy of a project, such as the installation of dependencies that were not copied.
//!
//! They run in the copy and in the sandbox of the agent, like the commands of the agent itself. A sandbox that writes nothing
//! lets them write the copy. Their output is shown as it is written, and no process of theirs outlives them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::id::CallId;
use backstitch::ports::{ProcessSpec, Sandbox, SandboxMode};
use backstitch::{ServerProcess, ServerStreams, SystemClock, fresh_ids};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::error::CommandError;

/// Maximum length of a line that is shown.
const LONGEST_LINE: usize = 4096;

/// Runs a command without input, and then prints a word and its exit code.
const SCRIPT: &str = "sh -c \"$1\" < /dev/null; printf '\\n%s %s\\n' \"$2\" \"$?\"";

/// Runs the commands of a definition in order. The first one that fails ends the rest.
pub(super) async fn run(definition: &AgentDefinition, directory: &Path) -> anyhow::Result<()> {
    let mut sandbox = definition.sandbox.clone().unwrap_or_default();
    if sandbox.mode == SandboxMode::ReadOnly {
        sandbox.mode = SandboxMode::Workspace;
    }
    for command in &definition.workspace.setup {
        eprintln!("setup: {command}");
        let failed = || format!("the setup command `{command}` cannot be run");
        let code = run_one(command, directory, &sandbox).await.with_context(failed)?;
        if code.as_deref() != Some("0") {
            let how = code.map_or("it was killed".to_owned(), |code| format!("exit status: {code}"));
            let message = format!("the setup command `{command}` failed: {how}");
            let mut hint = "correct `setup` in the `[workspace]` of the agent file".to_owned();
            if !sandbox.is_off() {
                hint.push_str(
                    "; it runs in the sandbox of the agent, whose `write` and `network` allow more",
                );
            }
            return Err(CommandError::new(ErrorCode::SetupFailed, message).with_hint(hint).into());
        }
    }
    Ok(())
}

/// Returns the exit code of a command. `None` if it did not end by itself.
async fn run_one(command: &str, directory: &Path, sandbox: &Sandbox) -> anyhow::Result<Option<String>> {
    let mark: CallId = fresh_ids(Arc::new(SystemClock::new()))?.next();
    let word = mark.to_string();
    let spec = ProcessSpec::new("sh").args(["-c", SCRIPT, "setup", command, &word]).sandbox(sandbox.clone());
    let (mut process, streams) = ServerProcess::start_command(spec, Some(directory.to_owned()), mark).await?;
    let ServerStreams { stdin, stdout, stderr } = streams;
    let mut reading = std::pin::pin!(async { tokio::join!(show(stdout, Some(&word)), show(stderr, None)) });
    let read = tokio::select! {
        (code, _) = &mut reading => Some(code),
        () = process.exited() => None,
    };
    drop(stdin);
    // This also ends processes that it left behind, which keep the streams open.
    process.end().await?;
    Ok(match read {
        Some(code) => code,
        None => reading.await.0,
    })
}

/// Prints the lines of a stream as they come, up to the one that begins with the word. The rest of it is returned.
async fn show(stream: impl AsyncRead + Unpin, word: Option<&str>) -> Option<String> {
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
            print(&mut line);
        }
    }
    print(&mut line);
    None
}

fn print(line: &mut Vec<u8>) {
    let shown = line.trim_ascii_end();
    if !shown.is_empty() {
        eprintln!("  {}", String::from_utf8_lossy(shown));
    }
    line.clear();
}
