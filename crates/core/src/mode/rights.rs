//! The table from flags, agent files and settings to rights.

use std::fmt;

use super::AgentMode;
use crate::ports::{Sandbox, SandboxMode, SandboxSockets};

/// What one source says about the rights of an agent: the flags of a command, an agent file, or settings.
///
/// Single rights change what a mode gives. Between sources, the stronger one wins for each right; a mode of a stronger
/// source also replaces all single rights of weaker ones, because it stands for all of them.
///
/// | `mode` | `sandbox` | `approve` | result |
/// |---|---|---|---|
/// | given | | | the rights of the mode |
/// | given | given | | the mode, with this sandbox |
/// | `full` | not `off` | | `auto`, with this sandbox |
/// | | `off` | not `ask` | `full` |
/// | | `off` | `ask` | `ask`, and commands are not confined |
/// | | other or none | `ask` | `ask` |
/// | | other | not `ask` | `auto`, with this sandbox |
/// | | | `auto` | `auto` |
/// | | | | `auto`; `ask` where the system cannot confine commands |
///
/// `network` and `sockets` change the sandbox of each row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RightsChoice {
    /// The mode.
    pub mode: Option<AgentMode>,
    /// Files that commands may write.
    pub sandbox: Option<SandboxMode>,
    /// Whether commands may use the network.
    pub network: Option<bool>,
    /// Sockets of other programs that commands may reach.
    pub sockets: Option<SandboxSockets>,
    /// Whether each call that can change something needs the approval of a person.
    pub asks: Option<bool>,
}

/// The rights of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRights {
    /// The mode, or the one that comes nearest to single rights.
    pub mode: AgentMode,
    /// The limits of commands, without the places of secrets.
    pub sandbox: Sandbox,
}

impl RightsChoice {
    /// Completes this choice by a weaker one.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        if self.mode.is_some() {
            return self;
        }
        Self {
            mode: weaker.mode,
            sandbox: self.sandbox.or(weaker.sandbox),
            network: self.network.or(weaker.network),
            sockets: self.sockets.or(weaker.sockets),
            asks: self.asks.or(weaker.asks),
        }
    }

    /// Returns the rights. `confines` says whether the system can confine commands.
    pub fn resolve(self, confines: bool) -> AgentRights {
        let Self { mode, sandbox, network, sockets, asks } = self;
        let mut mode = mode.unwrap_or(match (sandbox, asks) {
            (_, Some(true)) => AgentMode::Ask,
            (Some(SandboxMode::Off), _) => AgentMode::Full,
            (Some(_), _) | (None, Some(false)) => AgentMode::Auto,
            (None, None) => AgentMode::default_of(confines),
        });
        // Nothing is confined in `full`, so a sandbox asks for less than that.
        if mode == AgentMode::Full && sandbox.is_some_and(|kept| kept != SandboxMode::Off) {
            mode = AgentMode::Auto;
        }
        // A person who asks for questions gets them in every mode that would ask less.
        if asks == Some(true) && mode > AgentMode::Ask {
            mode = AgentMode::Ask;
        }
        if asks == Some(false) && mode == AgentMode::Ask {
            mode = AgentMode::Auto;
        }
        let mut limits = mode.sandbox();
        match sandbox {
            Some(SandboxMode::Off) => limits = Sandbox::off(),
            Some(kept) => limits.mode = kept,
            None => {}
        }
        if !limits.is_off() {
            limits.network = network.unwrap_or(limits.network);
            limits.sockets = sockets.or(limits.sockets);
        }
        AgentRights { mode, sandbox: limits }
    }
}

impl AgentRights {
    /// Describes the rights on a system that does not enforce all of the sandbox. `missing` says what it does not enforce.
    pub fn unenforced(&self, missing: &str) -> String {
        format!("mode {}: {missing}; {}", self.mode, questions(self.mode))
    }
}

/// Says what a person is asked about in a mode.
fn questions(mode: AgentMode) -> &'static str {
    match mode {
        AgentMode::Plan => "calls that change something are refused",
        AgentMode::Ask => "you are asked before each change and each command",
        AgentMode::Auto => "you are asked before what leaves the sandbox",
        AgentMode::Full => "nothing is asked",
    }
}

