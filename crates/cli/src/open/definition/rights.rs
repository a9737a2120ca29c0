//! The mode and the sandbox of an agent: what flags, agent files and settings say, together.

use std::path::Path;

use backstitch::agent_file::{AgentDefinition, Approve};
use backstitch::mode::{AgentMode, AgentRights, RightsChoice};
use backstitch::ports::{Sandbox, SandboxMode};

use crate::common::Common;
use crate::config::Config;
use crate::open::confinement;
use crate::trust::full;
use crate::usage::Usage;

/// The key of `[approval]` that stands for all tools.
const DEFAULT: &str = "default";

/// Returns what the definition of a file says about its rights.
pub(super) fn of_file(definition: &AgentDefinition) -> RightsChoice {
    let sandbox = definition.sandbox.as_ref();
    let confined = sandbox.filter(|sandbox| !sandbox.is_off());
    let asks = definition.approval.get(DEFAULT).map(|approve| *approve == Approve::Ask);
    RightsChoice {
        mode: definition.mode,
        sandbox: sandbox.map(|sandbox| sandbox.mode),
        network: confined.map(|sandbox| sandbox.network),
        sockets: confined.and_then(|sandbox| sandbox.sockets),
        asks,
    }
}

/// Removes what a file of a project would widen, beyond what the user gives to every agent.
pub(super) fn restrict(definition: &mut AgentDefinition, config: &Config, of_user: &RightsChoice) {
    let rights = of_user.clone().resolve(confines());
    let own = config.sandbox(definition.engine.is_some());
    // A mode of the file would replace it otherwise.
    definition.sandbox = definition.sandbox.take().or_else(|| own.clone());
    let mut limit = own.unwrap_or(rights.sandbox);
    if definition.engine.is_some() {
        // It cannot work without them, and the question about trust names it.
        (limit.network, limit.sockets) = (true, None);
    }
    definition.restrict(rights.mode, &limit);
}

/// Sets the mode and the sandbox of a new session, and says what cannot be enforced.
pub(super) fn apply(
    definition: &mut AgentDefinition,
    chosen: &RightsChoice,
    common: &Common,
    directory: &Path,
) -> anyhow::Result<()> {
    let named = chosen.mode;
    let is_default = chosen.sandbox.is_none() && chosen.network.is_none() && chosen.sockets.is_none();
    let is_fallback = is_default && named.is_none() && chosen.asks.is_none();
    let rights = chosen.clone().resolve(confines());
    if named == Some(AgentMode::Full) && rights.mode == AgentMode::Full {
        full::confirm(common, directory)?;
    }
    if chosen.asks.is_none() {
        // A mode of a stronger source replaces it.
        definition.approval.remove(DEFAULT);
    }
    let sandbox = sandbox_of(definition, chosen, &rights);
    sandbox.check().map_err(|error| Usage(error.to_string()))?;
    (definition.mode, definition.sandbox) = (Some(rights.mode), Some(sandbox));
    definition.complete_sandbox();
    let asks = is_fallback && rights.mode == AgentMode::Ask;
    if let Some(sandbox) = &mut definition.sandbox {
        confinement::begin(common, sandbox, (is_default, asks))?;
    }
    Ok(())
}

/// Returns the sandbox that is recorded. That of the mode `plan` is stricter, and is not recorded, so that a session has its
/// own again when it leaves that mode.
fn sandbox_of(definition: &AgentDefinition, chosen: &RightsChoice, rights: &AgentRights) -> Sandbox {
    let is_plan = rights.mode == AgentMode::Plan;
    let mode = match chosen.sandbox {
        Some(SandboxMode::Off) | None if is_plan => SandboxMode::Workspace,
        Some(mode) if is_plan => mode,
        _ => rights.sandbox.mode,
    };
    let own = definition.sandbox.clone().filter(|sandbox| !sandbox.is_off());
    let base = own.unwrap_or_else(|| AgentMode::Auto.sandbox());
    if mode == SandboxMode::Off {
        // Limits that were asked for by a flag are refused without a mode that enforces them.
        let network = chosen.network.unwrap_or(true);
        return Sandbox { network, sockets: chosen.sockets, ..Sandbox::off() };
    }
    let network = chosen.network.unwrap_or(definition.engine.is_some());
    Sandbox { mode, network, sockets: chosen.sockets, ..base }
}

