//! MCP servers of agent files, whose tools a model may call.
//!
//! A server is a program. Its tools are listed once, when a session begins, and recorded with the definition: a
//! session that is resumed has the same tools. The server runs in the sandbox of the agent, with the workspace as its
//! directory, without the keys of models, and with those variables that `env` names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::build::BuildOptions;
use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};
use super::values::Span;
use crate::journal::Effect;
use crate::tool::Tool;

/// Between the name of a server and that of its tool.
const SEPARATOR: &str = "__";

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpDefinition {
    /// The name, with which the names of its tools begin: `NAME__TOOL`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of the server's environment, each with the name of the variable that its value comes from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The tools to offer, by the server's names. A name may end with `*`. Empty offers all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Tools that are not offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Effects by the server's names. By default the server's annotations count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, Effect>,
    /// Time limit of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The tools, as the server listed them when the session began. Recorded, not written by people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Vec<Value>>,
}

impl McpDefinition {
    /// Whether a tool of this name may be one of this server.
    pub(super) fn may_have(&self, name: &str) -> bool {
        name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with(SEPARATOR))
    }

    /// Whether this name may be that of a tool which is not known yet.
    pub(super) fn has_unknown(&self, name: &str) -> bool {
        self.pinned.is_none() && self.may_have(name)
    }

    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "without MCP there is nothing to offer"))]
    fn offers(&self, name: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        (self.include.is_empty() || self.include.iter().any(matches)) && !self.exclude.iter().any(matches)
    }

    fn check(&self, key: &[String]) -> Result<(), Problem> {
        let wrong = |name: &str, message: String| {
            Err(Problem { key: key.iter().cloned().chain([name.to_owned()]).collect(), message })
        };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if self.name.is_empty() || self.name.len() > 32 || !self.name.bytes().all(is_word) {
            return wrong("name", "use 1 to 32 letters, digits, `_` and `-`".to_owned());
        }
        if self.command.first().is_none_or(String::is_empty) {
            return wrong("command", "name the program: command = [\"PROGRAM\", \"ARGUMENT\"]".to_owned());
        }
        if self.timeout.is_some_and(|timeout| timeout.0.is_zero()) {
            return wrong("timeout", "the time must be longer than 0".to_owned());
        }
        Ok(())
    }

    /// Returns the values of the variables that the server receives.
    pub(super) fn secrets(&self, options: &BuildOptions<'_>) -> Vec<String> {
        self.env.values().filter_map(|variable| value_of(options, variable)).collect()
    }
}

fn value_of(options: &BuildOptions<'_>, variable: &str) -> Option<String> {
    (options.key)(variable).or_else(|| std::env::var(variable).ok()).filter(|value| !value.is_empty())
}

#[cfg(not(all(feature = "mcp", unix)))]
impl McpDefinition {
    pub(super) fn tools(
        &self,
        _: &AgentDefinition,
        key: &[String],
        _: Option<&BuildOptions<'_>>,
    ) -> Result<Vec<Tool>, AgentFileError> {
        self.check(key)?;
        let message = "this program was built without MCP".to_owned();
        Err(Problem { key: key.to_vec(), message }.into())
    }
}

#[cfg(not(all(feature = "mcp", unix)))]
impl AgentDefinition {
    /// Does nothing: this program was built without MCP.
    pub async fn pin_mcp(&mut self, _: &BuildOptions<'_>) -> Result<(), AgentFileError> {
        Ok(())
    }
}

#[cfg(all(feature = "mcp", unix))]
mod servers {
    use std::collections::BTreeSet;

    use backstitch_mcp::{ClientError, McpServer, PinnedTool, ServerSpec};

    use super::super::keys::KEY_VARIABLES;
    use super::super::offered::below;
    use super::{AgentDefinition, AgentFileError, BuildOptions, McpDefinition, Problem, Tool, value_of};

