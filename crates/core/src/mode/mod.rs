//! Modes of an agent: what runs without a question, and what its commands can reach.
//!
//! A mode is one word for several rights. In `plan`, nothing is changed. In `ask`, each change and each command is
//! shown first. In `auto`, what stays inside of the sandbox runs, and what leaves it is asked about. In `full`, nothing
//! is asked and nothing is confined. A call that reads from the network is asked about in all modes but `full`. In all modes but `full`, commands have no network, reach no sockets of other
//! programs, and cannot read the [places of secrets](crate::ports::SECRET_PLACES).
//!
//! Flags, agent files and settings can also set single rights. [`RightsChoice`] is what one of them says, and its
//! resolution is the table from all of them to [`AgentRights`]. A mode never widens what a recorded session has:
//! [`AgentMode::of_recorded`] only names it.

mod rights;

pub use rights::{AgentRights, RightsChoice};

use serde_json::{Map, Value};

use crate::approval::ApprovalVerdict;
use crate::journal::Effect;
use crate::ports::{Sandbox, SandboxSockets};
use crate::text_form::words;
use crate::tool_spec::{CommandLimit, ResourceUse, ToolSpec, WorkspaceUse};

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
    /// A command in a sandbox that lets it change nothing but a temporary directory.
    ReadingCommand,
    /// A command in a sandbox, without further rights.
    ConfinedCommand,
    /// A command that asks for rights beyond its sandbox.
    WideCommand,
    /// A call that changes only the state of the session, such as its plan.
    OwnState,
    /// A call that reads from a host of the network, and changes nothing.
    RemoteRead,
    /// Any other call, with the effect of its tool.
    Other(Effect),
}

impl CallKind {
    /// Returns the kind of a call of this tool.
    pub fn of(tool: &ToolSpec, arguments: &Map<String, Value>) -> Self {
        let uses_nothing = tool.workspace != WorkspaceUse::Write && tool.resources != ResourceUse::Write;
        match tool.commands {
            _ if tool.asks_for_rights(arguments) => Self::WideCommand,
            Some(CommandLimit::Nothing) if tool.effect <= Effect::Workspace => Self::ReadingCommand,
            Some(_) => Self::ConfinedCommand,
            None if tool.effect == Effect::Workspace && uses_nothing => Self::OwnState,
            None if tool.effect.only_reads() && tool.address_argument.is_some() => Self::RemoteRead,
            None => Self::Other(tool.effect),
        }
    }
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

    /// Returns the sandbox of commands in this mode, if the agent has this one otherwise. Only `plan` limits it further, so
    /// that a session has its own sandbox again when it leaves that mode.
    pub fn limit(self, sandbox: &Sandbox) -> Sandbox {
        if self != Self::Plan {
            return sandbox.clone();
        }
        let sockets = sandbox.allowed_sockets().min(SandboxSockets::Inside);
        let kept = Sandbox { write: Vec::new(), missing: None, terminals: false, ..sandbox.clone() };
        Sandbox { mode: self.sandbox().mode, network: false, sockets: Some(sockets), ..kept }
    }

    /// Returns what happens to a call that no rule decides. Rules do not allow what is denied here.
    pub fn verdict(self, call: CallKind) -> ApprovalVerdict {
        let only_reads = matches!(call, CallKind::Other(effect) if effect.only_reads());
        match (self, call) {
            _ if only_reads => ApprovalVerdict::Allow,
            (Self::Full, _) | (_, CallKind::OwnState) => ApprovalVerdict::Allow,
            // It changes nothing, but what its address says leaves the machine.
            (_, CallKind::RemoteRead) | (Self::Ask, _) => ApprovalVerdict::Ask,
            (Self::Plan | Self::Auto, CallKind::ReadingCommand) => ApprovalVerdict::Allow,
            (Self::Plan, _) => ApprovalVerdict::Deny,
            (Self::Auto, CallKind::ConfinedCommand | CallKind::Other(Effect::Workspace)) => {
                ApprovalVerdict::Allow
            }
            (Self::Auto, CallKind::WideCommand | CallKind::Other(_)) => ApprovalVerdict::Ask,
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
    use crate::ports::SandboxMode;
    use crate::tool_spec::ToolName;

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
            CallKind::OwnState,
            CallKind::ReadingCommand,
            CallKind::ConfinedCommand,
            CallKind::WideCommand,
            CallKind::Other(Effect::Workspace),
            CallKind::Other(Effect::Idempotent),
            CallKind::Other(Effect::External),
            CallKind::RemoteRead,
        ];
        for (mode, verdicts) in [
            (AgentMode::Plan, [Allow, Allow, Allow, Deny, Deny, Deny, Deny, Deny, Ask]),
            (AgentMode::Ask, [Allow, Allow, Ask, Ask, Ask, Ask, Ask, Ask, Ask]),
            (AgentMode::Auto, [Allow, Allow, Allow, Allow, Ask, Allow, Ask, Ask, Ask]),
            (AgentMode::Full, [Allow; 9]),
        ] {
            assert_eq!(kinds.map(|kind| mode.verdict(kind)), verdicts, "{mode}");
        }
    }

    #[test]
    fn the_kind_of_a_call_follows_from_its_tool_and_its_arguments() {
        let mut tool = ToolSpec::new(ToolName::new("shell").unwrap(), "Runs a command.");
        let remote = ToolSpec { address_argument: Some("url".to_owned()), ..tool.clone() };
        let kind = |tool: &ToolSpec, arguments: Value| CallKind::of(tool, arguments.as_object().unwrap());
        let none = || serde_json::json!({});
        assert_eq!(kind(&tool, none()), CallKind::Other(Effect::External));
        assert_eq!(kind(&remote, none()), CallKind::Other(Effect::External), "it declares more");
        let remote = ToolSpec { effect: Effect::Pure, ..remote };
        assert_eq!(kind(&remote, none()), CallKind::RemoteRead);
        tool.effect = Effect::Workspace;
        assert_eq!(kind(&tool, none()), CallKind::Other(Effect::Workspace));
        let plan = ToolSpec { workspace: WorkspaceUse::None, ..tool.clone() };
        assert_eq!(kind(&plan, none()), CallKind::OwnState);
        let confined = ToolSpec { commands: Some(CommandLimit::Workspace), ..tool.clone() };
        assert_eq!(kind(&confined, none()), CallKind::ConfinedCommand);
        let reading = ToolSpec { commands: Some(CommandLimit::Nothing), ..tool };
        assert_eq!(kind(&reading, none()), CallKind::ReadingCommand);
        let open = ToolSpec { effect: Effect::External, ..reading.clone() };
        assert_eq!(kind(&open, none()), CallKind::ConfinedCommand, "it declares more");
        let asking = ToolSpec { rights_argument: Some("needs".to_owned()), ..reading };
        assert_eq!(kind(&asking, serde_json::json!({"needs": {"network": true}})), CallKind::WideCommand);
    }

    #[test]
    fn plan_limits_every_sandbox_and_the_other_modes_none() {
        let own = Sandbox::workspace().write("/cache").hide("/keys").with_terminals();
        let limited = AgentMode::Plan.limit(&own);
        assert_eq!(limited, AgentMode::Plan.sandbox().hide("/keys"));
        assert!(AgentMode::Plan.limit(&Sandbox::off()).keeps_effects_inside());
        for mode in [AgentMode::Ask, AgentMode::Auto, AgentMode::Full] {
            assert_eq!(mode.limit(&own), own, "{mode}");
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
