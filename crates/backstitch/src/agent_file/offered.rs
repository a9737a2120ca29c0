//! The tools of an agent, configured by its definition: built-in ones, programs and sub-agents.

use std::sync::Arc;

use super::build::BuildOptions;
use super::definition::{AgentDefinition, Approve, SectionDefinition, tools_of};
use super::error::{AgentFileError, Problem, near};
use super::skill;
use super::values::ToolChoice;
use crate::mode::AgentMode;
use crate::prompt::Section;
use crate::tool::{Approval, Tool, WorkspaceUse};
#[cfg(feature = "http")]
use crate::tools::Fetch;
use crate::tools::{Shell, file_tools, plan_tools, recall};

/// Key of `approval` for every other tool that changes something.
const DEFAULT: &str = "default";

/// All tools that a definition may offer.
pub(super) struct ToolCatalog {
    /// The tools for files, the shell and the one that reads pages, other built-in ones, and those that the definition declares.
    all: Vec<Tool>,
    /// The number of tools that are offered without being named: those for files, the shell, and that for pages.
    usual: usize,
    /// The number of built-in tools.
    built_in: usize,
    /// Tools that sections offer.
    in_sections: Vec<String>,
    has_engine: bool,
}

impl ToolCatalog {
    /// Collects the tools. Sub-agents get models if there are `options`; without them, the definitions are only
    /// checked.
    pub(super) fn new(
        definition: &AgentDefinition,
        options: Option<&BuildOptions<'_>>,
    ) -> Result<Self, AgentFileError> {
        let sandbox = definition.command_limits();
        let hidden = definition.hidden_variables();
        let mut shell = Shell { hidden: hidden.clone(), sandbox: sandbox.clone(), ..plain_shell() };
        shell.effect = definition.shell.effect;
        if let Some(timeout) = definition.shell.timeout {
            (shell.timeout, shell.longest_timeout) = (timeout.0, timeout.0.max(shell.longest_timeout));
        }
        let remote = fetch_tool(definition);
        let reads_pages = usize::from(remote.is_some() && definition.fetch.is_some());
        let (all, usual) = (built_in_tools(shell.tool(), remote), file_tools().len() + 1 + reads_pages);
        let (built_in, has_engine) = (all.len(), definition.engine.is_some());
        let in_sections = tools_of(&definition.sections);
        let mut offered = Self { all, usual, built_in, in_sections, has_engine };
        for (index, tool) in definition.command_tools.iter().enumerate() {
            let key = below(&[], "tool", index);
            let built = tool.tool(&sandbox, &hidden).map_err(|problem| problem.below(&key))?;
            offered.declare(built, &key)?;
        }
        if let Some(tool) = skill::tool(&definition.skills, &definition.skill_reader)? {
            offered.declare(tool, &["skill".to_owned()])?;
        }
        for (index, server) in definition.mcp.iter().enumerate() {
            let key = below(&[], "mcp", index);
            let tools = server.tools(definition, options).map_err(|problem| problem.below(&key))?;
            for tool in tools {
                offered.declare(tool, &key)?;
            }
        }
        for (index, sub_agent) in definition.sub_agents.iter().enumerate() {
            let key = below(&[], "sub_agent", index);
            let in_list = |problem: Problem| problem.below(&key);
            let inherited = sub_agent.inherited(definition).map_err(in_list)?;
            let agent = inherited.agent_with(options).map_err(|error| inside(error, &key))?;
            offered.declare(sub_agent.tool(agent).map_err(in_list)?, &key)?;
        }
        // The tools of a server are not known before it was asked for them.
        let is_unknown = |name: &str| definition.mcp.iter().any(|server| server.has_unknown(name));
        // Those of an engine are not known at all.
        let is_unknown = |name: &str| has_engine || is_unknown(name);
        for name in definition.approval.keys().filter(|name| *name != DEFAULT && !is_unknown(name)) {
            offered.get(name, || vec!["approval".to_owned(), name.clone()])?;
        }
        for tool in &mut offered.all {
            let named = definition.approval.get(tool.name().as_str());
            let usual = definition.approval.get(DEFAULT).filter(|_| !tool.spec.effect.only_reads());
            let approval = match named.or(usual) {
                Some(Approve::Ask) => Approval::Needed,
                // What a tool itself asks for is not waived.
                Some(Approve::Auto) if tool.spec.approval == Approval::NotNeeded => Approval::Waived,
                _ => continue,
            };
            Arc::make_mut(&mut tool.spec).approval = approval;
        }
        Ok(offered)
    }

