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

    /// Removes the servers of a definition that need values which no editor sends now. Returns whether there were any.
    pub(super) fn remove_unusable(&self, definition: &mut AgentDefinition) -> bool {
        let before = definition.mcp.len();
        definition.mcp.retain(|server| {
            let mut variables = server.variables().into_iter();
            variables.all(|name| !name.starts_with(PREFIX) || self.0.contains_key(name))
        });
        definition.mcp.len() != before
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
    McpDefinition {
        name: server.name.clone(),
        command,
        url,
        headers,
        env,
        include: Vec::new(),
        exclude: Vec::new(),
        effects: BTreeMap::new(),
        timeout: None,
        network: None,
        pinned: None,
    }
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
    fn a_server_without_its_values_is_left_out() {
        let mut definition = AgentDefinition::default();
        OfferedValues::default().add_missing(&[server()], &mut definition);
        assert!(!OfferedValues::of(&[server()]).remove_unusable(&mut definition));
        assert!(OfferedValues::default().remove_unusable(&mut definition) && definition.mcp.is_empty());
    }
}
