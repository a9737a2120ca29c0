//! The definition of a new session: the agent file, the settings and the arguments, in this order.

use std::path::Path;

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, AgentFileError, AnswerMode, DataDefinition, ToolChoice};
use backstitch::journal::Effect;
use backstitch::stores::StoreAddress;
use serde_json::Value;

use super::flags::{AgentFlags, AnswerForm, ModelNeed, ShellEffect};
use super::rights;
use crate::common::Common;
use crate::config::{ApproveSetting, Config, provider_address, user_directory};
use crate::error::{CommandError, ErrorCode};
use crate::instructions;
use crate::open::trusted::{self, NewAgent};
use crate::prompts::{PromptLibrary, skills};
use crate::trust::addresses;
use crate::usage;

impl AgentFlags {
    /// Builds the definition that a new session is recorded with.
    pub(crate) fn definition(&self, common: &Common) -> anyhow::Result<AgentDefinition> {
        self.definition_for(common, ModelNeed::Required)
    }

    /// Builds the definition of a new session in a directory, which replaces that of the agent file.
    #[cfg(feature = "acp")]
    pub(crate) fn definition_in(&self, common: &Common, directory: &Path) -> anyhow::Result<AgentDefinition> {
        self.definition_within(common, ModelNeed::Required, Some(directory))
    }

    /// Whether the options name a directory.
    #[cfg(feature = "mcp")]
    pub(crate) fn names_workspace(&self) -> bool {
        self.workspace.is_some()
    }

    /// Builds the definition that a new session is recorded with, possibly without a model.
    pub(crate) fn definition_for(
        &self,
        common: &Common,
        model: ModelNeed,
    ) -> anyhow::Result<AgentDefinition> {
        self.definition_within(common, model, self.workspace.as_deref())
    }

    fn definition_within(
        &self,
        common: &Common,
        model: ModelNeed,
        workspace: Option<&Path>,
    ) -> anyhow::Result<AgentDefinition> {
        let directory = match workspace {
            Some(directory) => std::path::absolute(directory)?,
            None => std::env::current_dir()?,
        };
        let NewAgent { config, file, is_of_project } =
            trusted::new_agent(common, self.agent.as_deref(), &directory)?;
        let mut definition = file.definition;
        let of_user = config.rights();
        if is_of_project {
            rights::restrict(&mut definition, &config, &of_user);
        }
        if model == ModelNeed::Required && definition.engine.is_none() && !self.no_mcp {
            add_servers(&mut definition, common, &config, &directory)?;
        }
        let chosen = self.rights().or(rights::of_file(&definition)).or(of_user);
        config.complete(&mut definition, |key| file.keys.contains(key))?;
        self.model.apply(&mut definition)?;
        if let (None, Some(model)) = (&definition.base_url, &definition.model) {
            let is_built_in = definition.providers.iter().all(|own| own.name != model.provider.as_str());
            if is_built_in {
                definition.base_url = provider_address(&model.provider).map_err(AgentFileError::from)?;
            }
        }
        if self.model.window.is_none() && !file.keys.contains("window") {
            definition.window = config.window(&definition).or(definition.window);
        }
        if definition.engine.is_some() && !file.keys.contains("model") && self.model.model.is_none() {
            // The settings for models are not about engines.
            (definition.model, definition.script, definition.window) = (None, None, None);
            if !file.keys.contains("base_url") {
                definition.base_url = None;
            }
        }
        if definition.model.is_none() && definition.engine.is_none() && model == ModelNeed::Required {
            return Err(CommandError::new(ErrorCode::NoModel, "no model is named")
                .with_hint(
                    "use `--model PROVIDER:MODEL`; `backstitch config set model PROVIDER:MODEL` sets it for all sessions",
                )
                .into());
        }
        if let Some(budget) = &self.model.budget {
            definition.budget = budget.clone();
        }
        definition.deadline = self.model.deadline.or(definition.deadline);
        definition.max_turns = self.max_turns.or(definition.max_turns);
        if let Some(system) = &self.system {
            definition.system = Some(system.clone());
        }
        self.answering(&mut definition)?;
        if let Some(tools) = &self.tools {
            definition.tools = ToolChoice::of_list(tools);
        }
        if self.mode.is_some() {
            rights::drop_defaults(&mut definition);
        }
        if let Some(which) = &self.approve {
            definition.approval = ApproveSetting::of_list(which).by_tool();
        }
        if let Some(effect) = self.shell_effect {
            definition.shell.effect = match effect {
                ShellEffect::External => Effect::External,
                ShellEffect::Workspace => Effect::Workspace,
            };
        }
        rights::apply(&mut definition, &chosen, common, &directory)?;
        if let Some(directory) = workspace {
            definition.workspace.path = Some(directory.to_owned());
        }
        if definition.workspace.path.is_none() && definition.uses_files()? {
            definition.workspace.path = Some(std::env::current_dir()?);
        }
        definition.workspace.isolated |= self.isolated;
        if definition.workspace.isolated && definition.workspace.path.is_none() {
            return usage::refuse("the agent uses no files, so `--isolated` does not apply");
        }
        if definition.workspace.isolated && common.store == Some(StoreAddress::Memory) {
            let message = "an isolated session needs a store that is a file: its copy would end with the command, before it could be applied";
            return usage::refuse(message);
        }
        if let Some(directory) = &mut definition.workspace.path {
            std::fs::create_dir_all(&*directory)
                .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
            *directory = directory.canonicalize()?;
        }
        self.instruct(common, &config, &mut definition, model)?;
        definition.keep_used_providers();
        // Every file and variable that names an address is the user's own, or trusted.
        addresses::allow(&definition);
        Ok(definition)
    }
}

