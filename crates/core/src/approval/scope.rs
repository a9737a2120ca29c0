//! What a rule is about.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::command::CommandWords;
use super::host::{WebHost, is_harmless};
use crate::ports::CommandNeeds;
use crate::text_form::stored_as_text;
use crate::tool_spec::{InvalidToolName, ToolName};

/// Programs that run whatever their arguments say. To allow one of them is to allow everything.
#[rustfmt::skip]
const LAUNCHERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "sudo", "doas", "su", "xargs", "nice",
    "nohup", "setsid", "stdbuf", "timeout", "watch", "parallel", "ssh", "chroot", "unshare", "script",
    "strace", "ltrace", "gdb", "lldb", "perf", "valgrind", "flock", "ionice", "chrt", "taskset", "numactl",
    "prlimit", "systemd-run", "systemd-inhibit", "runuser", "setpriv", "capsh", "nsenter", "setarch",
    "linux32", "linux64", "fakeroot", "proot", "bwrap", "firejail", "pkexec", "gosu", "npx", "pnpx", "bunx",
    "uvx", "docker", "podman", "nerdctl", "kubectl", "tmux", "screen", "expect", "socat", "entr", "ld.so",
    "toybox", "csh", "tcsh",
];

/// Programs that run what an option says, and otherwise what the next word names. A rule has to name that word.
#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "awk", "gawk",
    "mawk", "nawk", "sed", "tclsh", "wish", "guile", "osascript", "pwsh", "R", "Rscript", "julia", "java",
    "erl", "elixir", "iex", "ghc", "runghc", "sqlite", "psql", "mysql", "uv", "poetry", "pipenv",
];

/// A tool, the commands of a tool that start with certain words, or its calls to a host ([`WebHost`]). As text: the name of the tool, and the
/// words after it, as in `shell git status`. Rights beyond the sandbox that the commands may have stand in brackets after
/// the tool: `network`, `sockets`, `read=PATH` and `write=PATH`, as in `shell[network] git push`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApprovalScope {
    tool: ToolName,
    prefix: Vec<String>,
    needs: CommandNeeds,
}

stored_as_text!(ApprovalScope, "a string");

/// The text does not say what a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidScope {
    /// It does not start with the name of a tool.
    #[error(transparent)]
    Tool(#[from] InvalidToolName),
    /// The words after the tool are not a plain command.
    #[error(
        "{words:?} is not the start of a plain command: it has operators, variables, patterns or other marks of a shell"
    )]
    Words {
        /// The words.
        words: String,
    },
    /// What stands in brackets is not a list of rights.
    #[error(
        "{rights:?} is not a list of rights: write network, sockets, read=PATH and write=PATH, with absolute paths, separated by commas"
    )]
    Rights {
        /// The text in the brackets.
        rights: String,
    },
    /// Rights are named for all commands of a tool.
    #[error("rights are allowed to certain commands: write their first words after the brackets")]
    RightsOfAll,
}

impl ApprovalScope {
    /// Creates the scope of all calls of a tool.
    pub fn of_tool(tool: ToolName) -> Self {
        Self { tool, prefix: Vec::new(), needs: CommandNeeds::default() }
    }

    /// Creates the scope of the commands of a tool that start with the first `count` words of a command.
    /// Returns `None` if there are none.
    pub fn of_command(tool: ToolName, words: &CommandWords, count: usize) -> Option<Self> {
        let prefix: Vec<_> = words.as_slice().iter().take(count).cloned().collect();
        (!prefix.is_empty()).then_some(Self { tool, prefix, needs: CommandNeeds::default() })
    }

    /// Creates the scope of the calls of a tool that read from the host of this one. Returns `None` if the arguments hold no
    /// address, or others that could change where it reads, or if a rule cannot name the host.
    pub fn of_host(tool: ToolName, arguments: &Map<String, Value>) -> Option<Self> {
        let host = WebHost::of_call(arguments)?;
        let is_plain = arguments.iter().all(|(name, value)| is_harmless(name, value));
        let scope = Self { tool, prefix: vec![host.to_string()], needs: CommandNeeds::default() };
        let is_named = scope.to_string().parse::<Self>().is_ok_and(|parsed| parsed == scope);
        (is_plain && is_named).then_some(scope)
    }

