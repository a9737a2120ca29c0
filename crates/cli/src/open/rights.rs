//! What an agent may do that a person should know before it does it: what runs outside of the sandbox, what the
//! sandbox leaves open, and which calls nobody is asked about.
//!
//! The question about trust, `import` and `show` print the same lines, so that nothing is left out in one of them.

use backstitch::agent_file::{AgentDefinition, Approve};
use backstitch::journal::{Effect, Note, RecordBody};
use backstitch::ports::{Sandbox, SandboxMode, SandboxSockets};
use serde_json::{Value, json};

/// Topic of the note that a session was imported. It holds the limits of the user who imported it.
const IMPORTED: &str = "imported";

/// Describes what an agent may do, a line for each right.
pub(crate) fn rights(definition: &AgentDefinition) -> Vec<String> {
    let mut lines = Vec::new();
    let model = definition.model.as_ref().map(ToString::to_string);
    let at = definition.base_url.as_ref().map(|url| format!(" at {url}"));
    if model.is_some() || at.is_some() {
        let model = model.unwrap_or_else(|| "your model".to_owned());
        lines.push(format!("asks {model}{}", at.unwrap_or_default()));
    }
    for fallback in &definition.fallbacks {
        lines.push(format!("asks {} if its model does not answer", fallback.model));
    }
    for provider in &definition.providers {
        let variables = provider.variables();
        let given =
            if variables.is_empty() { String::new() } else { format!(", gets {}", variables.join(", ")) };
        lines.push(format!("provider {} is at {}{given}", provider.name, provider.base_url));
    }
    for (name, value) in &definition.request.headers {
        lines.push(format!("sends the header {name}: {value}"));
    }
    if let Some(engine) = &definition.engine {
        lines.push(format!("is driven by {engine}, with its own tools and your account"));
    }
    lines.extend(definition.sandbox.as_ref().map(sandbox_line));
    lines
        .extend(definition.workspace.setup.iter().map(|command| format!("sets up its copy with: {command}")));
    for (tool, approve) in &definition.approval {
        let tool = if tool == "default" { "tools that change something" } else { tool };
        lines.push(match approve {
            Approve::Auto => format!("does not ask before calls of {tool}"),
            Approve::Ask => format!("asks before calls of {tool}"),
        });
    }
    if definition.shell.effect != Effect::External {
        lines.push("repeats interrupted shell commands without a question".to_owned());
    }
    for tool in &definition.command_tools {
        lines.push(format!("tool {} runs: {}", tool.name, tool.command.join(" ")));
    }
    for server in &definition.mcp {
        let line = match &server.url {
            Some(url) => format!("MCP server {} is at {url}", server.name),
            None => format!("MCP server {} runs: {}", server.name, server.command.join(" ")),
        };
        let variables = server.variables();
        let given =
            if variables.is_empty() { String::new() } else { format!(", gets {}", variables.join(", ")) };
        lines.push(format!("{line}{given}"));
    }
    for agent in definition.sub_agents.iter().filter_map(|sub_agent| sub_agent.agent.as_deref()) {
        lines.extend(rights(agent).into_iter().map(|line| format!("sub-agent {}: {line}", agent.name)));
    }
    lines
}

/// Describes a sandbox with all of its settings.
fn sandbox_line(sandbox: &Sandbox) -> String {
    if sandbox.is_off() {
        return "sandbox: off, so its commands can write everything that you can".to_owned();
    }
    let mut line =
        format!("sandbox: {}, network {}", sandbox.mode, if sandbox.network { "on" } else { "off" });
    if let Ok(Value::Object(table)) = serde_json::to_value(sandbox) {
        for (key, value) in table.iter().filter(|(key, _)| !matches!(&***key, "mode" | "network")) {
            line.push_str(&format!(", {key} {value}"));
        }
    }
    line
}

