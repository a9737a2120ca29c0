//! Settings as defaults of the definition that a new session is recorded with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backstitch::agent_file::{
    AgentDefinition, AgentFileError, McpDefinition, ModelName, Problem, ProviderDefinition,
};
use backstitch::approval::{ApprovalRule, ApprovalRules, ApprovalScope, ApprovalVerdict};
use backstitch::budget::Limits;
use backstitch::mode::RightsChoice;
use backstitch::ports::{Sandbox, SandboxMode};
use backstitch::stores::StoreAddress;

use super::layer::Config;
use super::settings::{ApproveSetting, RuleTexts, Settings};

impl Config {
    /// Sets everything that the definition of an agent leaves open. `is_set` says whether the agent file has a
    /// key.
    pub(crate) fn complete(
        &self,
        definition: &mut AgentDefinition,
        is_set: impl Fn(&str) -> bool,
    ) -> Result<(), AgentFileError> {
        self.complete_model(definition)?;
        self.providers().iter().for_each(|provider| definition.add_provider(provider));
        if let Some(tools) = self.strongest(|settings| settings.tools.clone()).filter(|_| !is_set("tools")) {
            definition.tools = tools;
        }
        for approve in self.approve() {
            for (tool, decision) in approve.by_tool() {
                definition.approval.entry(tool).or_insert(decision);
            }
        }
        if let Some(budget) = self.strongest(|settings| settings.budget.clone()).filter(|_| !is_set("budget"))
        {
            definition.budget = budget;
        }
        let has_engine = definition.engine.is_some();
        if !has_engine {
            let fetch = definition.fetch.get_or_insert_default();
            fetch.private_hosts.extend(self.user.settings.fetch.private_hosts.iter().cloned());
        }
        definition.sandbox = definition.sandbox.take().or_else(|| self.sandbox(has_engine));
        definition.max_turns = definition.max_turns.or_else(|| self.strongest(|settings| settings.max_turns));
        definition.deadline = definition.deadline.or_else(|| self.strongest(|settings| settings.deadline));
        definition.retry = definition.retry.or_else(|| self.strongest(|settings| settings.retry));
        definition.discover = definition.discover.or_else(|| self.strongest(|settings| settings.discover));
        for layer in self.layers().rev() {
            for (model, price) in &layer.settings.prices {
                definition.prices.entry(model.clone()).or_insert(*price);
            }
        }
        Ok(())
    }

    /// Returns the limits of commands. The network is closed unless it is named; an engine needs it for its model.
    pub(crate) fn sandbox(&self, has_engine: bool) -> Option<Sandbox> {
        let found = |settings: &Settings| Some((settings.sandbox.clone()?, settings.network));
        let (mut sandbox, network) = self.strongest(found)?;
        if !sandbox.is_off() {
            sandbox.network = network.unwrap_or(has_engine);
        }
        Some(sandbox)
    }

    /// Returns what the user hides from the commands of every agent.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &PathBuf> {
        self.layers().flat_map(|layer| &layer.settings.sandbox).flat_map(|own| &own.hide)
    }

    /// Returns the settings about approvals: of the user, and of a project, which can only ask for more of them.
    fn approve(&self) -> impl Iterator<Item = ApproveSetting> {
        let own =
            [&self.environment, &self.user].into_iter().find_map(|layer| layer.settings.approve.clone());
        let of_project = self.project.settings.approve.clone();
        own.into_iter().chain(of_project.filter(|approve| *approve != ApproveSetting::Auto))
    }

    /// Returns what the user and the project say about the rights of agents.
    pub(crate) fn rights(&self) -> RightsChoice {
        let sandbox = self.sandbox(false).filter(|sandbox| !sandbox.is_off());
        let is_off = self.strongest(|settings| settings.sandbox.clone()).is_some_and(|own| own.is_off());
        let mode = sandbox.as_ref().map(|sandbox| sandbox.mode);
        RightsChoice {
            mode: self.strongest(|settings| settings.mode),
            sandbox: mode.or(is_off.then_some(SandboxMode::Off)),
            network: sandbox.as_ref().and_then(|_| self.strongest(|settings| settings.network)),
            sockets: sandbox.and_then(|sandbox| sandbox.sockets),
            asks: self.approve().filter_map(|approve| approve.asks()).max(),
        }
    }

    /// Returns the providers that are defined. A project cannot replace one of the user.
    pub(crate) fn providers(&self) -> Vec<ProviderDefinition> {
        let mut all = AgentDefinition::default();
        for layer in [&self.user, &self.project] {
            layer.settings.provider.iter().for_each(|provider| all.add_provider(provider));
        }
        all.providers
    }

    /// Returns the MCP servers of the user. A session starts without those that cannot be started.
    pub(crate) fn servers(&self) -> Vec<McpDefinition> {
        let servers = self.user.settings.mcp.iter().cloned();
        servers.map(|server| McpDefinition { optional: true, ..server }).collect()
    }

    /// Returns the environment variables of keys and headers of the user's providers, and of headers of the user's MCP
    /// servers.
    pub(crate) fn secret_variables(&self) -> Vec<String> {
        let settings = &self.user.settings;
        let of_servers = settings.mcp.iter().filter(|server| server.url.is_some());
        let of_servers = of_servers.flat_map(McpDefinition::variables).map(str::to_owned);
        settings.provider.iter().flat_map(ProviderDefinition::variables).chain(of_servers).collect()
    }

    fn complete_model(&self, definition: &mut AgentDefinition) -> Result<(), AgentFileError> {
        let (model, base_url) = self.model();
        match (&definition.model, model) {
            (None, Some(model)) => definition.set_model(model)?,
            // The address belongs to another provider.
            (Some(own), Some(model)) if own.provider != model.provider => return Ok(()),
            _ => {}
        }
        definition.base_url = definition.base_url.take().or(base_url);
        Ok(())
    }

    /// Returns the model and its address. A layer that names a model of another provider makes the address of
    /// the layers before it void.
    fn model(&self) -> (Option<ModelName>, Option<String>) {
        let (mut model, mut base_url): (Option<ModelName>, Option<String>) = (None, None);
        for layer in self.layers() {
            if let Some(named) = &layer.settings.model {
                if model.as_ref().is_some_and(|before| before.provider != named.provider) {
                    base_url = None;
                }
                model = Some(named.clone());
            }
            base_url = layer.settings.base_url.clone().or(base_url);
        }
        (model, base_url)
    }

    /// Returns the limits of all sessions on one day.
    pub(crate) fn day_budget(&self) -> Option<Limits> {
        self.user.settings.day_budget.limits()
    }

    /// Returns the windows that layers set, by model.
    pub(crate) fn windows(&self) -> BTreeMap<String, u64> {
        self.layers().flat_map(|layer| layer.settings.windows.clone()).collect()
    }

    /// Returns the window of the definition's model, if a layer sets it.
    pub(crate) fn window(&self, definition: &AgentDefinition) -> Option<u64> {
        let model = definition.model.as_ref()?.to_string();
        self.strongest(|settings| settings.windows.get(&model).copied())
    }

    /// Returns the agent file of new sessions.
    pub(crate) fn agent(&self) -> Option<PathBuf> {
        self.strongest(|settings| settings.agent.clone())
    }

    /// Returns the store, if the environment or the user names one.
    pub(crate) fn store(&self) -> Option<StoreAddress> {
        self.strongest(|settings| settings.store.clone()).map(StoreAddress::new)
    }
}

