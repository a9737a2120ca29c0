//! The recordings of the documentation: every scene plays, and the terminal guide shows what the command prints.

use std::path::Path;
use std::process::Command;

use crate::sandbox::is_unsupported;

/// Plays a scene of `docs/record`, without the pauses for readers.
#[track_caller]
fn play(scene: &str) {
    if is_unsupported() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/record");
    let arguments = [scene, "--check", "--command", env!("CARGO_BIN_EXE_backstitch")];
    let played = Command::new("python3").arg(script).args(arguments).output().unwrap();
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
}

#[test]
fn a_kill_and_a_resume_play() {
    play("kill");
}

#[test]
fn a_conversation_plays() {
    play("chat");
}

#[test]
#[cfg(feature = "mcp")]
fn the_day_of_the_guide_is_what_the_command_prints() {
    play("day");
}
