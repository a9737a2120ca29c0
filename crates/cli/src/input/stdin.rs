//! Standard input beside a mission: `cat log | backstitch run "explain"`.
//!
//! A pipe, a socket or a file on standard input is read to its end and attached to the mission. A terminal and other devices are
//! not read. A pipe may be open although no process ever writes to it, as under some schedulers and editors. So if nothing
//! arrives within a few seconds, the mission is sent without it, and a line says so; `--stdin` waits as long as it takes.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use backstitch::agent_file::AgentDefinition;
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::file::{self, AttachError, AttachedContent, media_refusal};
use super::parts::MessageParts;
use crate::usage::{self, Usage};

/// Name of what is read, for people.
const NAME: &str = "standard input";

/// Time after which a pipe that sends nothing is left alone, in seconds.
const PATIENCE: i64 = 3;

/// What is attached to a mission.
#[derive(Args)]
pub(crate) struct InputFlags {
    /// Image (PNG, JPEG, GIF, WebP) to send with the text. Repeatable.
    #[arg(long = "image", value_name = "PATH")]
    images: Vec<PathBuf>,
    /// Wait for standard input and attach it, however long it takes. Default: a pipe or a file on standard input is attached
    /// if something arrives within 3 seconds.
    #[arg(long)]
    stdin: bool,
}

/// Attaches the images and standard input to a message. `is_read` says that the text itself was read from standard input.
pub(crate) fn add_to(
    parts: &mut MessageParts,
    flags: &InputFlags,
    is_read: bool,
    definition: &AgentDefinition,
) -> anyhow::Result<()> {
    for path in &flags.images {
        let name = path.to_string_lossy();
        parts.attach(&name, file::read_image(&name, path).map_err(Usage::from)?);
    }
    if flags.stdin && is_read {
        return usage::refuse("`--stdin` does not apply: the text itself is read from standard input");
    }
    if !is_read && is_waited_for(flags.stdin)? {
        match file::content_of(NAME, io::stdin().lock()).map_err(|error| Usage::from(explained(error)))? {
            AttachedContent::Text(text) if text.trim().is_empty() => {
                if flags.stdin {
                    return usage::refuse(format!("{NAME} is empty, and `--stdin` attaches it"));
                }
            }
            AttachedContent::Text(text) => {
                parts.attached.push(format!("{NAME} ({} bytes)", text.len()));
                parts.quote("standard_input", &[], &text);
            }
            media => parts.attach(NAME, media),
        }
    }
    match media_refusal(definition).filter(|_| parts.has_media()) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(()),
    }
}

/// Whether standard input has something, or will have it.
fn is_waited_for(is_wanted: bool) -> anyhow::Result<bool> {
    let input = io::stdin();
    if is_wanted {
        if input.is_terminal() {
            return usage::refuse("`--stdin` needs a pipe or a file on standard input");
        }
        return Ok(true);
    }
    if input.is_terminal() || !can_be_read() {
        return Ok(false);
    }
    let mut waited = [PollFd::new(&input, PollFlags::IN)];
    let limit = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
    // A signal ends the command at this point.
    let is_ready = poll(&mut waited, Some(&limit)).is_ok_and(|ready| ready > 0);
    if !is_ready {
        eprintln!(
            "nothing arrived on standard input within {PATIENCE} s, so nothing of it is attached; `--stdin` waits for it, \
             `< /dev/null` avoids the wait"
        );
    }
    Ok(is_ready)
}

/// Whether standard input is a pipe, a socket or a file. Devices are not read.
fn can_be_read() -> bool {
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else { return false };
    let Ok(metadata) = File::from(input).metadata() else { return false };
    let kind = metadata.file_type();
    kind.is_file() || kind.is_fifo() || kind.is_socket()
}

/// Adds what helps with a long or a binary input.
fn explained(error: AttachError) -> AttachError {
    match error {
        AttachError::Refused { name, reason } => {
            let reason = match reason.split_once("; ") {
                Some((reason, _)) => {
                    format!("{reason}; write it to a file, and name the file in the mission")
                }
                None => format!("{reason}; `< /dev/null` sends the mission without it"),
            };
            AttachError::Refused { name, reason }
        }
        other => other,
    }
}
