//! What a sandbox refused, found in the output of a process.
//!
//! The system tells nobody but the process what it refused. So the output is searched for the errors that a
//! refusal causes, and for a path in them. A path counts only if the sandbox protects it and this process
//! could write it: everything else was refused for another reason.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use backstitch_core::ports::{ProcessExit, ProcessOutcome, SandboxRefusal, SandboxSockets};

/// The number of refusals that are reported.
const MOST_REPORTED: usize = 5;

/// The number of lines before an error in which its path is searched.
const LINES_BEFORE: usize = 4;

/// Errors of refused writes.
const REFUSED: [&str; 5] =
    ["permission denied", "eacces", "os error 13", "invalid cross-device link", "exdev"];

/// Errors of a missing network.
const UNREACHABLE: [&str; 8] = [
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "eai_again",
    "network is unreachable",
    "couldn't connect to server",
    "failed to establish a new connection",
    "could not connect to server",
];

/// Words that show that a refused operation concerns a socket.
const SOCKET_WORDS: [&str; 6] = ["socket", "connect", "listen", "bind", "network", "urlopen"];

/// Words that show that a socket belongs to another program of this machine.
const LOCAL_WORDS: [&str; 8] = ["unix", "/run/", "/tmp/", "agent", " bus", "docker", "display", "tmux"];

/// Errors of programs that could not reach another program of this machine.
const LOCAL_UNREACHABLE: [&str; 4] = [
    "cannot connect to the docker daemon",
    "failed to connect to bus",
    "cannot open display",
    "can't open display",
];

/// Words that show that a refused operation concerns a terminal.
const TERMINAL_WORDS: [&str; 9] = [
    "pseudo-terminal",
    "pseudo terminal",
    "pseudoterminal",
    "openpty",
    "forkpty",
    "posix_openpt",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/tty",
];

/// Errors of terminals that could not be created.
const NO_TERMINALS: [&str; 2] = ["out of pty devices", "failed to create pseudo-terminal"];

pub(super) struct Rules<'a> {
    pub(super) writable: &'a [PathBuf],
    pub(super) missing: &'a [PathBuf],
    pub(super) hidden: &'a [PathBuf],
    pub(super) network: bool,
    pub(super) sockets: SandboxSockets,
    pub(super) terminals: bool,
    pub(super) directory: &'a Path,
}

impl Rules<'_> {
    /// Returns what was refused to a process.
    pub(super) fn find(&self, outcome: &ProcessOutcome) -> Vec<SandboxRefusal> {
        let mut found = Vec::new();
        let mut is_unnamed = false;
        for output in [&outcome.stderr, &outcome.stdout] {
            let text = output.text();
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                let low = line.to_lowercase();
                let before = &lines[number.saturating_sub(LINES_BEFORE)..number];
                let refused_call = self.refused_call(&low, before);
                let is_terminal = refused_call == Some(SandboxRefusal::Terminals);
                refused_call.into_iter().for_each(|refusal| add(&mut found, refusal));
                if is_terminal || !REFUSED.iter().any(|words| low.contains(words)) {
                    continue;
                }
                let before = before.iter().rev();
                match std::iter::once(line).chain(before).find_map(|line| self.path_in(line)) {
                    Some(refusal) => add(&mut found, refusal),
                    None => is_unnamed = true,
                }
            }
        }
        if found.is_empty() && is_unnamed && outcome.exit != ProcessExit::Code(0) {
            found.push(SandboxRefusal::Unnamed);
        }
        found
    }

    /// Returns what a line reports that is not about files.
    fn refused_call(&self, low: &str, before: &[&str]) -> Option<SandboxRefusal> {
        let has = |words: &[&str]| {
            let has_word = |line: &str| words.iter().any(|word| line.contains(word));
            has_word(low) || before.iter().any(|line| has_word(&line.to_lowercase()))
        };
        let is = |words: &[&str]| words.iter().any(|words| low.contains(words));
        let is_refused = is(&["operation not permitted", "eperm"]);
        let is_missing = is(&["no such device or address", "enxio"]);
        if !self.terminals
            && (is(&NO_TERMINALS) || (is_refused || is_missing || is(&REFUSED)) && has(&TERMINAL_WORDS))
        {
            return Some(SandboxRefusal::Terminals);
        }
        let is_socket = is_refused && has(&SOCKET_WORDS);
        if self.sockets != SandboxSockets::On
            && (is(&LOCAL_UNREACHABLE) || is_socket && (self.network || has(&LOCAL_WORDS)))
        {
            return Some(SandboxRefusal::Sockets);
        }
        (!self.network && (is_socket || is(&UNREACHABLE))).then_some(SandboxRefusal::Network)
    }

    /// Returns the first path in a line that the sandbox protects.
    fn path_in(&self, line: &str) -> Option<SandboxRefusal> {
        candidates(line).into_iter().find_map(|(text, is_quoted)| {
            let given = self.directory.join(text);
            let is_link = || given.symlink_metadata().is_ok_and(|found| found.is_symlink());
            if !text.contains('/') && !is_quoted && !is_link() {
                return None;
            }
            let path = resolved(&given)?;
            let is_missing = self.missing.iter().any(|missing| path.starts_with(missing));
            if is_missing {
                return Some(SandboxRefusal::Missing(path));
            }
            let is_socket = || path.metadata().is_ok_and(|found| found.file_type().is_socket());
            if self.sockets != SandboxSockets::On && is_socket() {
                return Some(SandboxRefusal::Sockets);
            }
            if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
                return Some(SandboxRefusal::Read(path));
            }
            let is_protected = !self.writable.iter().any(|writable| path.starts_with(writable));
            (is_protected && could_write(&path)).then_some(SandboxRefusal::Write(path))
        })
    }
}