    /// Adds rights beyond their sandbox that the commands may have. Returns `None` if a rule cannot name them, such as a path
    /// with a comma, or rights of all calls of a tool.
    pub fn with_needs(self, needs: CommandNeeds) -> Option<Self> {
        let has_name = |path: &PathBuf| {
            let text = path.to_str().filter(|text| text.trim() == *text && !text.contains([',', ']']));
            text.is_some() && path.is_absolute()
        };
        let has_names = needs.read.iter().chain(&needs.write).all(has_name);
        let is_fine = has_names && (needs.is_empty() || !self.prefix.is_empty());
        is_fine.then(|| Self { needs: CommandNeeds { reason: String::new(), ..needs }, ..self })
    }

    /// The name of the tool.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The first words of the commands; empty for all calls of the tool.
    pub fn prefix(&self) -> &[String] {
        &self.prefix
    }

    /// The rights beyond their sandbox that the commands may have. Only a rule that allows has a use for them.
    pub fn needs(&self) -> &CommandNeeds {
        &self.needs
    }

    /// Whether the words start or end with a program that runs whatever follows, such as `sh` or `env`, or
    /// consist of an interpreter and its options, such as `python3 -m`. A rule that allows it matches nothing.
    pub fn is_launcher(&self) -> bool {
        let (Some(first), Some(last)) = (self.prefix.first(), self.prefix.last()) else { return false };
        let names_nothing = self.prefix.iter().skip(1).all(|word| word.starts_with('-'));
        launches(first) || launches(last) || interprets(first) && names_nothing
    }
}

/// Whether a word names a program that runs whatever its arguments say.
pub(super) fn launches(word: &str) -> bool {
    let name = name_of(word);
    // The dynamic loader runs the program that it is given.
    LAUNCHERS.contains(&name) || name.starts_with("ld-") && name.contains(".so")
}

fn interprets(word: &str) -> bool {
    // The name may end with a version.
    let name = name_of(word).trim_end_matches(|mark: char| mark.is_ascii_digit() || mark == '.');
    INTERPRETERS.contains(&name)
}

/// Returns the name of a program, without the directories of its path.
pub(super) fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

impl fmt::Display for ApprovalScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.tool.as_str())?;
        if !self.needs.is_empty() {
            write!(formatter, "[{}]", rights_text(&self.needs))?;
        }
        for word in &self.prefix {
            // A word of a plain command has at most one kind of quotes, or is quoted in pieces.
            let quoted = shlex::try_quote(word).map_err(|_| fmt::Error)?;
            write!(formatter, " {quoted}")?;
        }
        Ok(())
    }
}

impl FromStr for ApprovalScope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let text = text.trim();
        let end = text.find(|mark: char| mark.is_whitespace() || mark == '[').unwrap_or(text.len());
        let (tool, rest) = text.split_at(end);
        let tool = ToolName::new(tool)?;
        let (needs, words) = match rest.strip_prefix('[') {
            None => (CommandNeeds::default(), rest),
            Some(rest) => {
                let unknown = || InvalidScope::Rights { rights: rest.to_owned() };
                let (rights, words) = rest.split_once(']').ok_or_else(unknown)?;
                (rights_of(rights).ok_or_else(unknown)?, words)
            }
        };
        if words.trim().is_empty() {
            return if needs.is_empty() { Ok(Self::of_tool(tool)) } else { Err(InvalidScope::RightsOfAll) };
        }
        let prefix = CommandWords::parse(words);
        let prefix = prefix.ok_or_else(|| InvalidScope::Words { words: words.trim().to_owned() })?;
        Ok(Self { tool, prefix: prefix.as_slice().to_vec(), needs })
    }
}