    impl McpDefinition {
        /// Returns the server. Without `options` it is never started, so its variables need not be set.
        fn server(
            &self,
            definition: &AgentDefinition,
            key: &[String],
            options: Option<&BuildOptions<'_>>,
        ) -> Result<McpServer, Problem> {
            self.check(key)?;
            let mut spec = ServerSpec::new(&self.name, &self.command);
            spec.directory.clone_from(&definition.workspace.path);
            spec.sandbox = definition.sandbox.clone().unwrap_or_default();
            spec.timeout = self.timeout.map(|timeout| timeout.0);
            spec.environment = KEY_VARIABLES.iter().map(|name| ((*name).to_owned(), None)).collect();
            for (name, variable) in &self.env {
                let Some(options) = options else { continue };
                let value = value_of(options, variable).ok_or_else(|| Problem {
                    key: key.iter().cloned().chain(["env".to_owned(), name.clone()]).collect(),
                    message: format!("the environment variable {variable} is not set"),
                })?;
                spec.environment.insert(name.clone(), Some(value));
            }
            Ok(McpServer::new(spec))
        }

        /// Returns the pinned tools.
        pub(in super::super) fn tools(
            &self,
            definition: &AgentDefinition,
            key: &[String],
            options: Option<&BuildOptions<'_>>,
        ) -> Result<Vec<Tool>, AgentFileError> {
            let server = self.server(definition, key, options)?;
            let Some(pinned) = &self.pinned else { return Ok(Vec::new()) };
            let problem = |message: String| Problem { key: key.to_vec(), message };
            let mut tools = Vec::new();
            for value in pinned {
                let pinned: PinnedTool = serde_json::from_value(value.clone())
                    .map_err(|error| problem(format!("a pinned tool cannot be read: {error}")))?;
                let effect = self.effects.get(&pinned.name).copied();
                tools.push(server.tool(&pinned, effect).map_err(|error| problem(error.to_string()))?);
            }
            Ok(tools)
        }

        /// Asks the server for its tools, and pins those that are offered.
        async fn pin(
            &self,
            definition: &AgentDefinition,
            key: &[String],
            options: &BuildOptions<'_>,
        ) -> Result<Vec<serde_json::Value>, Problem> {
            let problem = |message: String| Problem { key: key.to_vec(), message };
            let full = |error: ClientError| {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                problem(format!("{error}{}", source.unwrap_or_default()))
            };
            let server = self.server(definition, key, Some(options))?;
            let listed = server.list().await.map_err(full)?;
            server.end().await;
            let names: BTreeSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
            if let Some(unknown) = self.effects.keys().find(|name| !names.contains(name.as_str())) {
                let known: Vec<&str> = names.into_iter().collect();
                let message = format!("`effects` names {unknown:?}, but the server has {}", known.join(", "));
                return Err(problem(message));
            }
            let mut pinned = Vec::new();
            for tool in listed.iter().filter(|tool| self.offers(&tool.name)) {
                let told = |error: ClientError| problem(format!("{error}; `exclude` leaves it out"));
                server.tool(tool, None).map_err(told)?;
                pinned.push(serde_json::to_value(tool).map_err(|error| problem(error.to_string()))?);
            }
            if pinned.is_empty() {
                let known: Vec<&str> = names.into_iter().collect();
                let message = format!(
                    "the server {:?} offers none of its tools here; it has: {}",
                    self.name,
                    known.join(", ")
                );
                return Err(problem(message));
            }
            Ok(pinned)
        }
    }

    impl AgentDefinition {
        /// Starts the MCP servers whose tools are not pinned yet, and pins their tools. A session is recorded with
        /// them.
        pub async fn pin_mcp(&mut self, options: &BuildOptions<'_>) -> Result<(), AgentFileError> {
            let mut pinned = Vec::new();
            for (index, server) in self.mcp.iter().enumerate() {
                let key = below(&[], "mcp", index);
                pinned.push(match &server.pinned {
                    Some(pinned) => pinned.clone(),
                    None => server.pin(self, &key, options).await?,
                });
            }
            for (server, pinned) in self.mcp.iter_mut().zip(pinned) {
                server.pinned = Some(pinned);
            }
            Ok(())
        }
    }
}