/// Whether the system can confine commands.
fn confines() -> bool {
    backstitch::host::probe().confines()
}

/// Removes what a definition says about the calls of all tools, because a person names a mode. Sub-agents keep their
/// questions.
pub(super) fn drop_defaults(definition: &mut AgentDefinition) {
    definition.approval.remove(DEFAULT);
    let agents = definition.sub_agents.iter_mut().filter_map(|sub_agent| sub_agent.agent.as_deref_mut());
    for agent in agents {
        let asks = agent.approval.get(DEFAULT) == Some(&Approve::Ask);
        drop_defaults(agent);
        if asks {
            agent.approval.insert(DEFAULT.to_owned(), Approve::Ask);
        }
    }
}

/// Continues a session in another mode. What its sandbox has of its own is kept, unless the mode has none.
pub(crate) fn change_mode(
    definition: &mut AgentDefinition,
    mode: AgentMode,
    common: &Common,
    directory: &Path,
) -> anyhow::Result<()> {
    if mode == AgentMode::Full {
        full::confirm(common, directory)?;
        definition.sandbox = Some(Sandbox::off());
    } else {
        let own = definition.sandbox.as_ref().filter(|sandbox| !sandbox.is_off());
        let files = own.map_or(SandboxMode::Workspace, |sandbox| sandbox.mode);
        let is_old = definition.mode.is_none();
        if let Some(sandbox) = definition.sandbox.as_mut().filter(|_| is_old) {
            // Nobody chose the network of a session from before there were modes.
            sandbox.network = false;
        }
        limit_files(&common.config, definition, files);
    }
    drop_defaults(definition);
    definition.mode = Some(mode);
    Ok(())
}

/// Continues a session with other files that its commands may write. Without a sandbox, nothing is asked about, unless the
/// session asks about everything.
pub(crate) fn change_sandbox(config: &Config, definition: &mut AgentDefinition, files: SandboxMode) {
    limit_files(config, definition, files);
    definition.mode = match (definition.mode, files) {
        (Some(AgentMode::Auto), SandboxMode::Off) => Some(AgentMode::Full),
        (Some(AgentMode::Full), SandboxMode::Workspace | SandboxMode::ReadOnly) => Some(AgentMode::Auto),
        (mode, _) => mode,
    };
}

/// Sets the files that commands may write. Other limits are kept; without any, they are those of the mode `auto`.
fn limit_files(config: &Config, definition: &mut AgentDefinition, files: SandboxMode) {
    let own = definition.sandbox.take().filter(|sandbox| !sandbox.is_off());
    let mut sandbox = match (files, own) {
        (SandboxMode::Off, _) => Sandbox::off(),
        (mode, Some(own)) => Sandbox { mode, ..own },
        (mode, None) => Sandbox { mode, sockets: None, ..AgentMode::Auto.sandbox() },
    };
    if definition.engine.is_some() && !sandbox.is_off() {
        sandbox.network = true;
    }
    confinement::hide_secrets(config, &mut sandbox);
    definition.sandbox = Some(sandbox);
    definition.complete_sandbox();
}