fn add(found: &mut Vec<SandboxRefusal>, refusal: SandboxRefusal) {
    if found.len() < MOST_REPORTED && !found.contains(&refusal) {
        found.push(refusal);
    }
}

/// Returns the parts of a line that may be paths: quoted texts, and words without punctuation. The flag tells
/// which are quoted.
fn candidates(line: &str) -> Vec<(&str, bool)> {
    let mut all = Vec::new();
    for (open, close) in [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('`', '\'')] {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inside, next)) = after.split_once(close) else { break };
            all.push((inside, true));
            rest = next;
        }
    }
    let (begin, end): (&[char], &[char]) = (
        &['(', '[', '<', '"', '\'', '`', '‘', '='],
        &[':', ',', ';', '.', '(', ')', '[', ']', '<', '>', '"', '\'', '`', '‘', '’'],
    );
    let mut words = line.split_whitespace().map(|word| word.trim_end_matches(end).trim_start_matches(begin));
    // The first word usually names the program.
    let first = words.next().filter(|word| !is_program(word));
    all.extend(words.chain(first).map(|word| (word, false)));
    all.retain(|(text, _)| !text.is_empty() && text.len() < 4096 && !text.contains("://"));
    all
}

fn is_program(path: &str) -> bool {
    let mode = |found: std::fs::Metadata| found.is_file().then(|| found.permissions().mode());
    Path::new(path).metadata().ok().and_then(mode).is_some_and(|mode| mode & 0o111 != 0)
}

/// Follows the links of the part of a path that exists, and appends the rest. `None` if not even the
/// directory above the last name exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(path) = path.canonicalize() {
        return Some(path);
    }
    let name = path.components().next_back().filter(|last| matches!(last, Component::Normal(_)))?;
    // A link whose target does not exist.
    if let Ok(target) = std::fs::read_link(path) {
        let target = path.parent()?.join(target);
        return Some(target.parent()?.canonicalize().ok()?.join(target.file_name()?));
    }
    let parent = path.parent()?;
    match parent.canonicalize() {
        Ok(parent) => Some(parent.join(name)),
        // A directory that was to be created with its parents.
        Err(_) => Some(parent.parent()?.canonicalize().ok()?.join(parent.file_name()?).join(name)),
    }
}