/// The first line of a run: the mode, and what it protects.
impl fmt::Display for AgentRights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, sandbox } = self;
        write!(formatter, "mode {mode}: ")?;
        formatter.write_str(match sandbox.mode {
            SandboxMode::Off => "commands are not confined",
            SandboxMode::Workspace => "commands write only in the workspace",
            SandboxMode::ReadOnly => "commands write nothing",
        })?;
        if !sandbox.is_off() {
            let network = if sandbox.network { "with" } else { "without" };
            let sockets = if sandbox.allowed_sockets() == SandboxSockets::On { "with" } else { "without" };
            write!(formatter, ", {network} a network, {sockets} sockets of other programs")?;
            if mode.hides_secrets() {
                formatter.write_str(", and read no secrets of the home directory")?;
            }
        }
        write!(formatter, "; {}", questions(*mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(
        mode: Option<AgentMode>,
        sandbox: Option<SandboxMode>,
        network: Option<bool>,
        asks: Option<bool>,
    ) -> RightsChoice {
        RightsChoice { mode, sandbox, network, sockets: None, asks }
    }

    #[test]
    fn single_rights_have_a_mode() {
        use AgentMode::{Ask, Auto, Full, Plan};
        use SandboxMode::{Off, ReadOnly, Workspace};
        let quiet = Sandbox::workspace().without_network();
        for (given, mode, sandbox) in [
            (choice(None, None, None, None), Auto, quiet.clone()),
            (choice(None, None, None, Some(false)), Auto, quiet.clone()),
            (choice(None, None, None, Some(true)), Ask, quiet.clone()),
            (choice(None, None, Some(true), None), Auto, Sandbox::workspace()),
            (choice(None, Some(Workspace), None, None), Auto, quiet.clone()),
            (choice(None, Some(ReadOnly), None, None), Auto, Sandbox::read_only().without_network()),
            (choice(None, Some(ReadOnly), Some(true), Some(true)), Ask, Sandbox::read_only()),
            (choice(None, Some(Off), None, None), Full, Sandbox::off()),
            (choice(None, Some(Off), Some(true), Some(false)), Full, Sandbox::off()),
            (choice(None, Some(Off), None, Some(true)), Ask, Sandbox::off()),
            (choice(Some(Plan), None, None, None), Plan, Sandbox::read_only().without_network()),
            (choice(Some(Plan), None, Some(true), None), Plan, Sandbox::read_only()),
            (choice(Some(Plan), None, None, Some(true)), Plan, Sandbox::read_only().without_network()),
            (choice(Some(Full), None, None, None), Full, Sandbox::off()),
            (choice(Some(Full), Some(Workspace), None, None), Auto, quiet.clone()),
            (choice(Some(Full), None, None, Some(true)), Ask, quiet.clone()),
            (choice(Some(Ask), None, None, Some(false)), Auto, quiet.clone()),
        ] {
            let text = format!("{given:?}");
            assert_eq!(given.resolve(true), AgentRights { mode, sandbox }, "{text}");
        }
    }

    #[test]
    fn without_a_sandbox_the_default_asks_and_what_is_chosen_holds() {
        assert_eq!(RightsChoice::default().resolve(false).mode, AgentMode::Ask);
        let chosen = RightsChoice { mode: Some(AgentMode::Auto), ..RightsChoice::default() };
        assert_eq!(chosen.resolve(false).mode, AgentMode::Auto);
    }

    #[test]
    fn a_stronger_mode_replaces_the_single_rights_of_weaker_sources() {
        let file = choice(None, Some(SandboxMode::Off), Some(true), Some(false));
        let flag = RightsChoice { mode: Some(AgentMode::Plan), ..RightsChoice::default() };
        assert_eq!(flag.clone().or(file.clone()), flag);
        // The other way round, single rights change the mode of the weaker source.
        let both = choice(None, None, Some(true), None).or(flag).resolve(true);
        assert_eq!((both.mode, both.sandbox), (AgentMode::Plan, Sandbox::read_only()));
        assert_eq!(RightsChoice::default().or(file.clone()), file);
    }

    #[test]
    fn the_first_line_says_what_is_protected() {
        for (mode, words) in [
            (AgentMode::Plan, ["write nothing", "without a network", "are refused"]),
            (AgentMode::Ask, ["only in the workspace", "read no secrets", "each command"]),
            (AgentMode::Auto, ["without a network", "without sockets", "leaves the sandbox"]),
            (AgentMode::Full, ["mode full", "not confined", "nothing is asked"]),
        ] {
            let line = RightsChoice { mode: Some(mode), ..RightsChoice::default() }.resolve(true).to_string();
            assert!(words.iter().all(|word| line.contains(word)), "{line}");
        }
        let line = RightsChoice::default().resolve(false).unenforced("commands can write every file");
        assert_eq!(
            line,
            "mode ask: commands can write every file; you are asked before each change and each command"
        );
        let open = choice(None, None, Some(true), None).resolve(true).to_string();
        assert!(open.contains("with a network"), "{open}");
        let bare = choice(None, Some(SandboxMode::Off), None, Some(true)).resolve(true).to_string();
        assert!(!bare.contains("secrets") && bare.contains("asked before each change"), "{bare}");
    }
}
