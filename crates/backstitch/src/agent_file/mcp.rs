//! MCP servers of agent files, whose tools a model may call.
//!
//! A server is a program or an address. Its tools are listed once, when a session begins, and recorded with the
//! definition: a session that is resumed has the same tools. A program runs in the sandbox of the agent's commands, but has
//! the network unless its definition refuses it, with the workspace as its directory, with a short environment and those variables that `env` names. An address gets
//! the headers that `headers` takes from variables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::build::BuildOptions;
use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};
use super::headers::is_variable;
use super::keys::checked_url;
use super::offered::below;
use super::secret_values::shown;
use super::values::Span;
use crate::journal::Effect;
use crate::ports::Sandbox;
use crate::tool::Tool;

/// Between the name of a server and that of its tool.
const SEPARATOR: &str = "__";

/// Headers that the protocol sets, besides those that begin with `mcp-`.
const RESERVED: [&str; 6] =
    ["accept", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"];

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpDefinition {
    /// The name, with which the names of its tools begin: `NAME__TOOL`.
    pub name: String,
    /// The program and its arguments, if the server is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The URL of the server, if it is reached over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request, each with the name of the variable that its value comes from. Words before that name,
    /// such as `Bearer`, are part of the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Variables of the server's environment, each with the name of the variable that its value comes from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables of the server's environment, each with its value. They are recorded, so they must not hold secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
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
    /// Whether the program may use the network; `None` for the default, which is yes. It is apart from the network of
    /// commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// The tools, as the server listed them when the session began. Recorded, not written by people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Vec<Value>>,
    /// Whether a session starts without this server if it cannot be started. It is not recorded.
    #[serde(skip)]
    pub optional: bool,
}

impl McpDefinition {
    /// Creates the definition of a server that has neither a program nor an address yet.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            env: BTreeMap::new(),
            values: BTreeMap::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            effects: BTreeMap::new(),
            timeout: None,
            network: None,
            pinned: None,
            optional: false,
        }
    }

    /// Describes where the server is, and what it gets, for people who decide about it. Values of variables, and those that may be
    /// secrets, are not shown.
    pub fn description(&self) -> String {
        let line = match &self.url {
            Some(url) => format!("MCP server {} is at {url}", self.name),
            None => format!("MCP server {} runs: {}", self.name, self.command.join(" ")),
        };
        let variables = self.variables();
        let given =
            if variables.is_empty() { String::new() } else { format!(", gets {}", variables.join(", ")) };
        let values: Vec<String> = self.values.iter().map(|(name, value)| shown(name, value)).collect();
        let set = if values.is_empty() { String::new() } else { format!(", sets {}", values.join(", ")) };
        format!("{line}{given}{set}")
    }

    /// Whether a tool of this name is one of this server, as far as that is known.
    pub(super) fn may_have(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix(SEPARATOR));
        rest.is_some_and(|rest| match &self.pinned {
            None => true,
            Some(pinned) => pinned.iter().any(|tool| tool["name"] == rest),
        })
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

    /// Refuses a server that cannot be used.
    pub fn check(&self) -> Result<(), Problem> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_name = (1..=32).contains(&self.name.len()) && self.name.bytes().all(is_word);
        let (has_url, has_no_url) = (self.url.is_some(), self.url.is_none());
        let has_no_program = self.command.first().is_none_or(String::is_empty);
        let is_zero = self.timeout.is_some_and(|timeout| timeout.0.is_zero());
        let no_program = "name the program, command = [\"PROGRAM\", \"ARGUMENT\"], or set `url`";
        let no_headers = "a server with a `command` has `env` in place of `headers`";
        let no_env = "a server with a `url` has `headers` in place of `env`";
        Problem::check([
            ("name", !is_name, "use 1 to 32 letters, digits, `_` and `-`"),
            ("url", has_url && !self.command.is_empty(), "a server has either a `command` or a `url`"),
            ("env", has_url && !self.env.is_empty(), no_env),
            ("values", has_url && !self.values.is_empty(), no_env),
            ("command", has_no_url && has_no_program, no_program),
            ("headers", has_no_url && !self.headers.is_empty(), no_headers),
            ("timeout", is_zero, "the time must be longer than 0"),
            (
                "network",
                has_url && self.network.is_some(),
                "a server with a `url` is not a program of the agent",
            ),
        ])?;
        if let Some(url) = &self.url {
            checked_url(url).map_err(|problem| Problem::new(["url"], problem.message))?;
        }
        for (name, source) in &self.headers {
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
            let (name, lower) = (name.as_str(), name.to_ascii_lowercase());
            let is_reserved = RESERVED.contains(&&*lower) || lower.starts_with("mcp-");
            // The text may be a secret, so it is not repeated.
            let no_source = "name the environment variable that holds the value, such as \"Bearer GITHUB_TOKEN\"; the value itself does not belong in a file";
            Problem::check([
                (name, name.is_empty() || !name.bytes().all(is_token), "this is not a name of a header"),
                (name, is_reserved, "the protocol sets this header"),
                (name, header_source(source).is_none(), no_source),
            ])
            .map_err(|problem| problem.below(&["headers".to_owned()]))?;
        }
        Ok(())
    }

    /// Returns the limits of the program: those of commands, with a network of its own. In sessions that were recorded before
    /// there were modes, both had one network.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "without MCP there is no program"))]
    fn limits(&self, definition: &AgentDefinition) -> Sandbox {
        let mut limits = definition.command_limits();
        if !limits.is_off() {
            // The sockets of old sessions follow the network of commands.
            limits.sockets = Some(limits.allowed_sockets());
            limits.network = self.network.unwrap_or(limits.network || definition.mode.is_some());
        }
        limits
    }

    /// Returns the variables whose values the server receives.
    pub fn variables(&self) -> Vec<&str> {
        let of_headers = self.headers.values().filter_map(|text| Some(header_source(text)?.1));
        self.env.values().map(String::as_str).chain(of_headers).collect()
    }
}

