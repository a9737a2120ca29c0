//! Modes of an agent: what runs without a question, and what its commands can reach.
//!
//! A mode is one word for several rights. In `plan`, nothing is changed. In `ask`, each change and each command is
//! shown first. In `auto`, what stays inside of the sandbox runs, and what leaves it is asked about. In `full`, nothing
//! is asked and nothing is confined. In all modes but `full`, commands have no network, reach no sockets of other
//! programs, and cannot read the [places of secrets](crate::ports::SECRET_PLACES).
//!
//! Flags, agent files and settings can also set single rights. [`RightsChoice`] is what one of them says, and its
//! resolution is the table from all of them to [`AgentRights`]. A mode never widens what a recorded session has:
//! [`AgentMode::of_recorded`] only names it.

mod rights;

pub use rights::{AgentRights, RightsChoice};

use crate::approval::ApprovalVerdict;
use crate::journal::Effect;
use crate::ports::Sandbox;
use crate::text_form::words;

words! {
    /// What an agent may do without a question. The order is from the strictest to the most open.
    #[derive(Default)]
    AgentMode = "mode" {
        /// Only tools that change nothing, and commands that can write nothing but a temporary directory.
        Plan = "plan",
        /// Each change and each command needs the approval of a person.
        Ask = "ask",
        /// What stays inside of the sandbox runs; everything else needs the approval of a person.
        #[default]
        Auto = "auto",
        /// Nothing needs approval, and commands are not confined.
        Full = "full",
    }
}

/// What a call can do, as far as a mode distinguishes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A command in the sandbox of the mode, without further rights.
    ConfinedCommand,
    /// Any other call, with the effect of its tool.
    Other(Effect),
}

impl AgentMode {
    /// Returns the default on a system: `ask` where commands cannot be confined.
    pub fn default_of(confines: bool) -> Self {
        if confines { Self::Auto } else { Self::Ask }
    }

    /// Returns the mode after this one, for a key that cycles through them. It is never `full`.
    #[must_use]
    pub fn successor(self) -> Self {
        match self {
            Self::Plan => Self::Ask,
            Self::Ask => Self::Auto,
            Self::Auto | Self::Full => Self::Plan,
        }
    }

    /// Returns the sandbox of commands. The places of secrets are added when a session starts, because they depend on
    /// the home directory.
    pub fn sandbox(self) -> Sandbox {
        match self {
            Self::Plan => Sandbox::read_only().without_network(),
            Self::Ask | Self::Auto => Sandbox::workspace().without_network(),
            Self::Full => Sandbox::off(),
        }
    }

    /// Returns whether commands are kept from reading the places of secrets.
    pub fn hides_secrets(self) -> bool {
        self != Self::Full
    }

    /// Returns what happens to a call that no rule decides.
    pub fn verdict(self, call: CallKind) -> ApprovalVerdict {
        let only_reads = matches!(call, CallKind::Other(effect) if effect.only_reads());
        match self {
            _ if only_reads => ApprovalVerdict::Allow,
            Self::Full => ApprovalVerdict::Allow,
            Self::Ask => ApprovalVerdict::Ask,
            Self::Plan if call == CallKind::ConfinedCommand => ApprovalVerdict::Allow,
            Self::Plan => ApprovalVerdict::Deny,
            Self::Auto => match call {
                CallKind::ConfinedCommand | CallKind::Other(Effect::Workspace) => ApprovalVerdict::Allow,
                CallKind::Other(_) => ApprovalVerdict::Ask,
            },
        }
    }

    /// Names the mode of a session that was recorded before there were modes, or whose rights were set one by one. Its
    /// rights stay what they are.
    pub fn of_recorded(sandbox: &Sandbox, asks: bool) -> Self {
        match (sandbox.is_off(), asks) {
            (_, true) => Self::Ask,
            (true, false) => Self::Full,
            (false, false) => Self::Auto,
        }
    }
}

/// An error for a text that does not name a mode.
#[derive(Debug, thiserror::Error)]
#[error("there is no mode {name:?}; there are plan, ask, auto and full")]
pub struct UnknownMode {
    /// The text.
    pub name: String,
}

impl std::str::FromStr for AgentMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::of_word(text).ok_or_else(|| UnknownMode { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{SandboxMode, SandboxSockets};

    #[test]
    fn names_are_read_back() {
        for mode in AgentMode::ALL {
            assert_eq!(mode.as_str().parse::<AgentMode>().unwrap(), mode);
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
            assert_eq!(serde_json::from_value::<AgentMode>(mode.as_str().into()).unwrap(), mode);
        }
        let error = "yolo".parse::<AgentMode>().unwrap_err();
        assert!(error.to_string().contains("plan, ask, auto and full"), "{error}");
        assert_eq!(AgentMode::default(), AgentMode::default_of(true));
        assert_eq!(AgentMode::default_of(false), AgentMode::Ask);
    }

    #[test]
    fn the_key_for_the_next_mode_never_leads_to_full() {
        for mode in AgentMode::ALL {
            assert_ne!(mode.successor(), AgentMode::Full);
        }
        assert_eq!(AgentMode::Plan.successor().successor().successor(), AgentMode::Plan);
    }

    #[test]
    fn commands_reach_nothing_outside_in_every_mode_but_full() {
        for mode in [AgentMode::Plan, AgentMode::Ask, AgentMode::Auto] {
            let sandbox = mode.sandbox();
            assert!(sandbox.keeps_effects_inside(), "{mode}");
            assert_ne!(sandbox.allowed_sockets(), SandboxSockets::On, "{mode}");
            assert!(mode.hides_secrets(), "{mode}");
        }
        assert_eq!(AgentMode::Plan.sandbox().mode, SandboxMode::ReadOnly);
        assert!(AgentMode::Full.sandbox().is_off() && !AgentMode::Full.hides_secrets());
    }

    #[test]
    fn each_mode_decides_about_each_kind_of_call() {
        use ApprovalVerdict::{Allow, Ask, Deny};
        let kinds = [
            CallKind::Other(Effect::Pure),
            CallKind::ConfinedCommand,
            CallKind::Other(Effect::Workspace),
            CallKind::Other(Effect::Idempotent),
            CallKind::Other(Effect::External),
        ];
        for (mode, verdicts) in [
            (AgentMode::Plan, [Allow, Allow, Deny, Deny, Deny]),
            (AgentMode::Ask, [Allow, Ask, Ask, Ask, Ask]),
            (AgentMode::Auto, [Allow, Allow, Allow, Ask, Ask]),
            (AgentMode::Full, [Allow, Allow, Allow, Allow, Allow]),
        ] {
            assert_eq!(kinds.map(|kind| mode.verdict(kind)), verdicts, "{mode}");
        }
    }

    #[test]
    fn recorded_sessions_have_a_name_for_what_they_may() {
        for (sandbox, asks, mode) in [
            (Sandbox::off(), false, AgentMode::Full),
            (Sandbox::off(), true, AgentMode::Ask),
            (Sandbox::workspace(), false, AgentMode::Auto),
            (Sandbox::workspace(), true, AgentMode::Ask),
            (Sandbox::read_only().without_network(), false, AgentMode::Auto),
        ] {
            assert_eq!(AgentMode::of_recorded(&sandbox, asks), mode, "{sandbox:?}");
        }
    }
}