/// Whether this process could write a path, or create it.
fn could_write(path: &Path) -> bool {
    let mut existing = path;
    while !existing.exists() {
        let Some(parent) = existing.parent() else { return false };
        existing = parent;
    }
    rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_ok()
        || existing.parent().is_some_and(|parent| {
            // A file that is read-only may still be deleted or replaced.
            rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use backstitch_core::ports::ProcessOutput;

    use super::*;

    fn outcome(stderr: &str) -> ProcessOutcome {
        let stderr = ProcessOutput { head: stderr.as_bytes().to_vec(), cut: 0, tail: Vec::new() };
        let (stdout, refused) = (ProcessOutput::default(), Vec::new());
        ProcessOutcome { exit: ProcessExit::Code(1), stdout, stderr, refused }
    }

    #[test]
    fn refused_paths_are_found_in_the_messages_of_programs() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let inside = place.join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(place.join("with space")).unwrap();
        std::os::unix::fs::symlink(place.join("x"), inside.join("link")).unwrap();
        let (writable, missing) = ([inside.clone()], [place.join("cache")]);
        let hidden = [place.join(".ssh")];
        let rules = Rules {
            writable: &writable,
            missing: &missing,
            hidden: &hidden,
            network: false,
            sockets: SandboxSockets::Off,
            terminals: false,
            directory: &inside,
        };
        let at = place.display();
        let write = |name: &str| vec![SandboxRefusal::Write(place.join(name))];
        let unnamed = vec![SandboxRefusal::Unnamed];
        let rows = [
            (format!("sh: 1: cannot create {at}/x: Permission denied"), write("x")),
            (format!("/bin/sh: 1: cannot create {at}//x: Permission denied"), write("x")),
            (format!("bash: line 1: {at}/x: Permission denied"), write("x")),
            (format!("touch: cannot touch '{at}/with space/y': Permission denied"), write("with space/y")),
            (format!("PermissionError: [Errno 13] Permission denied: '{at}/x'"), write("x")),
            (format!("Error: EACCES: permission denied, open '{at}/x'"), write("x")),
            (
                format!("failed to create `{at}/x`\n\nCaused by:\n  Permission denied (os error 13)"),
                write("x"),
            ),
            ("rm: cannot remove '../x': Permission denied".to_owned(), write("x")),
            ("sh: 1: cannot create link: Permission denied".to_owned(), write("x")),
            (
                format!("ln: failed to create hard link 'a' => '{at}/x': Invalid cross-device link"),
                write("x"),
            ),
            (format!("mkdir: cannot create directory ‘{at}/a/b’: Permission denied"), write("a/b")),
            (
                format!("open {at}/cache/file: permission denied"),
                vec![SandboxRefusal::Missing(place.join("cache/file"))],
            ),
            (
                format!("cat: {at}/.ssh/id: Permission denied"),
                vec![SandboxRefusal::Read(place.join(".ssh/id"))],
            ),
            ("./run.sh: Permission denied".to_owned(), unnamed.clone()),
            ("tool: Permission denied".to_owned(), unnamed),
            (format!("cat: {at}/x: No such file or directory"), Vec::new()),
            ("curl: (6) Could not resolve host: example.org".to_owned(), vec![SandboxRefusal::Network]),
            (
                "Error: listen EPERM: operation not permitted 127.0.0.1".to_owned(),
                vec![SandboxRefusal::Network],
            ),
            (
                "  File \"socket.py\", line 831\nPermissionError: [Errno 1] Operation not permitted"
                    .to_owned(),
                vec![SandboxRefusal::Network],
            ),
            (
                "error connecting to /tmp/tmux-0/default (Operation not permitted)".to_owned(),
                vec![SandboxRefusal::Sockets],
            ),
            (
                "dial unix /var/run/docker.sock: socket: operation not permitted".to_owned(),
                vec![SandboxRefusal::Sockets],
            ),
            (
                "script: failed to create pseudo-terminal: Permission denied".to_owned(),
                vec![SandboxRefusal::Terminals],
            ),
            ("OSError: out of pty devices".to_owned(), vec![SandboxRefusal::Terminals]),
            ("sh: 1: cannot create /dev/tty: Permission denied".to_owned(), vec![SandboxRefusal::Terminals]),
            ("chown: changing owner of 'a': Operation not permitted".to_owned(), Vec::new()),
        ];
        for (text, expected) in rows {
            assert_eq!(rules.find(&outcome(&text)), expected, "{text}");
        }
        let with_network = Rules { network: true, ..rules };
        assert_eq!(with_network.find(&outcome("curl: (6) Could not resolve host: example.org")), []);
        let socket =
            "  File \"x.py\", line 1, socket.socket(1)\nPermissionError: [Errno 1] Operation not permitted";
        assert_eq!(with_network.find(&outcome(socket)), [SandboxRefusal::Sockets]);
        let open = Rules { sockets: SandboxSockets::On, terminals: true, ..with_network };
        assert_eq!(open.find(&outcome(socket)), []);
        assert_eq!(open.find(&outcome("OSError: out of pty devices")), []);
        let many: String = (0..50).map(|number| format!("{at}/{number}: Permission denied\n")).collect();
        assert_eq!(with_network.find(&outcome(&many)).len(), MOST_REPORTED);
        let mut fine = outcome("tool: Permission denied");
        fine.exit = ProcessExit::Code(0);
        assert_eq!(with_network.find(&fine), []);
    }

    #[test]
    fn paths_that_this_process_cannot_write_were_refused_for_another_reason() {
        if rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let rules = Rules {
            writable: &[],
            missing: &[],
            hidden: &[],
            network: true,
            sockets: SandboxSockets::On,
            terminals: false,
            directory: place.path(),
        };
        let found = rules.find(&outcome("sh: 1: cannot create /etc/passwd: Permission denied"));
        assert_eq!(found, [SandboxRefusal::Unnamed]);
    }
}
