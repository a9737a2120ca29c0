//! From a definition to an agent: its MCP servers, the windows and prices of its models, its keys.

use std::time::Duration;

use backstitch::agent_file::{AgentDefinition, BuildOptions, BuiltAgent, ModelName};

use crate::common::Common;
use crate::config::Config;
use crate::keys;
use crate::trust::addresses;

/// Time after which a message says that MCP servers are waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// Starts the MCP servers of a new session's definition, and records their tools in it.
pub(crate) async fn pin_servers(
    common: &Common,
    mut definition: AgentDefinition,
) -> anyhow::Result<AgentDefinition> {
    let options = BuildOptions { key: Box::new(keys::key), transport: None };
    let waiting: Vec<String> = definition
        .mcp_servers()
        .iter()
        .filter(|server| server.pinned.is_none())
        .map(|server| server.name.clone())
        .collect();
    let notes = {
        let mut pinning = std::pin::pin!(definition.pin_mcp(&options));
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
        eprintln!("MCP server {}: {count} tools", server.name);
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
    addresses::check(definition)?;
    Ok(definition.build_with(BuildOptions { key: Box::new(keys::key), transport: None })?)
}

/// Adds the provider of a model from the settings of the user, unless it is built in or the definition has it.
pub(crate) fn add_provider_of(model: &ModelName, definition: &mut AgentDefinition) -> anyhow::Result<()> {
    if definition.access(&model.provider).is_err() {
        let known = Config::load()?.providers();
        let of_model = known.iter().find(|provider| provider.name == model.provider.as_str());
        of_model.into_iter().for_each(|provider| definition.add_provider(provider));
        let chosen = AgentDefinition { model: Some(model.clone()), base_url: None, ..definition.clone() };
        addresses::allow(&chosen);
    }
    Ok(())
}
