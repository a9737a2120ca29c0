//! What an agent may do that a person should know before it does it: what runs outside of the sandbox, what the
//! sandbox leaves open, and which calls nobody is asked about.
//!
//! Everything that asks about trust or shows an agent prints the same lines, so that nothing is left out in one of them.

use backstitch_runtime::probe;
use serde_json::Value;

use super::definition::{AgentDefinition, Approve};
use crate::journal::Effect;
use crate::mode::{AgentMode, RightsChoice};
use crate::ports::Sandbox;
use crate::tools::hide_places;

impl AgentDefinition {
    /// Describes what the agent may do, a line for each right.
    pub fn rights(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let model = self.model.as_ref().map(ToString::to_string);
        let at = self.base_url.as_ref().map(|url| format!(" at {url}"));
        if model.is_some() || at.is_some() {
            let model = model.unwrap_or_else(|| "your model".to_owned());
            lines.push(format!("asks {model}{}", at.unwrap_or_default()));
        }
        for fallback in &self.fallbacks {
            lines.push(format!("asks {} if its model does not answer", fallback.model));
        }
        for provider in &self.providers {
            let variables = provider.variables();
            let given =
                if variables.is_empty() { String::new() } else { format!(", gets {}", variables.join(", ")) };
            lines.push(format!("provider {} is at {}{given}", provider.name, provider.base_url));
        }
        for (name, value) in &self.request.headers {
            lines.push(format!("sends the header {name}: {value}"));
        }
        if let Some(engine) = &self.engine {
            lines.push(format!("is driven by {engine}, with its own tools and your account"));
        }
        if let Some(mode) = self.mode {
            lines.push(mode_line(mode).to_owned());
        }
        lines.extend(self.sandbox.as_ref().map(sandbox_line));
        lines.extend(self.workspace.setup.iter().map(|command| format!("sets up its copy with: {command}")));
        for (tool, approve) in &self.approval {
            let tool = if tool == "default" { "tools that change something" } else { tool };
            lines.push(match approve {
                Approve::Auto => format!("does not ask before calls of {tool}"),
                Approve::Ask => format!("asks before calls of {tool}"),
            });
        }
        if self.shell.effect != Effect::External {
            lines.push("repeats interrupted shell commands without a question".to_owned());
        }
        for host in self.fetch.iter().flat_map(|fetch| &fetch.private_hosts) {
            lines.push(format!("may read pages of {host}, also at a private address"));
        }
        for tool in &self.command_tools {
            lines.push(format!("tool {} runs: {}", tool.name, tool.command.join(" ")));
        }
        for server in &self.mcp {
            lines.push(server.description());
        }
        for agent in self.sub_agents.iter().filter_map(|sub_agent| sub_agent.agent.as_deref()) {
            lines.extend(agent.rights().into_iter().map(|line| format!("sub-agent {}: {line}", agent.name)));
        }
        lines
    }

    /// Sets the rights that a file leaves open, as the command does for a new session: commands have no network and cannot
    /// read the places of secrets, and what leaves their sandbox is asked about. Where the system cannot confine commands,
    /// an agent that has some asks about everything.
    pub(super) fn complete_rights(&mut self) {
        let has_commands = self.tool_names().map_or(true, |names| names.iter().any(|name| name == "shell"))
            || !self.command_tools.is_empty()
            || self.engine.is_some();
        let choice = RightsChoice {
            mode: self.mode,
            sandbox: self.sandbox.as_ref().map(|sandbox| sandbox.mode),
            asks: self.approval.get("default").map(|approve| *approve == Approve::Ask),
            ..RightsChoice::default()
        };
        let mode = choice.resolve(!has_commands || probe().confines()).mode;
        let network = self.engine.is_some();
        let sandbox = self.sandbox.get_or_insert_with(|| match mode {
            AgentMode::Full => Sandbox::off(),
            // The stricter one of `plan` follows from the mode.
            AgentMode::Plan | AgentMode::Ask | AgentMode::Auto => {
                Sandbox { network, ..AgentMode::Auto.sandbox() }
            }
        });
        hide_places(sandbox);
        self.mode = Some(mode);
        if self.engine.is_none() {
            self.fetch.get_or_insert_default();
        }
        self.complete_sandbox();
    }

    /// Returns the limits of the agent's commands, in its mode.
    pub fn command_limits(&self) -> Sandbox {
        let sandbox = self.sandbox.clone().unwrap_or_default();
        self.mode.unwrap_or_default().limit(&sandbox)
    }