/// Describes what protects a session, as the first line of a run. `None` for one that was recorded before there were modes.
pub(crate) fn first_line(definition: &AgentDefinition) -> Option<String> {
    let rights = AgentRights { mode: definition.mode?, sandbox: definition.command_limits() };
    let mut line = match backstitch::host::probe().missing(&rights.sandbox) {
        Some(missing) => rights.unenforced(&missing),
        None => rights.to_string(),
    };
    if let Some(engine) = &definition.engine {
        line.push_str(&format!("; {} works with its own tools and the network", engine.name));
    }
    let mut servers = definition.mcp_servers().into_iter();
    let has_network = servers.any(|server| server.url.is_none() && server.network != Some(false));
    if has_network && !rights.sandbox.is_off() {
        line.push_str("; programs of MCP servers have the network");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(text: &str) -> AgentDefinition {
        AgentDefinition::from_toml(text).unwrap()
    }

    /// Returns the mode and the sandbox that a session with this file and these rights is recorded with.
    fn recorded(text: &str, chosen: RightsChoice) -> (AgentMode, Sandbox) {
        let definition = definition(text);
        let chosen = chosen.or(of_file(&definition));
        let rights = chosen.clone().resolve(true);
        (rights.mode, sandbox_of(&definition, &chosen, &rights))
    }

    #[test]
    fn a_sandbox_of_a_file_without_a_network_has_none() {
        let (mode, sandbox) = recorded("sandbox = \"workspace\"", RightsChoice::default());
        assert_eq!(mode, AgentMode::Auto);
        assert!(!sandbox.network && sandbox.mode == SandboxMode::Workspace);
        let (_, open) = recorded("sandbox = { network = true }", RightsChoice::default());
        assert!(open.network);
        let (_, written) = recorded("sandbox = { write = [\"/cache\"] }", RightsChoice::default());
        assert!(!written.network && written.write.len() == 1);
    }

    #[test]
    fn the_sandbox_of_plan_is_not_recorded() {
        let plan = || RightsChoice { mode: Some(AgentMode::Plan), ..RightsChoice::default() };
        let file = "sandbox = { write = [\"/cache\"], network = true }";
        let (mode, sandbox) = recorded(file, plan());
        assert_eq!((mode, sandbox.mode, sandbox.write.len()), (AgentMode::Plan, SandboxMode::Workspace, 1));
        assert!(!sandbox.network, "a mode replaces single rights of a weaker source");
        let (_, sandbox) = recorded("sandbox = \"off\"", plan());
        assert_eq!(sandbox.mode, SandboxMode::Workspace);
    }

    #[test]
    fn a_file_of_a_project_gets_no_more_than_the_user_gives() {
        let mut file = definition(
            "mode = \"full\"\nsandbox = { write = [\"/cache\"], network = true }\n[approval]\nshell = \"auto\"",
        );
        restrict(&mut file, &Config::default(), &RightsChoice::default());
        assert!(file.mode <= Some(AgentMode::Auto));
        let sandbox = file.sandbox.unwrap();
        assert!(!sandbox.network && sandbox.write.is_empty());
        assert!(file.approval.is_empty());
    }

    #[test]
    fn a_session_without_a_sandbox_is_in_full_and_one_with_it_is_not() {
        let config = Config::default();
        let mut file = definition("mode = \"auto\"\nsandbox = { network = true }");
        change_sandbox(&config, &mut file, SandboxMode::Off);
        assert_eq!((file.mode, file.command_limits()), (Some(AgentMode::Full), Sandbox::off()));
        change_sandbox(&config, &mut file, SandboxMode::ReadOnly);
        let sandbox = file.command_limits();
        assert_eq!((file.mode, sandbox.mode), (Some(AgentMode::Auto), SandboxMode::ReadOnly));
        assert!(!sandbox.network && sandbox.keeps_effects_inside());
        file.mode = Some(AgentMode::Ask);
        change_sandbox(&config, &mut file, SandboxMode::Off);
        assert_eq!(file.mode, Some(AgentMode::Ask));
    }

    #[test]
    fn a_mode_that_a_person_names_replaces_what_a_file_says_about_all_tools() {
        let mut file = definition(
            "[approval]\ndefault = \"auto\"\nshell = \"auto\"\n[[sub_agent]]\nname = \"a\"\ndescription = \"x\"\n\
             [sub_agent.agent.approval]\ndefault = \"auto\"\n[[sub_agent]]\nname = \"b\"\ndescription = \"x\"\n\
             [sub_agent.agent.approval]\ndefault = \"ask\"\n",
        );
        drop_defaults(&mut file);
        assert_eq!(file.approval.keys().collect::<Vec<_>>(), ["shell"]);
        let of_agents = file.sub_agents.iter().map(|sub_agent| &sub_agent.agent.as_ref().unwrap().approval);
        let defaults: Vec<_> = of_agents.map(|approval| approval.get(DEFAULT)).collect();
        assert_eq!(defaults, [None, Some(&Approve::Ask)]);
    }

    #[test]
    fn the_first_line_is_about_sessions_with_a_mode() {
        let mut file = definition("mode = \"plan\"\nsandbox = \"workspace\"");
        let line = first_line(&file).unwrap();
        let is_enforced = backstitch::host::probe().enforces(&file.command_limits());
        let begin = if is_enforced { "commands write nothing, without a network" } else { "commands can" };
        assert!(line.starts_with(&format!("mode plan: {begin}")), "{line}");
        file.mode = None;
        assert_eq!(first_line(&file), None);
    }
}
