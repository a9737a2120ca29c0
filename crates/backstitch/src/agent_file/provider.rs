//! Providers that users define, and how the models of any provider are reached.
//!
//! A `[[provider]]` is an address under a name, with the variable of its key, its headers and its format. Several of
//! them work side by side, each with its own key. Sub-agents know those of their caller. A name of a built-in provider
//! is refused unless the definition says that it replaces that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backstitch_providers::Provider;
use serde::{Deserialize, Serialize};

use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem, near};
use super::headers::{self, HeaderTexts, is_variable};
use super::keys::{KEY_VARIABLES, checked_url};
use super::model::{ModelName, ModelProvider, is_provider_name};
use super::offered::{below, inside};
use super::values::{is_default, yes};
use crate::ports::Policy;

/// The format of requests to a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderFormat {
    /// OpenAI Chat Completions, which most servers accept.
    #[default]
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl ProviderFormat {
    /// Returns the provider whose format it is.
    pub fn provider(self) -> Provider {
        match self {
            Self::OpenaiChat => Provider::OpenAiChat,
            Self::OpenaiResponses => Provider::OpenAiResponses,
            Self::Anthropic => Provider::Anthropic,
            Self::Gemini => Provider::Gemini,
        }
    }
}

/// A provider that a user defines. It holds no secrets.
///
/// ```no_run
/// use backstitch::agent_file::ProviderDefinition;
/// use backstitch::prelude::*;
///
/// let work = ProviderDefinition::new("work", "https://llm.example.com/v1").with_key("WORK_KEY");
/// let agent = Agent::new("tailor").policy(work.model("large")?);
/// # let _ = agent;
/// # Ok::<(), backstitch::agent_file::AgentFileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderDefinition {
    /// The name before the colon of a model.
    pub name: String,
    /// Base URL of its API.
    pub base_url: String,
    /// Environment variable of its key. Without one, requests have no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Headers of every request. `${VARIABLE}` in a value stands for an environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: HeaderTexts,
    /// Format of requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub format: ProviderFormat,
    /// Whether it stands in for the built-in provider of the same name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// Whether its server is asked for the windows and prices of its models.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub discover: bool,
}

impl ProviderDefinition {
    /// Defines a provider with the format of OpenAI Chat Completions, without a key.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: base_url.into(),
            key: None,
            headers: BTreeMap::new(),
            format: ProviderFormat::default(),
            replace: false,
            discover: true,
        }
    }

    /// Sets the environment variable of the key.
    #[must_use]
    pub fn with_key(mut self, variable: impl Into<String>) -> Self {
        self.key = Some(variable.into());
        self
    }

    /// Returns the environment variables of the key and of headers.
    pub fn variables(&self) -> Vec<String> {
        let of_headers = headers::variables(&self.headers).map(str::to_owned);
        self.key.iter().cloned().chain(of_headers).collect()
    }

    /// Opens a model of the provider, with keys from the environment and the default options.
    pub fn model(&self, model: impl Into<String>) -> Result<Arc<dyn Policy>, AgentFileError> {
        self.check()?;
        let provider = ModelProvider::Defined(self.name.as_str().into());
        let definition = AgentDefinition {
            model: Some(ModelName { provider, model: model.into() }),
            providers: vec![self.clone()],
            ..AgentDefinition::default()
        };
        definition.policy()
    }

    /// Refuses a definition that cannot be used.
    pub fn check(&self) -> Result<(), Problem> {
        let is_built_in = ModelProvider::built_in().any(|known| known.as_str() == self.name);
        let is_script = self.name == ModelProvider::Scripted.as_str();
        let hint = if is_script { "" } else { ", or set `replace = true`" };
        let taken = format!("{} is built in: choose another name{hint}", self.name);
        // The text may be the key itself, so it is not repeated.
        let no_variable = "name the environment variable that holds the key, in capitals; the key itself does not belong in a file";
        Problem::check([
            ("name", !is_provider_name(&self.name), "use 1 to 32 letters, digits, `_`, `-` and `.`"),
            ("name", is_built_in && (is_script || !self.replace), taken.as_str()),
            ("key", self.key.as_deref().is_some_and(|key| !is_variable(key)), no_variable),
        ])?;
        checked_url(&self.base_url)?;
        headers::check(&self.headers, &["headers".to_owned()])
    }
}

/// How the models of a provider are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAccess {
    /// The format of requests.
    pub format: Provider,
    /// Base URL, if it is not that of the format.
    pub base_url: Option<String>,
    /// Environment variables of the key, in order of precedence.
    pub key_variables: Vec<String>,
    /// Headers of every request.
    pub headers: HeaderTexts,
}

/// An address that requests are sent to, with the environment variables whose values it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelReceiver {
    /// Base URL of the address.
    pub url: String,
    /// The variables. Those of keys of built-in providers are left out at the providers' own addresses.
    pub variables: Vec<String>,
    /// Whether the model of the agent itself is there, and not one of a fallback or a sub-agent.
    pub is_main: bool,
}

impl AgentDefinition {
    /// Returns the addresses of the models of this agent and of its sub-agents.
    pub fn model_receivers(&self) -> Vec<ModelReceiver> {
        let own = self.model.iter().filter_map(|model| self.receiver(model));
        let fallbacks = self.fallbacks.iter().filter_map(|fallback| {
            let other = self.with_fallback(fallback).ok()?;
            other.receiver(other.model.as_ref()?)
        });
        let below = self.sub_agents.iter().filter_map(|sub_agent| sub_agent.inherited(self).ok());
        let below = below.flat_map(|agent| agent.model_receivers());
        let others = fallbacks.chain(below).map(|receiver| ModelReceiver { is_main: false, ..receiver });
        own.chain(others).collect()
    }