    /// Adds a tool that the definition declares.
    fn declare(&mut self, tool: Tool, key: &[String]) -> Result<(), Problem> {
        if let Some(other) = self.all.iter().position(|other| other.name() == tool.name()) {
            let of = if other < self.built_in { "a built-in tool" } else { "another tool" };
            let message = format!("{of} has the name `{}`: choose another one", tool.name());
            return Err(Problem::new(["name"], message).below(key));
        }
        self.all.push(tool);
        Ok(())
    }

    /// Returns the tools that the definition offers outside of sections.
    pub(super) fn chosen(&self, choice: &ToolChoice) -> Result<Vec<Tool>, Problem> {
        let mut chosen: Vec<Tool> = match choice {
            // An engine has its own tools for files and the shell.
            ToolChoice::All if self.has_engine => Vec::new(),
            // The tools for plans and recall are only offered by name.
            ToolChoice::All => self.all[..self.usual].to_vec(),
            ToolChoice::Named(names) => {
                let key = |index: usize| vec!["tools".to_owned(), index.to_string()];
                let named = names.iter().enumerate().map(|(index, name)| self.get(name, || key(index)));
                named.collect::<Result<_, _>>()?
            }
        };
        // Those that the definition declares are offered without being named.
        for tool in &self.all[self.built_in..] {
            let is_in_section = self.in_sections.iter().any(|name| name == tool.name().as_str());
            if !is_in_section && !chosen.iter().any(|other| other.name() == tool.name()) {
                chosen.push(tool.clone());
            }
        }
        Ok(chosen)
    }

    /// Builds a section with its tools and child sections.
    pub(super) fn section(&self, definition: &SectionDefinition, key: &[String]) -> Result<Section, Problem> {
        let mut section = Section::new(&definition.key, &definition.title)
            .body(&definition.text)
            .visibility(definition.visibility);
        if let Some(summary) = &definition.summary {
            section = section.summary(summary);
        }
        for (index, name) in definition.tools.iter().enumerate() {
            section = section.tool(self.get(name, || below(key, "tools", index))?);
        }
        for (index, child) in definition.sections.iter().enumerate() {
            section = section.child(self.section(child, &below(key, "section", index))?);
        }
        Ok(section)
    }

    /// Whether a tool uses files.
    pub(super) fn uses_files(&self, name: &str) -> bool {
        let named = self.all.iter().find(|tool| tool.name().as_str() == name);
        named.is_some_and(|tool| tool.spec.workspace != WorkspaceUse::None)
    }

    fn get(&self, name: &str, key: impl FnOnce() -> Vec<String>) -> Result<Tool, Problem> {
        if let Some(tool) = self.all.iter().find(|tool| tool.name().as_str() == name) {
            return Ok(tool.clone());
        }
        let names: Vec<_> = self.all.iter().map(|tool| tool.name().as_str()).collect();
        let message =
            format!("there is no tool `{name}`{}; there are {}", near(name, &names), names.join(", "));
        Err(Problem { key: key(), message })
    }
}

/// Whether `approval` of every definition may name this tool.
pub(super) fn is_built_in(name: &str) -> bool {
    let built_in = built_in_tools(plain_shell().tool(), fetch_tool(&AgentDefinition::default()));
    name == DEFAULT || built_in.iter().any(|tool| tool.name().as_str() == name)
}

/// The options of a shell whose sandbox the definition sets.
fn plain_shell() -> Shell {
    Shell::of_mode(AgentMode::Full)
}

/// Returns the tool that reads pages, if this program can send requests. A definition may declare another tool of this name,
/// as it could before there was this one.
#[cfg(feature = "http")]
fn fetch_tool(definition: &AgentDefinition) -> Option<Tool> {
    let private_hosts = definition.fetch.clone().unwrap_or_default().private_hosts;
    let tool = Fetch { private_hosts, ..Fetch::default() }.tool();
    (!definition.declares_tool(tool.name().as_str())).then_some(tool)
}

#[cfg(not(feature = "http"))]
fn fetch_tool(_: &AgentDefinition) -> Option<Tool> {
    None
}

fn built_in_tools(shell: Tool, fetch: Option<Tool>) -> Vec<Tool> {
    file_tools().into_iter().chain([shell]).chain(fetch).chain(plan_tools()).chain([recall()]).collect()
}

/// Adds the path of a sub-agent to an error about its definition.
pub(super) fn inside(error: AgentFileError, key: &[String]) -> AgentFileError {
    match error {
        AgentFileError::InDefinition(problem) => problem.below(&["agent".to_owned()]).below(key).into(),
        other => other,
    }
}

/// Returns the path of an item of a list below a key.
pub(super) fn below(key: &[String], list: &str, index: usize) -> Vec<String> {
    key.iter().cloned().chain([list.to_owned(), index.to_string()]).collect()
}
