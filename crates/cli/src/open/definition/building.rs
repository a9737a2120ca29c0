//! From a definition, also a recorded one, to an agent: its MCP servers, the windows and prices of its models, its keys.

use std::time::Duration;

use backstitch::agent_file::{
    AgentDefinition, AgentFileError, BuildOptions, BuiltAgent, ModelName, recorded_definition,
};
#[cfg(feature = "mcp")]
use backstitch::journal::Note;
use backstitch::view::JournalView;

use crate::common::{Common, counted};
use crate::config::Config;
use crate::error::CommandError;
use crate::keys;
use crate::open::place::OpenStore;
use crate::prompts::skills;
use crate::trust::addresses;

/// Time after which a message says that MCP servers are waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// Starts the MCP servers of a new session's definition, and records their tools in it.
pub(crate) async fn pin_servers(
    common: &Common,
    definition: AgentDefinition,
) -> anyhow::Result<AgentDefinition> {
    let options = BuildOptions { key: Box::new(keys::key), transport: None };
    pin_servers_with(common, definition, &options).await
}

/// Like [`pin_servers`], with other values of variables.
pub(crate) async fn pin_servers_with(
    common: &Common,
    mut definition: AgentDefinition,
    options: &BuildOptions<'_>,
) -> anyhow::Result<AgentDefinition> {
    let waiting: Vec<String> = definition
        .mcp_servers()
        .iter()
        .filter(|server| server.pinned.is_none())
        .map(|server| server.name.clone())
        .collect();
    let notes = {
        let mut pinning = std::pin::pin!(definition.pin_mcp(options));
        tokio::select! {
            biased;
            pinned = &mut pinning => pinned?,
            () = tokio::time::sleep(SILENCE) => {
                eprintln!("waiting for MCP server {}", waiting.join(", "));
                pinning.await?
            }
        }
    };
    notes.iter().for_each(|note| eprintln!("{note}"));
    for server in definition.mcp_servers().into_iter().filter(|_| !common.quiet) {
        let count = server.pinned.as_ref().map_or(0, Vec::len);
        eprintln!("MCP server {}: {}", server.name, counted(count, "tool"));
    }
    Ok(definition)
}

/// Asks the servers of models for the windows and prices that nothing else names, so that they are recorded in the
/// definition. Nothing is asked at an address that the user did not choose, since keys are sent there.
pub(crate) async fn with_served_models(common: &Common, mut definition: AgentDefinition) -> AgentDefinition {
    if addresses::check(&definition).is_ok() {
        let options = BuildOptions { key: Box::new(keys::key), transport: None };
        let notes = definition.fill_served_models(&options).await;
        notes.iter().filter(|_| !common.quiet).for_each(|note| eprintln!("{note}"));
    }
    definition
}

/// Builds the agent of a definition, with the keys that the command was started with.
pub(crate) fn build_agent(definition: &AgentDefinition) -> anyhow::Result<BuiltAgent> {
    build_agent_with(definition, BuildOptions { key: Box::new(keys::key), transport: None })
}

/// Like [`build_agent`], with other values of variables.
pub(crate) fn build_agent_with(
    definition: &AgentDefinition,
    options: BuildOptions<'_>,
) -> anyhow::Result<BuiltAgent> {
    addresses::check(definition)?;
    let definition = AgentDefinition { skill_reader: skills::reader(), ..definition.clone() };
    Ok(definition.build_with(options)?)
}

/// Continues with another model.
pub(crate) fn switch_model(model: &ModelName, definition: &mut AgentDefinition) -> anyhow::Result<()> {
    add_provider_of(model, definition)?;
    if definition.model.as_ref().is_some_and(|before| before.provider != model.provider) {
        // The address belongs to the provider before.
        definition.base_url = None;
    }
    if definition.model.as_ref().is_some_and(|before| before != model) {
        // So does the window.
        definition.window = None;
    }
    for refused in definition.switch_model(model.clone())? {
        eprintln!("`{}` of the agent is not sent: {}", refused.option, refused.reason);
    }
    Ok(())
}

/// Adds the provider of a model from the settings of the user, unless it is built in or the definition has it.
fn add_provider_of(model: &ModelName, definition: &mut AgentDefinition) -> anyhow::Result<()> {
    if definition.access(&model.provider).is_err() {
        let known = Config::load()?.providers();
        let of_model = known.iter().find(|provider| provider.name == model.provider.as_str());
        of_model.into_iter().for_each(|provider| definition.add_provider(provider));
        let chosen = AgentDefinition { model: Some(model.clone()), base_url: None, ..definition.clone() };
        addresses::allow(&chosen);
    }
    Ok(())
}

/// Returns the current definition of a session's agent.
pub(crate) async fn definition_of(place: &OpenStore, view: &JournalView) -> anyhow::Result<AgentDefinition> {
    // No argument of the command is wrong, and no file.
    recorded_definition(&*place.store, view, None).await.map_err(|error| match error {
        AgentFileError::Runtime(error) => error.into(),
        error => CommandError::new(error.code(), error.to_string()).into(),
    })
}

/// Builds the note that a session continues with another definition of its MCP servers or tools.
#[cfg(feature = "mcp")]
pub(crate) fn changed_tools(before: &AgentDefinition, after: &AgentDefinition) -> Note {
    let mut text = "continues with another definition of the agent".to_owned();
    for server in after.mcp_servers() {
        let known = before.mcp_servers().into_iter().find(|other| other.name == server.name);
        let change = known.map(|known| known.difference(server)).unwrap_or_default();
        for (what, names) in
            [("added", change.added), ("removed", change.removed), ("changed", change.changed)]
        {
            if !names.is_empty() {
                text.push_str(&format!("; MCP server {} has {what} {}", server.name, names.join(", ")));
            }
        }
    }
    after.note(text)
}