/// Refuses servers that cannot be used, and two of the same name. The problems are about the key `mcp`.
pub fn check_servers(servers: &[McpDefinition]) -> Result<(), Problem> {
    for (index, server) in servers.iter().enumerate() {
        let key = below(&[], "mcp", index);
        server.check().map_err(|problem| problem.below(&key))?;
        if servers[..index].iter().any(|other| other.name == server.name) {
            let message = format!("another server has the name `{}`: choose another one", server.name);
            return Err(Problem::new(["name"], message).below(&key));
        }
    }
    Ok(())
}

/// Splits the source of a header, `VARIABLE` or a word before it such as `Bearer VARIABLE`: into the text before the value, with
/// its space, and the variable.
fn header_source(text: &str) -> Option<(&str, &str)> {
    let (before, variable) = text.split_at(text.rfind(' ').map_or(0, |space| space + 1));
    let is_word = before.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ');
    // Capitals only: a token that was written in place of a name is noticed.
    (is_variable(variable) && is_word && before.len() <= 32).then_some((before, variable))
}

impl AgentDefinition {
    /// Returns the MCP servers of this agent and of its sub-agents.
    pub fn mcp_servers(&self) -> Vec<&McpDefinition> {
        let inner = self.sub_agents.iter().filter_map(|sub_agent| sub_agent.agent.as_deref());
        self.mcp.iter().chain(inner.flat_map(Self::mcp_servers)).collect()
    }
}

pub(super) fn value_of(options: &BuildOptions<'_>, variable: &str) -> Option<String> {
    (options.key)(variable).or_else(|| std::env::var(variable).ok()).filter(|value| !value.is_empty())
}

#[cfg(not(all(feature = "mcp", unix)))]
impl McpDefinition {
    pub(super) fn tools(
        &self,
        _: &AgentDefinition,
        _: Option<&BuildOptions<'_>>,
    ) -> Result<Vec<Tool>, Problem> {
        self.check()?;
        Err(Problem::new([], "this program was built without MCP"))
    }
}

#[cfg(not(all(feature = "mcp", unix)))]
impl AgentDefinition {
    /// Does nothing: this program was built without MCP.
    pub async fn pin_mcp(&mut self, _: &BuildOptions<'_>) -> Result<Vec<String>, AgentFileError> {
        Ok(Vec::new())
    }
}

#[cfg(all(feature = "mcp", unix))]
mod servers {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use backstitch_mcp::{ClientError, McpServer, PinnedTool, ServerPlace, ServerSpec, ToolListChange};

    use super::super::offered::inside;
    use super::{
        AgentDefinition, AgentFileError, BuildOptions, McpDefinition, Problem, Tool, below, header_source,
        value_of,
    };
    use crate::ports::BoxFuture;
    use crate::tool::{ToolContext, ToolError, ToolHandler, ToolOutcome, with_causes};

    /// The code of a recorded tool whose server cannot be set up: each call fails with this message.
    struct MissingServer(String);