    fn receiver(&self, model: &ModelName) -> Option<ModelReceiver> {
        let access = self.access(&model.provider).ok()??;
        let is_defined = self.providers.iter().any(|defined| defined.name == model.provider.as_str());
        let is_own_address = self.base_url.is_none() && !is_defined;
        let url = self.base_url.clone().or(access.base_url);
        let url = url.unwrap_or_else(|| access.format.base_url().to_owned());
        let of_headers = headers::variables(&access.headers).chain(headers::variables(&self.request.headers));
        let mut variables: Vec<_> = of_headers.map(str::to_owned).collect();
        if !is_own_address {
            variables.extend(access.key_variables);
        }
        Some(ModelReceiver { url, variables, is_main: true })
    }

    /// Returns how a provider is reached; `None` for a script. Fails if there is no such provider.
    pub fn access(&self, provider: &ModelProvider) -> Result<Option<ProviderAccess>, Problem> {
        if let Some(defined) = self.providers.iter().find(|defined| defined.name == provider.as_str()) {
            return Ok(Some(ProviderAccess {
                format: defined.format.provider(),
                base_url: Some(defined.base_url.clone()),
                key_variables: defined.key.iter().cloned().collect(),
                headers: defined.headers.clone(),
            }));
        }
        if let ModelProvider::Defined(name) = provider {
            let own = self.providers.iter().map(|defined| defined.name.as_str());
            let built_in: Vec<_> = ModelProvider::built_in().collect();
            let known: Vec<&str> = built_in.iter().map(ModelProvider::as_str).chain(own).collect();
            let hint = near(name, &known);
            let message = format!("there is no provider {name:?}; there are {}{hint}", known.join(", "));
            return Err(Problem::new(["model"], message));
        }
        Ok(provider.format().map(|format| ProviderAccess {
            format,
            base_url: provider.base_url().map(str::to_owned),
            key_variables: provider.key_variables().iter().map(|name| (*name).to_owned()).collect(),
            headers: BTreeMap::new(),
        }))
    }

    /// Returns the format of requests to the model; `None` for a script, and for a provider that is not known yet.
    pub(super) fn format(&self) -> Option<Provider> {
        Some(self.access(&self.model.as_ref()?.provider).ok()??.format)
    }

    /// Adds a provider, unless there is one of this name.
    pub fn add_provider(&mut self, provider: &ProviderDefinition) {
        if self.providers.iter().all(|known| known.name != provider.name) {
            self.providers.push(provider.clone());
        }
    }

    /// Removes the providers that neither this agent nor a sub-agent uses.
    pub fn keep_used_providers(&mut self) {
        let used: BTreeSet<String> =
            self.model_names().into_iter().map(|model| model.provider.as_str().to_owned()).collect();
        self.providers.retain(|provider| used.contains(&provider.name));
    }

    /// Returns the models of this agent and of its sub-agents.
    fn model_names(&self) -> Vec<&ModelName> {
        let below = self.sub_agents.iter().filter_map(|sub_agent| sub_agent.agent.as_deref());
        let fallbacks = self.fallbacks.iter().map(|fallback| &fallback.model);
        self.model.iter().chain(fallbacks).chain(below.flat_map(Self::model_names)).collect()
    }

    /// Returns the variables of keys and headers of this agent and of its sub-agents, except those of built-in
    /// providers.
    pub(super) fn own_variables(&self) -> BTreeSet<String> {
        let of_providers = self.providers.iter().flat_map(ProviderDefinition::variables);
        let own = of_providers.chain(headers::variables(&self.request.headers).map(str::to_owned));
        let below = self.sub_agents.iter().filter_map(|sub_agent| sub_agent.agent.as_deref());
        own.chain(below.flat_map(Self::own_variables)).chain(self.hidden.iter().cloned()).collect()
    }

    /// Returns the variables that commands do not see.
    pub(super) fn hidden_variables(&self) -> Vec<String> {
        let built_in = KEY_VARIABLES.iter().map(|name| (*name).to_owned());
        built_in.chain(self.own_variables()).collect()
    }

    /// Refuses models of providers that are neither built in nor defined here or above.
    pub(super) fn check_models(&self, above: &[ProviderDefinition]) -> Result<(), AgentFileError> {
        let mut known = Self { providers: self.providers.clone(), ..Self::default() };
        above.iter().for_each(|provider| known.add_provider(provider));
        if let Some(model) = &self.model {
            known.access(&model.provider)?;
        }
        for (index, fallback) in self.fallbacks.iter().enumerate() {
            let checked = known.access(&fallback.model.provider);
            checked.map_err(|problem| problem.below(&below(&[], "fallback", index)))?;
        }
        for (index, sub_agent) in self.sub_agents.iter().enumerate() {
            let Some(agent) = &sub_agent.agent else { continue };
            let checked = agent.check_models(&known.providers);
            checked.map_err(|error| inside(error, &below(&[], "sub_agent", index)))?;
        }
        Ok(())
    }

    /// Refuses providers that cannot be used, and two of the same name.
    pub(super) fn check_providers(&self) -> Result<(), Problem> {
        check_providers(&self.providers)?;
        headers::check(&self.request.headers, &["request".to_owned(), "headers".to_owned()])
    }
}

/// Refuses providers that cannot be used, and two of the same name.
pub fn check_providers(providers: &[ProviderDefinition]) -> Result<(), Problem> {
    for (index, provider) in providers.iter().enumerate() {
        let key = below(&[], "provider", index);
        provider.check().map_err(|problem| problem.below(&key))?;
        if providers[..index].iter().any(|before| before.name == provider.name) {
            let message = format!("{:?} is defined twice", provider.name);
            return Err(Problem::new(["name"], message).below(&key));
        }
    }
    Ok(())
}
