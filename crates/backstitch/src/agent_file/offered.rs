//! The built-in tools, configured by a definition.

use std::sync::Arc;
use std::time::Duration;

use super::definition::{AgentDefinition, Approve, SectionDefinition};
use super::error::{Problem, near};
use super::keys::KEY_VARIABLES;
use super::values::ToolChoice;
use crate::journal::Effect;
use crate::prompt::Section;
use crate::tool::{Approval, Tool, WorkspaceUse};
use crate::tools::{Shell, file_tools, plan_tools, recall};

/// Key of `approval` for every other tool that changes something.
const DEFAULT: &str = "default";

/// Time limit that a call may always request, even if the default time limit is lower.
const LONGEST_COMMAND: Duration = Duration::from_secs(3600);

/// All built-in tools, configured by a definition.
pub(super) struct ToolCatalog {
    all: Vec<Tool>,
}

impl ToolCatalog {
    pub(super) fn new(definition: &AgentDefinition) -> Result<Self, Problem> {
        let sandbox = definition.sandbox.clone().unwrap_or_default();
        let mut shell = Shell::default().effect(definition.shell.effect).sandbox(sandbox);
        if let Some(timeout) = definition.shell.timeout {
            shell = shell.timeout(timeout.0, timeout.0.max(LONGEST_COMMAND));
        }
        let shell = KEY_VARIABLES.iter().copied().fold(shell, Shell::without_env).tool();
        let all = file_tools().into_iter().chain([shell]).chain(plan_tools()).chain([recall()]).collect();
        let mut offered = Self { all };
        for name in definition.approval.keys().filter(|name| *name != DEFAULT) {
            offered.get(name, || vec!["approval".to_owned(), name.clone()])?;
        }
        for tool in &mut offered.all {
            let named = definition.approval.get(tool.name().as_str());
            let usual = definition.approval.get(DEFAULT).filter(|_| tool.spec.effect != Effect::Pure);
            if named.or(usual) == Some(&Approve::Ask) {
                Arc::make_mut(&mut tool.spec).approval = Approval::Needed;
            }
        }
        Ok(offered)
    }

    /// Returns the tools that the definition offers outside of sections.
    pub(super) fn chosen(&self, choice: &ToolChoice) -> Result<Vec<Tool>, Problem> {
        match choice {
            ToolChoice::All => {
                // The tools for plans and recall are only offered by name.
                let others: Vec<_> =
                    plan_tools().into_iter().chain([recall()]).map(|tool| tool.name().clone()).collect();
                Ok(self.all.iter().filter(|tool| !others.contains(tool.name())).cloned().collect())
            }
            ToolChoice::Named(names) => {
                let key = |index: usize| vec!["tools".to_owned(), index.to_string()];
                names.iter().enumerate().map(|(index, name)| self.get(name, || key(index))).collect()
            }
        }
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

/// Returns the path of an item of a list below a key.
pub(super) fn below(key: &[String], list: &str, index: usize) -> Vec<String> {
    key.iter().cloned().chain([list.to_owned(), index.to_string()]).collect()
}
