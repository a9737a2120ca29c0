//! Settings as defaults of the definition that a new session is recorded with.

use std::path::PathBuf;

use backstitch::agent_file::{AgentDefinition, AgentFileError, ModelName, Problem, ProviderDefinition};
use backstitch::approval::{ApprovalRule, ApprovalRules, ApprovalScope, ApprovalVerdict};
use backstitch::stores::StoreAddress;

use super::layer::Config;
use super::settings::RuleTexts;

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
        if let Some(approve) = self.strongest(|settings| settings.approve.clone()) {
            for (tool, decision) in approve.by_tool() {
                definition.approval.entry(tool).or_insert(decision);
            }
        }
        if let Some(budget) = self.strongest(|settings| settings.budget.clone()).filter(|_| !is_set("budget"))
        {
            definition.budget = budget;
        }
        let sandbox = || self.strongest(|settings| settings.sandbox.clone());
        definition.sandbox = definition.sandbox.take().or_else(sandbox);
        // What the user hides is hidden from every agent.
        if let Some(limits) = definition.sandbox.as_mut().filter(|limits| !limits.is_off()) {
            let hidden =
                self.layers().flat_map(|layer| layer.settings.sandbox.iter().flat_map(|own| &own.hide));
            limits.hide.extend(hidden.cloned());
        }
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

    /// Returns the providers that are defined. A project cannot replace one of the user.
    pub(crate) fn providers(&self) -> Vec<ProviderDefinition> {
        let mut all = AgentDefinition::default();
        for layer in [&self.user, &self.project] {
            layer.settings.provider.iter().for_each(|provider| all.add_provider(provider));
        }
        all.providers
    }

    /// Returns the environment variables of keys and headers of the user's providers.
    pub(crate) fn provider_variables(&self) -> Vec<String> {
        self.user.settings.provider.iter().flat_map(ProviderDefinition::variables).collect()
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
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