    impl ToolHandler for MissingServer {
        fn call(
            &self,
            _: ToolContext,
            _: serde_json::Map<String, serde_json::Value>,
        ) -> BoxFuture<'_, ToolOutcome> {
            Box::pin(std::future::ready(Err(ToolError::new(&self.0))))
        }
    }

    impl McpDefinition {
        /// Returns the server. Without `options` it is never started, so its variables need not be set.
        pub(in super::super) fn server(
            &self,
            definition: &AgentDefinition,
            options: Option<&BuildOptions<'_>>,
        ) -> Result<McpServer, Problem> {
            self.check()?;
            let value = |list: &str, name: &str, variable: &str| match options {
                None => Ok(None),
                Some(options) => value_of(options, variable).map(Some).ok_or_else(|| {
                    Problem::new([list, name], format_args!("the environment variable {variable} is not set"))
                }),
            };
            let mut spec = match &self.url {
                Some(url) => ServerSpec::address(&self.name, url),
                None => ServerSpec::program(&self.name, &self.command),
            };
            for (name, text) in &self.headers {
                let Some((before, variable)) = header_source(text) else { continue };
                if let Some(value) = value("headers", name, variable)? {
                    spec = spec.with_header(name, format!("{before}{}", value.trim()));
                }
            }
            spec.timeout = self.timeout.map(|timeout| timeout.0);
            spec.person = definition.person.clone();
            if let ServerPlace::Program(program) = &mut spec.place {
                program.directory.clone_from(&definition.workspace.path);
                program.sandbox = self.limits(definition);
                for (name, value) in &self.values {
                    program.environment.insert(name.clone(), Some(value.clone()));
                }
                for (name, variable) in &self.env {
                    if let Some(value) = value("env", name, variable)? {
                        program.environment.insert(name.clone(), Some(value));
                    }
                }
            }
            Ok(McpServer::new(spec))
        }

        /// Returns the pinned tools. If a variable of the server is not set, they are there, and their calls fail: a session that
        /// was recorded with them can be resumed.
        pub(in super::super) fn tools(
            &self,
            definition: &AgentDefinition,
            options: Option<&BuildOptions<'_>>,
        ) -> Result<Vec<Tool>, Problem> {
            let (server, missing) = match self.server(definition, options) {
                Err(problem) if self.pinned.is_some() => {
                    let message = format!("the MCP server {} cannot be used: {problem}", self.name);
                    (self.server(definition, None)?, Some(message))
                }
                server => (server?, None),
            };
            let Some(pinned) = &self.pinned else { return Ok(Vec::new()) };
            let read = |value: &serde_json::Value| {
                serde_json::from_value(value.clone())
                    .map_err(|error| Problem::new([], format_args!("a pinned tool cannot be read: {error}")))
            };
            let pinned: Vec<PinnedTool> = pinned.iter().map(read).collect::<Result<_, _>>()?;
            let mut tools = Vec::new();
            for tool in &pinned {
                let effect = self.effects.get(&tool.name).copied();
                let mut tool = server.tool(tool, effect).map_err(|error| Problem::new([], error))?;
                if let Some(message) = &missing {
                    tool.handler = Arc::new(MissingServer(message.clone()));
                }
                tools.push(tool);
            }
            let definition = Self { pinned: None, ..self.clone() };
            server.compare_with(pinned, move |name| definition.offers(name));
            Ok(tools)
        }

        /// Returns how the pinned tools of another definition of this server differ.
        pub fn difference(&self, other: &Self) -> ToolListChange {
            let read = |definition: &Self| -> Vec<PinnedTool> {
                let pinned = definition.pinned.iter().flatten();
                pinned.filter_map(|value| serde_json::from_value(value.clone()).ok()).collect()
            };
            ToolListChange::between(&read(self), &read(other))
        }

        /// Asks the server for its tools, and pins those that are offered.
        async fn pin(
            &self,
            definition: &AgentDefinition,
            options: &BuildOptions<'_>,
            notes: &mut Vec<String>,
        ) -> Result<Vec<serde_json::Value>, Problem> {
            let problem = |message: String| Problem::new([], message);
            let server = self.server(definition, Some(options))?;
            let listing = server.list().await.map_err(|error| problem(with_causes(&error)))?;
            server.end();
            notes.extend(listing.notes.iter().map(|note| format!("MCP server {}: {note}", self.name)));
            let listed = listing.tools;
            let names: BTreeSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
            let known = || Vec::from_iter(names.iter().copied()).join(", ");
            if let Some(unknown) = self.effects.keys().find(|name| !names.contains(name.as_str())) {
                return Err(problem(format!("`effects` names {unknown:?}, but the server has {}", known())));
            }
            let mut pinned = Vec::new();
            for tool in listed.iter().filter(|tool| self.offers(&tool.name)) {
                let with_hint = |error: ClientError| problem(format!("{error}; `exclude` leaves it out"));
                server.tool(tool, None).map_err(with_hint)?;
                pinned.push(serde_json::to_value(tool).map_err(|error| problem(error.to_string()))?);
            }
            if pinned.is_empty() {
                let name = &self.name;
                let message =
                    format!("the server {name:?} offers none of its tools here; it has: {}", known());
                return Err(problem(message));
            }
            Ok(pinned)
        }
    }

    impl AgentDefinition {
        /// Starts the MCP servers of this agent and of its sub-agents whose tools are not pinned yet, and pins their
        /// tools. A session is recorded with them. An optional server that cannot be started is removed.
        ///
        /// Returns notes for people, about tools and servers that are left out.
        pub async fn pin_mcp(&mut self, options: &BuildOptions<'_>) -> Result<Vec<String>, AgentFileError> {
            let mut notes = Vec::new();
            for index in 0..self.mcp.len() {
                if self.mcp[index].pinned.is_none() {
                    let pinned = self.mcp[index].pin(self, options, &mut notes).await;
                    let in_list = |problem: Problem| problem.below(&below(&[], "mcp", index));
                    match pinned {
                        Err(problem) if self.mcp[index].optional => {
                            let name = &self.mcp[index].name;
                            notes.push(format!("MCP server {name} is left out: {problem}"));
                        }
                        pinned => self.mcp[index].pinned = Some(pinned.map_err(in_list)?),
                    }
                }
            }
            self.mcp.retain(|server| server.pinned.is_some() || !server.optional);
            let caller = self.clone();
            for (index, sub_agent) in self.sub_agents.iter_mut().enumerate() {
                let key = below(&[], "sub_agent", index);
                let needs_pins = sub_agent
                    .agent
                    .as_ref()
                    .is_some_and(|agent| agent.mcp_servers().iter().any(|server| server.pinned.is_none()));
                if !needs_pins {
                    continue;
                }
                let inherited = sub_agent.inherited(&caller).map_err(|problem| problem.below(&key));
                let mut inherited = inherited?;
                let inner = Box::pin(inherited.pin_mcp(options)).await;
                notes.extend(inner.map_err(|error| inside(error, &key))?);
                if let Some(agent) = &mut sub_agent.agent {
                    (agent.mcp, agent.sub_agents) = (inherited.mcp, inherited.sub_agents);
                }
            }
            Ok(notes)
        }
    }
}

