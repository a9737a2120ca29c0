//! Commands that set up the copy of a project, such as the installation of dependencies that were not copied.
//!
//! They come from the agent file of the user and run as the user would run them, in the copy and outside of the sandbox. Their output is
//! shown as it is written.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use backstitch::code::ErrorCode;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;

use crate::error::CommandError;

/// Maximum length of a line that is shown.
const LONGEST_LINE: usize = 4096;

/// Runs the commands in order. The first one that fails ends the rest.
pub(super) async fn run(commands: &[String], directory: &Path) -> anyhow::Result<()> {
    for command in commands {
        eprintln!("setup: {command}");
        let mut child = Command::new("sh")
            .args(["-c", command])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("the setup command `{command}` cannot be started"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (_, _, ended) = tokio::join!(show(stdout), show(stderr), child.wait());
        let status = ended.with_context(|| format!("the setup command `{command}` cannot be waited for"))?;
        if !status.success() {
            let message = format!("the setup command `{command}` failed: {status}");
            return Err(CommandError::new(ErrorCode::SetupFailed, message)
                .with_hint("correct `setup` in the `[workspace]` of the agent file")
                .into());
        }
    }
    Ok(())
}

/// Prints the lines of a stream as they come.
async fn show(stream: Option<impl AsyncRead + Unpin>) {
    let Some(stream) = stream else { return };
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
            print(&mut line);
        }
    }
    print(&mut line);
}

fn print(line: &mut Vec<u8>) {
    if !line.is_empty() {
        eprintln!("  {}", String::from_utf8_lossy(line).trim_end());
        line.clear();
    }
}