/// Adds the MCP servers of the user and of the project. Those of the agent file come first, then those of the user.
#[cfg(feature = "mcp")]
fn add_servers(
    definition: &mut AgentDefinition,
    common: &Common,
    config: &Config,
    directory: &Path,
) -> anyhow::Result<()> {
    for server in config.servers().into_iter().chain(trusted::project_servers(common, directory)?) {
        if definition.mcp.iter().all(|known| known.name != server.name) {
            definition.mcp.push(server);
        }
    }
    Ok(())
}

/// Adds nothing: this command was built without MCP.
#[cfg(not(feature = "mcp"))]
fn add_servers(_: &mut AgentDefinition, _: &Common, _: &Config, _: &Path) -> anyhow::Result<()> {
    Ok(())
}

impl AgentFlags {
    /// Adds the instructions of the command, of the user and of the project, unless the agent has its own.
    fn instruct(
        &self,
        common: &Common,
        config: &Config,
        definition: &mut AgentDefinition,
        model: ModelNeed,
    ) -> anyhow::Result<()> {
        let has_own = definition.system.is_some() || !definition.sections.is_empty();
        let is_off = config.strongest(|settings| settings.instructions) == Some(false);
        // An engine has its own instructions, and reads those of the project itself.
        let has_own = has_own || definition.engine.is_some();
        if has_own || is_off || definition.answers == AnswerMode::Lisp {
            return Ok(());
        }
        let directory = definition.workspace.path.as_deref();
        let own = user_directory();
        let composed = instructions::compose(directory, &definition.tool_names()?, own.as_deref());
        for note in composed.notes.iter().filter(|_| !common.quiet) {
            eprintln!("{note}");
        }
        definition.system = Some(composed.text);
        // Without a model, nothing chooses among skills.
        if definition.tools == ToolChoice::All && model == ModelNeed::Required {
            let here = std::env::current_dir()?;
            let directory = definition.workspace.path.clone().unwrap_or(here);
            let line = skills::offer(&PromptLibrary::load(common, &directory), definition);
            line.into_iter().filter(|_| !common.quiet).for_each(|line| eprintln!("{line}"));
        }
        Ok(())
    }

    /// Applies the flags about answers, data and compression.
    fn answering(&self, definition: &mut AgentDefinition) -> anyhow::Result<()> {
        if let Some(form) = self.answers {
            definition.answers = match form {
                AnswerForm::Tools => AnswerMode::Tools,
                AnswerForm::Lisp => AnswerMode::Lisp,
            };
        }
        for given in &self.data {
            let Some((name, path)) = given.split_once('=') else {
                return usage::refuse(format!("--data {given}: write it as NAME=FILE.json"));
            };
            let data = DataDefinition::read(name, path.as_ref())?;
            definition.data.insert(name.to_owned(), data);
        }
        if let Some(signature) = &self.signature {
            definition.signature = Some(signature.clone());
        }
        definition.compression = match self.compression.as_deref() {
            None => definition.compression.take(),
            Some("off") => Some(Value::Bool(false)),
            Some("on") => Some(Value::Bool(true)),
            Some(name) => Some(Value::String(name.to_owned())),
        };
        Ok(())
    }
}
