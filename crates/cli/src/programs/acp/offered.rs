//! MCP servers of an editor, as servers of an agent.
//!
//! An editor sends the values of variables and headers, which may be secrets. The definition of an agent names variables in their place,
//! so that no value is recorded. The names begin with a prefix of their own: a value of an editor never stands in for a key of the
//! user.

use std::collections::BTreeMap;

use backstitch::agent_file::{AgentDefinition, McpDefinition};
use backstitch_acp::{OfferedServer, ServerPlace};
use serde_json::{Value, json};

use crate::keys;

/// The beginning of the names of variables whose values an editor sends.
const PREFIX: &str = "BACKSTITCH_EDITOR_";

/// The values of variables that an editor sends, by the names that definitions have for them.
#[derive(Clone, Default)]
pub(super) struct OfferedValues(BTreeMap<String, String>);

impl OfferedValues {
    pub(super) fn of(servers: &[OfferedServer]) -> Self {
        let all = servers.iter().flat_map(|server| {
            let values = match &server.place {
                ServerPlace::Program { environment, .. } => environment,
                ServerPlace::Address { headers, .. } => headers,
            };
            values.iter().map(|(name, value)| (variable(&server.name, name), value.clone()))
        });
        Self(all.collect())
    }

    /// Returns a function that finds the value of a variable: that of the editor, or a key of the user.
    pub(super) fn lookup(self) -> impl Fn(&str) -> Option<String> {
        move |name| match name.starts_with(PREFIX) {
            true => self.0.get(name).cloned(),
            false => keys::key(name),
        }
    }

    /// Adds the servers that a definition does not have.
    pub(super) fn add_missing(&self, servers: &[OfferedServer], definition: &mut AgentDefinition) {
        for server in servers {
            if definition.mcp.iter().all(|known| known.name != server.name) {
                definition.mcp.push(definition_of(server));
            }
        }
    }

    /// Returns the values for a recorded definition. Only a server that is recorded exactly as an editor offers it gets its
    /// values: a session of another person could name them for its own ends. Other servers that need values of an editor are
    /// removed from the definition. Returns also whether there were any.
    pub(super) fn of_recorded(servers: &[OfferedServer], definition: &mut AgentDefinition) -> (Self, bool) {
        let is_offered = |recorded: &McpDefinition| {
            let recorded = McpDefinition { pinned: None, optional: false, ..recorded.clone() };
            servers.iter().any(|server| definition_of(server) == recorded)
        };
        let is_elsewhere = is_named_elsewhere(definition);
        let before = definition.mcp.len();
        definition.mcp.retain(|server| {
            let needs_values = server.variables().iter().any(|name| name.starts_with(PREFIX));
            !needs_values || !is_elsewhere && is_offered(server)
        });
        let is_used = |server: &&OfferedServer| definition.mcp.iter().any(|known| known.name == server.name);
        let used: Vec<OfferedServer> = servers.iter().filter(is_used).cloned().collect();
        let values = if is_elsewhere { Self::default() } else { Self::of(&used) };
        (values, definition.mcp.len() != before)
    }

    /// Returns these values, or none if something else than a server names one of them.
    pub(super) fn only_for_servers(self, definition: &AgentDefinition) -> Self {
        if is_named_elsewhere(definition) { Self::default() } else { self }
    }

    /// Returns everything that a person trusts about a server.
    pub(super) fn canonical(server: &OfferedServer) -> Value {
        match &server.place {
            ServerPlace::Program { command, environment } => {
                json!({"name": server.name, "command": command, "environment": environment})
            }
            ServerPlace::Address { url, headers } => {
                json!({"name": server.name, "url": url, "headers": headers})
            }
        }
    }
}

/// Returns the name of the variable that stands for a value of a server.
fn variable(server: &str, name: &str) -> String {
    let word = |text: &str| -> String {
        let is_word = |character: char| character.is_ascii_alphanumeric();
        let capital = |character: char| if is_word(character) { character.to_ascii_uppercase() } else { '_' };
        text.chars().map(capital).collect()
    };
    format!("{PREFIX}{}_{}", word(server), word(name))
}

/// Whether something else than a server of the agent itself names a value of an editor, such as a model or a sub-agent.
fn is_named_elsewhere(definition: &AgentDefinition) -> bool {
    let others = AgentDefinition { mcp: Vec::new(), ..definition.clone() };
    others.to_recorded().to_string().contains(PREFIX)
}

fn definition_of(server: &OfferedServer) -> McpDefinition {
    let named = |values: &[(String, String)]| -> BTreeMap<String, String> {
        values.iter().map(|(name, _)| (name.clone(), variable(&server.name, name))).collect()
    };
    let (command, url, headers, env) = match &server.place {
        ServerPlace::Program { command, environment } => {
            (command.clone(), None, BTreeMap::new(), named(environment))
        }
        ServerPlace::Address { url, headers } => {
            (Vec::new(), Some(url.clone()), named(headers), BTreeMap::new())
        }
    };
    McpDefinition { command, url, headers, env, ..McpDefinition::named(&server.name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> OfferedServer {
        let environment = vec![("ANTHROPIC_API_KEY".to_owned(), "secret".to_owned())];
        let place = ServerPlace::Program { command: vec!["/bin/files".to_owned()], environment };
        OfferedServer { name: "files".to_owned(), place }
    }

    #[test]
    fn values_are_not_recorded_and_replace_no_key_of_the_user() {
        let values = OfferedValues::of(&[server()]);
        let mut definition = AgentDefinition::default();
        values.add_missing(&[server()], &mut definition);
        values.add_missing(&[server()], &mut definition);
        let [added] = &definition.mcp[..] else { panic!("it is added once") };
        let variable = &added.env["ANTHROPIC_API_KEY"];
        assert_eq!(variable, "BACKSTITCH_EDITOR_FILES_ANTHROPIC_API_KEY");
        assert!(!definition.to_recorded().to_string().contains("secret"));
        let lookup = values.lookup();
        assert_eq!(lookup(variable).as_deref(), Some("secret"));
        assert_ne!(lookup("ANTHROPIC_API_KEY").as_deref(), Some("secret"));
    }

    #[test]
    fn a_recorded_server_gets_its_values_only_if_it_is_offered_as_it_is() {
        let recorded = || {
            let mut definition = AgentDefinition::default();
            OfferedValues::default().add_missing(&[server()], &mut definition);
            definition
        };
        let (values, is_changed) = OfferedValues::of_recorded(&[server()], &mut recorded());
        assert!(!is_changed && values.0.len() == 1);
        let mut alone = recorded();
        let (values, is_changed) = OfferedValues::of_recorded(&[], &mut alone);
        assert!(is_changed && values.0.is_empty() && alone.mcp.is_empty());
        // Another program of that name, and an agent that names the value elsewhere, such as for its model.
        let mut other = recorded();
        other.mcp[0].command = vec!["/bin/spy".to_owned()];
        let (values, _) = OfferedValues::of_recorded(&[server()], &mut other);
        assert!(other.mcp.is_empty() && values.0.is_empty());
        let mut greedy = recorded();
        greedy.name = "BACKSTITCH_EDITOR_FILES_ANTHROPIC_API_KEY".to_owned();
        let (values, _) = OfferedValues::of_recorded(&[server()], &mut greedy);
        assert!(greedy.mcp.is_empty() && values.0.is_empty());
        assert!(OfferedValues::of(&[server()]).only_for_servers(&greedy).0.is_empty());
    }
}
