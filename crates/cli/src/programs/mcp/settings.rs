//! `mcp add`, `mcp list` and `mcp remove`: the MCP servers of the user's settings.

use std::process::ExitCode;

use backstitch::agent_file::{AgentDefinition, AgentFileError, BuildOptions, McpDefinition, Span};
use backstitch::providers::read_text;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use toml_edit::{Array, InlineTable, Table, value};

use crate::common::Common;
use crate::config::{Config, ConfigError, edit, user_file};
use crate::keys;
use crate::open::trusted::listed_servers;
use crate::report::Report;
use crate::usage::{self, Usage};

/// The list of the settings.
const LIST: &str = "mcp";

/// Largest file that is changed, in bytes.
const LARGEST: u64 = 1 << 20;

#[derive(Args)]
pub(crate) struct Add {
    /// Name of the server. The names of its tools begin with it.
    name: String,
    /// Program of the server and its arguments, after `--`.
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "url", required_unless_present = "url")]
    command: Vec<String>,
    /// Address of a server over HTTP, in place of a program.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Variable that the program gets: NAME for the one of your environment, NAME=OTHER for the value of another. Can be
    /// repeated. Default: a short list, such as HOME and PATH.
    #[arg(long, value_name = "NAME[=OTHER]", conflicts_with = "url")]
    env: Vec<String>,
    /// Header of each request, whose value is that of an environment variable, such as "Authorization: Bearer TOKEN". Can be
    /// repeated.
    #[arg(long, value_name = "NAME: VARIABLE", requires = "url")]
    header: Vec<String>,
    /// Offer only these tools; a name may end with `*`. Can be repeated. Default: all.
    #[arg(long, value_name = "TOOL")]
    include: Vec<String>,
    /// Do not offer these tools. Can be repeated.
    #[arg(long, value_name = "TOOL")]
    exclude: Vec<String>,
    /// Time limit of a call, and of the start, such as 90s. Default: 2m.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
}

#[derive(Args)]
pub(crate) struct List {
    /// Start each server, and count its tools. Those of a project that is not trusted are not started.
    #[arg(long)]
    check: bool,
}

#[derive(Args)]
pub(crate) struct Remove {
    /// Name of the server.
    name: String,
}

impl Add {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let definition = self.definition()?;
        definition.check().map_err(|problem| Usage(problem.to_string()))?;
        let table = table_of(&definition);
        let path = change(|path, text| edit::with_table(path, text, LIST, table).map(Some))?;
        let shown = path.unwrap_or_default();
        let unset = definition.variables().into_iter().filter(|name| keys::key(name).is_none());
        let unset: Vec<_> = unset.map(|name| format!("{name} is not set now; a session needs it")).collect();
        Ok(Report::new(
            &json!({"v": 1, "path": shown, "server": ListedServer::new(&definition, "user", true)}),
        )
        .line(format!("added {} to {shown}; its tools are offered in new sessions", definition.name))
        .lines(unset)
        .print(common))
    }

    fn definition(&self) -> anyhow::Result<McpDefinition> {
        let mut definition = McpDefinition::named(&self.name);
        definition.command.clone_from(&self.command);
        definition.url.clone_from(&self.url);
        for given in &self.env {
            let (name, source) = given.split_once('=').unwrap_or((given, given));
            if name.is_empty() || source.is_empty() {
                return usage::refuse(format!(
                    "--env {given}: write NAME or NAME=OTHER, with names of variables"
                ));
            }
            definition.env.insert(name.to_owned(), source.to_owned());
        }
        for given in &self.header {
            let Some((name, source)) = given.split_once(':') else {
                return usage::refuse("--header: write \"NAME: VARIABLE\" or \"NAME: Bearer VARIABLE\"");
            };
            definition.headers.insert(name.trim().to_owned(), source.trim().to_owned());
        }
        definition.include.clone_from(&self.include);
        definition.exclude.clone_from(&self.exclude);
        definition.timeout = self.timeout;
        Ok(definition)
    }
}

impl Remove {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let name = &self.name;
        let Some(path) = change(|path, text| edit::without_table(path, text, LIST, name))? else {
            let known = Config::load()?.servers();
            let names: Vec<_> = known.iter().map(|server| server.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return usage::refuse(format!("your settings have no MCP server {name:?}; they have {names}"));
        };
        Ok(Report::new(&json!({"v": 1, "path": path, "name": name}))
            .line(format!("removed {name} from {path}; sessions that have it keep it"))
            .print(common))
    }
}