impl RuleTexts {
    fn all(&self) -> impl Iterator<Item = (ApprovalVerdict, &String)> {
        let allow = self.allow.iter().map(|text| (ApprovalVerdict::Allow, text));
        let ask = self.ask.iter().map(|text| (ApprovalVerdict::Ask, text));
        allow.chain(ask).chain(self.deny.iter().map(|text| (ApprovalVerdict::Deny, text)))
    }

    /// Refuses rules that cannot be read, and those that would allow everything.
    pub(super) fn check(&self) -> Result<(), Problem> {
        for (verdict, text) in self.all() {
            let key = ["rules", verdict.as_str()];
            let scope: ApprovalScope = text.parse().map_err(|error| Problem::new(key, error))?;
            if verdict != ApprovalVerdict::Allow && !scope.needs().is_empty() {
                let message = "only a rule that allows names rights: remove the brackets";
                return Err(Problem::new(key, message));
            }
            if verdict == ApprovalVerdict::Allow && scope.is_launcher() {
                let message = format!("`{scope}` runs whatever follows, so it cannot be allowed");
                return Err(Problem::new(key, message));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Returns the lasting rules of the user: `[rules]` in the user's configuration, never in a project's.
    ///
    /// Unlike the other settings they are not recorded with a session. They apply to every session that this user drives, also
    /// to one that is resumed.
    pub(crate) fn approval_rules(&self) -> ApprovalRules {
        let texts = self.layers().flat_map(|layer| layer.settings.rules.all());
        // They were checked when the file was read.
        texts.filter_map(|(verdict, text)| Some(ApprovalRule::new(verdict, text.parse().ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_can_only_ask_for_more_approvals() {
        let asks = |user: Option<ApproveSetting>, project: ApproveSetting| {
            let mut config = Config::default();
            (config.user.settings.approve, config.project.settings.approve) = (user, Some(project));
            config.rights().asks
        };
        assert_eq!(asks(None, ApproveSetting::Auto), None);
        assert_eq!(asks(Some(ApproveSetting::Ask), ApproveSetting::Auto), Some(true));
        assert_eq!(asks(Some(ApproveSetting::Auto), ApproveSetting::Ask), Some(true));
        assert_eq!(asks(Some(ApproveSetting::Auto), ApproveSetting::Tools(Vec::new())), Some(false));
    }

    #[test]
    fn the_network_of_a_sandbox_is_closed_unless_it_is_named() {
        let mut config = Config::default();
        assert_eq!(config.sandbox(false), None);
        config.user.settings.sandbox = Some(Sandbox::workspace());
        let has_network = |config: &Config, has_engine: bool| config.sandbox(has_engine).unwrap().network;
        assert!(!has_network(&config, false) && has_network(&config, true));
        config.user.settings.network = Some(true);
        assert!(has_network(&config, false));
        config.user.settings.sandbox = Some(Sandbox::workspace().hide("/vault"));
        assert_eq!(config.hidden().collect::<Vec<_>>(), [&PathBuf::from("/vault")]);
        assert_eq!(config.rights().network, Some(true));
    }

    #[test]
    fn rules_that_cannot_be_read_or_allow_everything_are_refused() {
        let one = |text: &str| vec![text.to_owned()];
        let sound =
            RuleTexts { allow: one("shell git status"), ask: one("write_file"), deny: one("shell sudo") };
        assert!(sound.check().is_ok());
        for wrong in [
            RuleTexts { allow: one("shell git; id"), ..RuleTexts::default() },
            RuleTexts { allow: one("shell sh"), ..RuleTexts::default() },
            RuleTexts { deny: one(""), ..RuleTexts::default() },
            RuleTexts { ask: one("a.b"), ..RuleTexts::default() },
            RuleTexts { deny: one("shell[network] git push"), ..RuleTexts::default() },
            RuleTexts { allow: one("shell[network]"), ..RuleTexts::default() },
            RuleTexts { allow: one("shell[network] sh"), ..RuleTexts::default() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