    /// Removes every right that exceeds those of a user, from an agent that a project chose: its mode is at most this one, its
    /// sandbox at most this limit, and everything is asked about that the mode asks about.
    pub fn restrict(&mut self, mode: AgentMode, limit: &Sandbox) {
        self.mode = self.mode.map(|own| own.min(mode));
        if self.sandbox.is_some() {
            self.confine(limit, None);
        }
        self.drop_waivers();
        self.drop_promises();
    }

    /// Asks about every call that the mode asks about, and reads pages of public addresses only.
    pub(super) fn drop_waivers(&mut self) {
        let is_waiver = |approve: &Approve| *approve == Approve::Auto;
        self.approval.retain(|_, approve| !is_waiver(approve));
        if let Some(fetch) = &mut self.fetch {
            fetch.private_hosts.clear();
        }
        for tool in &mut self.command_tools {
            tool.approval = tool.approval.filter(|approve| !is_waiver(approve));
        }
        let inner = self.sub_agents.iter_mut().filter_map(|sub_agent| sub_agent.agent.as_deref_mut());
        inner.for_each(Self::drop_waivers);
    }

    /// Believes no promise that programs change less than they could: a mode asks less about such calls. What a sandbox
    /// enforces still counts.
    pub(super) fn drop_promises(&mut self) {
        let is_promise = |effect: Effect| effect <= Effect::Workspace;
        let effects = self.command_tools.iter_mut().map(|tool| &mut tool.effect);
        for effect in effects.chain([&mut self.shell.effect]).filter(|effect| is_promise(**effect)) {
            *effect = Effect::External;
        }
        for server in &mut self.mcp {
            server.effects.retain(|_, effect| !is_promise(*effect));
        }
        let inner = self.sub_agents.iter_mut().filter_map(|sub_agent| sub_agent.agent.as_deref_mut());
        inner.for_each(Self::drop_promises);
    }
}

/// Describes a mode.
fn mode_line(mode: AgentMode) -> &'static str {
    match mode {
        AgentMode::Plan => "mode plan: calls that change something are refused",
        AgentMode::Ask => "mode ask: asks before each change and each command",
        AgentMode::Auto => "mode auto: asks before what leaves the sandbox",
        AgentMode::Full => "mode full: asks about nothing, and confines nothing",
    }
}

/// Describes a sandbox with all of its settings.
fn sandbox_line(sandbox: &Sandbox) -> String {
    if sandbox.is_off() {
        return "sandbox: off, so its commands can write everything that you can".to_owned();
    }
    let mut line =
        format!("sandbox: {}, network {}", sandbox.mode, if sandbox.network { "on" } else { "off" });
    if let Ok(Value::Object(table)) = serde_json::to_value(sandbox) {
        // What is hidden is not a right, and a session records a long list of it.
        for (key, value) in table.iter().filter(|(key, _)| !matches!(&***key, "mode" | "network" | "hide")) {
            line.push_str(&format!(", {key} {value}"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_widens_a_right_is_a_line() {
        let text = r#"
            model = "scripted:x"
            mode = "auto"
            sandbox = { write = ["/cache"], network = false }
            [approval]
            shell = "auto"
            default = "ask"
            [shell]
            effect = "workspace"
            [workspace]
            isolated = true
            setup = ["npm ci"]
            [[tool]]
            name = "deploy"
            description = "x"
            command = ["./deploy", "now"]
            effect = "pure"
        "#;
        let definition: AgentDefinition = toml::from_str(text).unwrap();
        let lines = definition.rights().join("\n");
        for part in [
            "mode auto: asks before what leaves the sandbox",
            "sandbox: workspace, network off, write [\"/cache\"]",
            "sets up its copy with: npm ci",
            "does not ask before calls of shell",
            "asks before calls of tools that change something",
            "repeats interrupted shell commands",
            "tool deploy runs: ./deploy now",
        ] {
            assert!(lines.contains(part), "{part}: {lines}");
        }
        let mut restricted = definition;
        restricted.restrict(AgentMode::Ask, &Sandbox::read_only());
        assert_eq!(restricted.mode, Some(AgentMode::Ask));
        let effects = (restricted.shell.effect, restricted.command_tools[0].effect);
        assert_eq!(effects, (Effect::External, Effect::External), "nobody enforces what a project promises");
        let lines = restricted.rights().join("\n");
        assert!(lines.contains("sandbox: read-only, network off") && !lines.contains("/cache"), "{lines}");
        assert!(!lines.contains("does not ask before calls"), "{lines}");
        let line =
            sandbox_line(&Sandbox { read: vec!["/keys".into()], ..Sandbox::workspace().hide("/vault") });
        assert!(line.contains("read [\"/keys\"]") && !line.contains("vault"), "{line}");
    }
}