impl List {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let mut servers: Vec<_> =
            Config::load()?.servers().into_iter().map(|server| (server, "user", true)).collect();
        let here = std::env::current_dir()?;
        if let Some((path, file, is_trusted)) = listed_servers(&here)? {
            file.notes.iter().for_each(|note| eprintln!("{}: {note}", path.display()));
            servers.extend(
                file.servers.into_iter().map(|server| (server, "project", is_trusted || common.trust)),
            );
        }
        if servers.is_empty() && !common.json {
            let line =
                format!("there are no MCP servers; `{}` adds one", common.hint("mcp add NAME -- COMMAND"));
            return Ok(Report::new(&json!({"v": 1})).line(line).print(common));
        }
        for (server, origin, is_trusted) in &servers {
            let mut listed = ListedServer::new(server, origin, *is_trusted);
            if self.check && *is_trusted {
                listed.check(server).await?;
            }
            let lines = listed.lines(server);
            Report::new(&listed).lines(lines).print(common);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A server, as JSON.
#[derive(Serialize)]
struct ListedServer<'a> {
    v: u32,
    name: &'a str,
    origin: &'a str,
    trusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    command: &'a [String],
    /// The variables that it gets.
    variables: Vec<&'a str>,
    /// Names of its tools, if it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// Why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> ListedServer<'a> {
    fn new(server: &'a McpDefinition, origin: &'a str, trusted: bool) -> Self {
        let (url, command) = (server.url.as_deref(), &server.command[..]);
        let variables = server.variables();
        Self { v: 1, name: &server.name, origin, trusted, url, command, variables, tools: None, error: None }
    }

    /// Starts the server as a new session here would.
    async fn check(&mut self, server: &McpDefinition) -> anyhow::Result<()> {
        let mut definition = AgentDefinition::from_toml("")?;
        definition.workspace.path = Some(std::env::current_dir()?);
        definition.mcp = vec![McpDefinition { optional: false, ..server.clone() }];
        let options = BuildOptions { key: Box::new(keys::key), transport: None };
        match definition.pin_mcp(&options).await {
            Ok(_) => {
                let pinned = definition.mcp.iter().flat_map(|server| server.pinned.iter().flatten());
                let names = pinned.filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned));
                self.tools = Some(names.collect());
            }
            Err(AgentFileError::InDefinition(problem)) => self.error = Some(problem.message),
            Err(error) => self.error = Some(error.to_string()),
        }
        Ok(())
    }

    fn lines(&self, server: &McpDefinition) -> Vec<String> {
        let place = if self.origin == "project" { " (of the project)" } else { "" };
        let trust = if self.trusted { "" } else { "; not trusted, so it is not used" };
        let mut lines = vec![format!("{}{place}{trust}", server.description())];
        if let Some(tools) = &self.tools {
            let count = tools.len();
            let s = if count == 1 { "" } else { "s" };
            lines.push(format!("  {count} tool{s}: {}", tools.join(", ")));
        }
        lines.extend(self.error.iter().map(|error| format!("  it cannot be used: {error}")));
        lines
    }
}

/// Changes the user's file, and returns its path. `None` if there is nothing to change.
fn change(
    change: impl FnOnce(&std::path::Path, &str) -> Result<Option<String>, ConfigError>,
) -> anyhow::Result<Option<String>> {
    let path = user_file().ok_or(ConfigError::NoDirectory)?;
    let text = match read_text(&path, LARGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(ConfigError::Unreadable { path, source }.into()),
    };
    let Some(changed) = change(&path, &text)? else { return Ok(None) };
    edit::write(&path, &changed)?;
    Ok(Some(path.to_string_lossy().into_owned()))
}

/// Formats a server as a table of the settings.
fn table_of(server: &McpDefinition) -> Table {
    let mut table = Table::new();
    table.insert("name", value(&server.name));
    let list = |all: &[String]| value(Array::from_iter(all.iter().map(String::as_str)));
    let map = |all: &std::collections::BTreeMap<String, String>| {
        value(InlineTable::from_iter(all.iter().map(|(name, source)| (name.as_str(), source.as_str()))))
    };
    if let Some(url) = &server.url {
        table.insert("url", value(url));
    }
    for (key, all) in
        [("command", &server.command), ("include", &server.include), ("exclude", &server.exclude)]
    {
        if !all.is_empty() {
            table.insert(key, list(all));
        }
    }
    for (key, all) in [("env", &server.env), ("headers", &server.headers)] {
        if !all.is_empty() {
            table.insert(key, map(all));
        }
    }
    if let Some(timeout) = server.timeout {
        table.insert("timeout", value(format!("{}ms", timeout.0.as_millis())));
    }
    table
}