/// Parses rights that are separated by commas. `None` if one is unknown, or there are none.
fn rights_of(text: &str) -> Option<CommandNeeds> {
    let mut needs = CommandNeeds::default();
    for right in text.split(',').map(str::trim) {
        let path = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        match right.split_once('=') {
            None if right == "network" => needs.network = true,
            None if right == "sockets" => needs.sockets = true,
            Some(("read", below)) => needs.read.push(path(below)?),
            Some(("write", below)) => needs.write.push(path(below)?),
            _ => return None,
        }
    }
    Some(needs)
}

/// The opposite of [`rights_of`].
fn rights_text(needs: &CommandNeeds) -> String {
    let CommandNeeds { network, sockets, read, write, reason: _ } = needs;
    let words = [(*network, "network"), (*sockets, "sockets")];
    let words = words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned());
    let read = read.iter().map(|path| format!("read={}", path.display()));
    let write = write.iter().map(|path| format!("write={}", path.display()));
    words.chain(read).chain(write).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_takes_the_rights_that_it_can_name() {
        let scope = |text: &str| text.parse::<ApprovalScope>().unwrap();
        let needs = |path: &str| CommandNeeds {
            network: true,
            read: vec![path.into()],
            reason: "to publish".to_owned(),
            ..CommandNeeds::default()
        };
        let widened = scope("shell git push").with_needs(needs("/home/tailor/.ssh")).unwrap();
        assert_eq!(widened.to_string(), "shell[network,read=/home/tailor/.ssh] git push");
        assert_eq!(widened.to_string().parse::<ApprovalScope>().unwrap(), widened);
        for path in ["keys", "/a,b", "/a]b", "/a "] {
            assert_eq!(scope("shell git push").with_needs(needs(path)), None, "{path:?}");
        }
        assert_eq!(scope("shell").with_needs(needs("/keys")), None);
        assert_eq!(scope("shell").with_needs(CommandNeeds::default()), Some(scope("shell")));
    }

    #[test]
    fn a_scope_reads_as_it_is_written() {
        for text in [
            "shell",
            "shell git status",
            "shell git commit -m 'two words'",
            "my-tool cargo test",
            "shell[network] git push",
            "shell[network,sockets,read=/home/a b/.ssh,write=/cache] git push",
        ] {
            let scope: ApprovalScope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
            let json = serde_json::to_string(&scope).unwrap();
            assert_eq!(serde_json::from_str::<ApprovalScope>(&json).unwrap(), scope);
        }
        let quoted: ApprovalScope = r#"shell echo "it's" 'say "so"'"#.parse().unwrap();
        assert_eq!(quoted.to_string().parse::<ApprovalScope>().unwrap(), quoted);
        assert_eq!(" shell   git  status ".parse::<ApprovalScope>().unwrap().to_string(), "shell git status");
        for text in [
            "",
            "a.b",
            "shell git; id",
            "shell $HOME",
            "shell a|b",
            "shell 'open",
            "shell[network]",
            "shell[] git push",
            "shell[all] git push",
            "shell[read=.ssh] git push",
            "shell[network git push",
        ] {
            assert!(text.parse::<ApprovalScope>().is_err(), "{text}");
        }
    }

    #[test]
    fn launchers_are_recognised() {
        for (text, is_launcher) in [
            ("shell", false),
            ("shell git status", false),
            ("shell sh", true),
            ("shell /usr/bin/env", true),
            ("shell sudo apt", true),
            ("shell nice -n 5 sh", true),
            ("shell flock lock git status", true),
            ("shell systemd-run --user id", true),
            ("shell /lib64/ld-linux-x86-64.so.2 x", true),
            ("shell npx cowsay", true),
            ("shell docker run", true),
            ("shell gdb -batch", true),
            ("shell python3", true),
            ("shell python3.12 -c", true),
            ("shell /usr/bin/perl -e", true),
            ("shell node --eval", true),
            ("shell awk", true),
            ("shell git", false),
            ("shell apt install python3", false),
            ("shell python3 -m pytest", false),
            ("shell node build.js", false),
            ("shell git log", false),
            ("shell cargo test", false),
        ] {
            assert_eq!(text.parse::<ApprovalScope>().unwrap().is_launcher(), is_launcher, "{text}");
        }
    }
}
