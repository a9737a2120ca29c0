//! Processes that a program has started and that still run.
//!
//! A background command of Claude Code survives its program, and keeps changing files. Each has the id of the conversation
//! in its environment, and so have the MCP servers of the program, which wait for calls. Claude Code starts each command in
//! an operating system session of its own, and its servers in the one that it has itself.

use std::collections::HashSet;

use backstitch_bridge::Program;

#[cfg(target_os = "linux")]
use super::tags::COMMAND_VARIABLE;

/// Names of shells, through which programs start hooks.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// A process of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningProcess {
    pub(crate) id: u32,
    pub(crate) name: String,
}

/// Returns the processes that a conversation has started and that still run. This process and those above it are left
/// out.
pub(crate) fn running(program: Program, conversations: &[String]) -> Vec<RunningProcess> {
    let all =
        program.conversation_variable().map(|name| with_variable(name, conversations)).unwrap_or_default();
    all.iter().filter(|process| is_of_command(process.id, &all)).cloned().collect()
}

/// Whether a process belongs to a command, and not to a server: its operating system session began with a process of the
/// conversation, or with one that is gone, unless the program itself is in that session too.
fn is_of_command(id: u32, all: &[RunningProcess]) -> bool {
    let Some(leader) = field(id, 3) else { return true };
    let is_own = |id: u32| all.iter().any(|process| process.id == id);
    let is_there = || std::path::Path::new(&format!("/proc/{leader}")).exists();
    if is_own(leader) {
        return true;
    }
    let mut above = std::iter::successors(field(id, 1), |parent| field(*parent, 1)).take(64);
    let mut is_below_program = || above.find(|id| !is_own(*id)).and_then(|id| field(id, 3)) == Some(leader);
    leader != 0 && !is_there() && !is_below_program()
}

/// Returns a number of a process: the parent is field 1, and the operating system session field 3.
fn field(id: u32, number: usize) -> Option<u32> {
    text_field(id, number)?.parse().ok()
}

fn text_field(id: u32, number: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let rest = &stat[stat.rfind(')')? + 1..];
    rest.split_ascii_whitespace().nth(number).map(str::to_owned)
}

/// Returns when a process started, as the system counts; `None` if there is no such process.
pub(super) fn started_at(id: u32) -> Option<u64> {
    // A process that nobody has waited for yet has ended all the same.
    let is_dead = |state: String| matches!(state.as_str(), "Z" | "X");
    if text_field(id, 0).is_none_or(is_dead) {
        return None;
    }
    text_field(id, 19)?.parse().ok()
}

/// Returns the number of the namespace in which ids of processes are those that this process sees.
pub(super) fn namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self/ns/pid").ok().map(|found| found.ino())
}

/// Returns the program that has started this process, directly or through shells, and when it started. `None` if the system
/// does not say.
pub(super) fn program_above() -> Option<(u32, u64)> {
    let is_shell = |id: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        SHELLS.contains(&name.trim())
    };
    let parent = |id: &u32| field(*id, 1).filter(|parent| *parent > 1);
    let mut above = std::iter::successors(parent(&std::process::id()), parent).take(64);
    let program = above.find(|id| !is_shell(id))?;
    Some((program, started_at(program)?))
}

/// Returns the processes that have one of these values in a variable of their environment. This process and those above it
/// are left out.
#[cfg(target_os = "linux")]
pub(crate) fn with_variable(variable: &str, values: &[String]) -> Vec<RunningProcess> {
    let wanted: Vec<Vec<u8>> =
        values.iter().map(|value| format!("{variable}={value}").into_bytes()).collect();
    let above = ancestors();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_wanted = |id: &u32| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        !above.contains(id)
            && environment.split(|byte| *byte == 0).any(|one| wanted.iter().any(|wanted| wanted == one))
    };
    let name = |id: u32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.trim().chars().take(60).collect()
    };
    numbers
        .filter(is_wanted)
        .map(|id| RunningProcess { id, name: name(id) })
        .filter(|one| !one.name.is_empty())
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn with_variable(_: &str, _: &[String]) -> Vec<RunningProcess> {
    Vec::new()
}

/// Returns all conversations and sessions of guarded programs that running processes have in their environment. One look is enough
/// for many sessions.
#[cfg(target_os = "linux")]
pub(crate) fn running_conversations() -> HashSet<String> {
    let variables = Program::ALL.into_iter().filter_map(|program| program.conversation_variable());
    let variables: Vec<&str> = variables.chain([COMMAND_VARIABLE]).collect();
    let above = ancestors();
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashSet::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|id| !above.contains(id));
    let mut found = HashSet::new();
    for environment in others.filter_map(|id| std::fs::read(format!("/proc/{id}/environ")).ok()) {
        let set = environment.split(|byte| *byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
        let set = set.filter_map(|one| one.split_once('='));
        found.extend(set.filter(|(name, _)| variables.contains(name)).map(|(_, value)| value.to_owned()));
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn running_conversations() -> HashSet<String> {
    HashSet::new()
}

#[cfg(target_os = "linux")]
fn ancestors() -> Vec<u32> {
    let parent = |id: &u32| field(*id, 1).filter(|parent| *parent > 0);
    std::iter::successors(Some(std::process::id()), parent).take(64).collect()
}