#[cfg(all(test, feature = "mcp", unix))]
mod tests {
    use super::*;
    use crate::mode::AgentMode;

    #[test]
    fn a_program_has_a_network_of_its_own() {
        let server = |more: &str| -> McpDefinition {
            toml::from_str(&format!("name = \"files\"\ncommand = [\"files\"]\n{more}")).unwrap()
        };
        let closed = AgentDefinition {
            sandbox: Some(Sandbox::workspace().without_network()),
            mode: Some(AgentMode::Auto),
            ..AgentDefinition::default()
        };
        assert!(server("").limits(&closed).network);
        assert!(!server("network = false").limits(&closed).network);
        assert!(!closed.command_limits().network);
        // A session from before there were modes keeps what it had.
        let old = AgentDefinition { mode: None, ..closed };
        assert!(!server("").limits(&old).network);
        assert!(server("network = false\nurl = \"https://example.com\"").check().is_err());
    }

    #[test]
    fn a_recorded_server_whose_variable_is_not_set_keeps_its_tools() {
        let text =
            "name = \"files\"\ncommand = [\"files\"]\nenv = { TOKEN = \"THREAD_TOKEN_THAT_IS_NOT_SET\" }";
        let mut server: McpDefinition = toml::from_str(text).unwrap();
        let definition = AgentDefinition::default();
        let options = BuildOptions { key: Box::new(|_: &str| None), transport: None };
        assert!(server.tools(&definition, Some(&options)).is_err(), "it cannot be asked for its tools");
        let parameters = serde_json::json!({"type": "object"});
        server.pinned =
            Some(vec![serde_json::json!({"name": "sew", "description": "Sews.", "parameters": parameters})]);
        assert_eq!(server.tools(&definition, Some(&options)).unwrap().len(), 1);
    }
}