/// Limits the sandbox of an agent that another user defined: nothing is allowed that this user does not allow
/// to all sessions.
pub(crate) fn confine(definition: &mut AgentDefinition, limit: &Sandbox) {
    let mut sandbox = definition.sandbox.take().unwrap_or_default();
    let strictness = |mode: SandboxMode| match mode {
        SandboxMode::Off => 0,
        SandboxMode::Workspace => 1,
        SandboxMode::ReadOnly => 2,
    };
    if strictness(limit.mode) > strictness(sandbox.mode) {
        sandbox.mode = limit.mode;
    }
    sandbox.network &= limit.network || sandbox.is_off();
    let openness = |sockets: SandboxSockets| match sockets {
        SandboxSockets::Off => 0,
        SandboxSockets::Inside => 1,
        SandboxSockets::On => 2,
    };
    let (own, allowed) = (sandbox.allowed_sockets(), limit.allowed_sockets());
    if !sandbox.is_off() {
        sandbox.sockets = Some(if openness(allowed) < openness(own) { allowed } else { own });
    }
    sandbox.terminals &= limit.terminals || limit.is_off();
    // Its paths are those of another machine.
    sandbox.write.retain(|path| limit.write.contains(path));
    definition.sandbox = Some(sandbox);
}

/// Builds the note that a session was imported by a user with these limits.
pub(crate) fn imported(limit: &Sandbox) -> Note {
    let text = "another user may have defined its agent, so your sandbox applies";
    Note::new(IMPORTED, text).with_data(json!({ "sandbox": limit }))
}

/// Returns the limits of the user who imported a session, if the record names them.
pub(crate) fn imported_limit(record: &RecordBody) -> Option<Sandbox> {
    let RecordBody::Note(note) = record else { return None };
    let limit = note.data.inline()?.get("sandbox").filter(|_| note.topic == IMPORTED)?;
    // Limits of a later version are as strict as can be.
    Some(serde_json::from_value(limit.clone()).unwrap_or_else(|_| Sandbox::read_only().without_network()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined(own: Option<Sandbox>, limit: &Sandbox) -> Sandbox {
        let mut definition = AgentDefinition { sandbox: own, ..AgentDefinition::default() };
        confine(&mut definition, limit);
        definition.sandbox.unwrap()
    }

    #[test]
    fn an_imported_agent_has_the_stricter_of_two_sandboxes() {
        let user = Sandbox::workspace();
        assert_eq!(confined(None, &user), Sandbox::workspace());
        assert_eq!(confined(Some(Sandbox::off()), &user), Sandbox::workspace());
        assert_eq!(confined(Some(Sandbox::off()), &Sandbox::off()), Sandbox::off());
        assert_eq!(confined(Some(Sandbox::read_only()), &Sandbox::off()), Sandbox::read_only());
        let quiet = Sandbox::read_only().without_network();
        assert_eq!(confined(Some(Sandbox::off()), &quiet), quiet);
        assert_eq!(confined(Some(quiet.clone()), &user), quiet);
        let open = Sandbox { terminals: true, ..Sandbox::workspace().sockets(SandboxSockets::On) };
        assert_eq!(confined(Some(open.clone()), &user), user);
        assert_eq!(confined(Some(open.clone()), &Sandbox::off()), open);
        let writes = Sandbox::workspace().write("/a").write("/b");
        assert_eq!(confined(Some(writes.clone()), &user), user);
        assert_eq!(
            confined(Some(writes), &Sandbox::workspace().write("/b")),
            Sandbox::workspace().write("/b")
        );
    }

    #[test]
    fn everything_that_widens_a_right_is_a_line() {
        let text = r#"
            model = "scripted:x"
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
        "#;
        let definition: AgentDefinition = toml::from_str(text).unwrap();
        let lines = rights(&definition).join("\n");
        for part in [
            "sandbox: workspace, network off, write [\"/cache\"]",
            "sets up its copy with: npm ci",
            "does not ask before calls of shell",
            "asks before calls of tools that change something",
            "repeats interrupted shell commands",
            "tool deploy runs: ./deploy now",
        ] {
            assert!(lines.contains(part), "{part}: {lines}");
        }
    }
}
