//! `.mcp.json`: the MCP servers of a project, in the form that other agents use.
//!
//! ```json
//! {"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-files"], "env": {"TOKEN": "${FILES_TOKEN}"}}}}
//! ```
//!
//! A value of `env` is a text or `${VARIABLE}`. Since definitions are recorded, it has to be a variable if its name or its shape says that it
//! is a secret, and so has a value of `headers`, with a word before it. What cannot be expressed is
//! left out with a note, and so is a server that is not understood.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::headers::is_variable;
use super::mcp::McpDefinition;
use super::secret_values::{has_secret_shape, names_secret};

/// The servers of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpFile {
    /// The servers. A session starts without those that cannot be started.
    pub servers: Vec<McpDefinition>,
    /// Notes for people, about servers that are left out.
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
struct JsonFile {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Value>,
}

/// A server, as far as its keys are known. Others are ignored: programs add their own.
#[derive(Deserialize)]
struct JsonServer {
    #[serde(rename = "type")]
    transport: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl McpFile {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let file: JsonFile = serde_json::from_str(text)?;
        let mut parsed = Self::default();
        for (name, value) in file.servers {
            match server(&name, value) {
                Ok(server) => parsed.servers.push(server),
                Err(reason) => parsed.notes.push(format!("MCP server {name:?} is left out: {reason}")),
            }
        }
        Ok(parsed)
    }
}

fn server(name: &str, value: Value) -> Result<McpDefinition, String> {
    let server: JsonServer = serde_json::from_value(value).map_err(|error| error.to_string())?;
    match server.transport.as_deref() {
        None | Some("stdio" | "http" | "streamable-http") => {}
        Some(other) => return Err(format!("its type {other:?} is not known; there are stdio and http")),
    }
    let mut definition = McpDefinition::named(name);
    definition.optional = true;
    let mut texts = server.command.iter().chain(&server.args).chain(&server.url);
    if let Some(text) = texts.find(|text| text.contains("${")) {
        return Err(format!("{text:?} names a variable, which only `env` and `headers` can"));
    }
    definition.command = server.command.into_iter().chain(server.args).collect();
    definition.url = server.url;
    for (variable, value) in server.env {
        match reference(&value) {
            Some(source) => {
                definition.env.insert(variable, source.to_owned());
            }
            None if value.contains("${") => {
                return Err(format!("the value of {variable} in `env` is not a text and not one variable"));
            }
            // The value may be a secret, so it is not repeated.
            None if names_secret(&variable, &value) && !value.is_empty() || has_secret_shape(&value) => {
                return Err(format!(
                    "the value of {variable} in `env` may be a secret, and it would be recorded: write \"${{{variable}}}\" and set \
                     the variable"
                ));
            }
            None => {
                definition.values.insert(variable, value);
            }
        }
    }
    for (header, value) in server.headers {
        let (before, variable) = value.split_at(value.find("${").unwrap_or(value.len()));
        // The value may be a secret, so it is not repeated.
        let Some(variable) = reference(variable) else {
            return Err(format!("the header {header} is not a variable such as \"Bearer ${{TOKEN}}\""));
        };
        definition.headers.insert(header, format!("{before}{variable}"));
    }
    definition.check().map_err(|problem| problem.to_string())?;
    Ok(definition)
}

/// Returns the variable that a value consists of.
fn reference(value: &str) -> Option<&str> {
    value.strip_prefix("${")?.strip_suffix('}').filter(|name| is_variable(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_in_the_form_of_other_agents() {
        let file = McpFile::parse(
            r#"{"other": 1, "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files"], "env": {"A": "${FILES_TOKEN}", "B": "plain", "MAX_TOKENS": "4096"}, "x": 1},
                "git": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
            }}"#,
        )
        .unwrap();
        assert_eq!(file.notes, Vec::<String>::new());
        let [files, git] = &file.servers[..] else { panic!("{file:?}") };
        assert_eq!(
            (files.name.as_str(), &files.command[..]),
            ("files", &["npx", "-y", "files"].map(str::to_owned)[..])
        );
        assert_eq!((files.env["A"].as_str(), files.values["B"].as_str()), ("FILES_TOKEN", "plain"));
        let shown = files.description();
        assert!(shown.ends_with(", gets FILES_TOKEN, sets B=\"plain\", MAX_TOKENS=\"4096\""), "{shown}");
        assert_eq!(git.headers["Authorization"], "Bearer TOKEN");
        assert!(files.optional && git.optional);
        assert_eq!(McpFile::parse("{}").unwrap(), McpFile::default());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let note = |server: &str| {
            let file = McpFile::parse(&format!(r#"{{"mcpServers": {{"a": {server}}}}}"#)).unwrap();
            assert!(file.servers.is_empty(), "{server}");
            file.notes.join("\n")
        };
        for (server, part) in [
            (r#"{"type": "sse", "url": "https://example.com"}"#, "\"sse\" is not known"),
            (r#"{"command": "${HOME}/run"}"#, "names a variable"),
            (r#"{"command": "a", "env": {"B": "x${C}"}}"#, "the value of B"),
            (r#"{"command": "a", "env": {"B": "${C:-d}"}}"#, "the value of B"),
            (r#"{"command": "a", "env": {"GITHUB_TOKEN": "sk-1234"}}"#, "\"${GITHUB_TOKEN}\""),
            (r#"{"command": "a", "env": {"PLAIN": "sk-1234567890"}}"#, "\"${PLAIN}\""),
            (r#"{"url": "https://example.com", "headers": {"X-Key": "sk-1234"}}"#, "the header X-Key"),
            (r#"{"url": "ftp://example.com"}"#, "url"),
            (r#"{}"#, "name the program"),
            (r#"7"#, "invalid type"),
        ] {
            let note = note(server);
            assert!(note.contains(part) && !note.contains("sk-1234"), "{server}: {note}");
        }
        assert!(McpFile::parse("nonsense").is_err());
    }
}
