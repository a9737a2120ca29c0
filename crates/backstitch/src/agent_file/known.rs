//! Context windows and prices of models: as dated data, and as servers tell them.
//!
//! The data is in `models.toml`, with its date and source. It applies to models at the address of their own
//! provider, where the definition sets nothing else. A definition that was filled in is recorded with its
//! session, so newer data does not change older sessions.
//!
//! Other servers are asked, before a session is recorded with the definition. What they tell is recorded as if the user had
//! written `window` and `prices`, so a session continues in the same way when its server is gone or says something else.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use backstitch_providers::{ModelFacts, ServedPrice, WantedFacts};
use serde::Deserialize;

use super::build::BuildOptions;
use super::definition::{AgentDefinition, PriceDefinition};
use super::model::{ModelName, ModelProvider};
use super::values::Money;
use crate::message::PolicyName;

/// Context windows and prices of models, at a date.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModels {
    /// The date up to which the data was compared with its source.
    pub as_of: String,
    /// The kind of source.
    pub source: String,
    /// The unit of the prices.
    pub currency: String,
    /// The models.
    #[serde(rename = "model")]
    pub models: Vec<KnownModel>,
}

/// A model whose window and price are known.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// The provider: `anthropic`, `openai` or `gemini`.
    pub provider: String,
    /// The name of the model, without a date.
    pub name: String,
    /// The context window, in tokens.
    pub window: u64,
    /// The price per million tokens.
    pub price: PriceDefinition,
}

static KNOWN: LazyLock<KnownModels> = LazyLock::new(|| {
    toml::from_str(include_str!("models.toml")).expect("invariant: a test reads the data of known models")
});

impl KnownModels {
    /// Returns the data of this version.
    pub fn current() -> &'static Self {
        &KNOWN
    }

    /// Returns the entry of a model.
    pub fn find(&self, model: &ModelName) -> Option<&KnownModel> {
        let ModelProvider::Wire(provider) = &model.provider else { return None };
        let provider = provider.as_str();
        let is_of = |known: &&KnownModel| {
            provider == known.provider || (provider == "openai-chat" && known.provider == "openai")
        };
        let is_named = |known: &&KnownModel| model.model.strip_prefix(&known.name).is_some_and(is_release);
        self.models.iter().filter(is_of).filter(is_named).max_by_key(|known| known.name.len())
    }
}

/// Whether the end of a name only tells releases of one model apart: a date, a revision of three digits, or
/// `latest`. Other numbers are versions, with prices of their own, and letters name another model.
fn is_release(rest: &str) -> bool {
    let Some(release) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    let is_number =
        |text: &str, digits: usize| text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    let is_date = || {
        let parts: Vec<&str> = release.split('-').collect();
        matches!(parts[..], [year, month, day] if is_number(year, 4) && is_number(month, 2) && is_number(day, 2))
    };
    release == "latest"
        || is_number(release, 8)
        || is_number(release, 4)
        || is_number(release, 3)
        || is_date()
}

impl AgentDefinition {
    /// Sets the context window and the price of the model and of its fallbacks, where they are known and not set.
    pub fn fill_known_model(&mut self) {
        for index in 0..self.fallbacks.len() {
            let Ok(mut other) = self.with_fallback(&self.fallbacks[index]) else { continue };
            other.fill_known_model();
            (self.fallbacks[index].window, self.prices) = (other.window, other.prices);
        }
        // Another server has its own limits and prices.
        let Some(model) = self.model.as_ref().filter(|_| self.base_url.is_none()) else { return };
        if self.providers.iter().any(|defined| defined.name == model.provider.as_str()) {
            return;
        }
        let Some(known) = KnownModels::current().find(model) else { return };
        self.window = self.window.or(Some(known.window));
        if !self.has_price(model) {
            self.prices.insert(model.to_string(), known.price);
        }
    }

    /// Asks the servers of the models of this agent, of its fallbacks and of its sub-agents for windows and prices that
    /// are not set, and sets what they tell. Only servers at other addresses than the provider's own are asked, unless
    /// `discover` is off. A server that tells nothing changes nothing.
    ///
    /// Returns notes for people, about what was set.
    pub async fn fill_served_models(&mut self, options: &BuildOptions<'_>) -> Vec<String> {
        let mut notes: Vec<_> = self.fill_served_model(options).await.into_iter().collect();
        for index in 0..self.fallbacks.len() {
            let Ok(mut other) = self.with_fallback(&self.fallbacks[index]) else { continue };
            notes.extend(other.fill_served_model(options).await);
            (self.fallbacks[index].window, self.prices) = (other.window, other.prices);
        }
        let caller = self.clone();
        for sub_agent in &mut self.sub_agents {
            let Ok(mut inherited) = sub_agent.inherited(&caller) else { continue };
            let facts = Box::pin(inherited.fill_served_models(options)).await;
            notes.extend(facts);
            let Some(agent) = &mut sub_agent.agent else { continue };
            (agent.window, agent.sub_agents) = (inherited.window, inherited.sub_agents);
            if !agent.fallbacks.is_empty() {
                agent.fallbacks = inherited.fallbacks;
            }
            for (model, price) in inherited.prices {
                if !caller.prices.contains_key(&model) {
                    agent.prices.insert(model, price);
                }
            }
        }
        let mut seen = BTreeSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        notes
    }

    /// Asks the server of the model alone. Returns a note if it told something.
    async fn fill_served_model(&mut self, options: &BuildOptions<'_>) -> Option<String> {
        let model = self.model.clone()?;
        let defined = self.providers.iter().find(|defined| defined.name == model.provider.as_str());
        let is_off = self.discover == Some(false) || defined.is_some_and(|defined| !defined.discover);
        let address = self.base_url.as_deref();
        let address = address.or(defined.map(|defined| defined.base_url.as_str()));
        let address = address.or(model.provider.base_url()).map(str::to_owned)?;
        if is_off || self.engine.is_some() {
            return None;
        }
        let has_price = self.has_price(&model);
        let wanted = match self.window {
            None => WantedFacts::Window,
            Some(_) if has_price => return None,
            Some(_) => WantedFacts::Price,
        };
        // A model that cannot be asked is reported when the agent is built.
        let policy = self.model_policy(PolicyName::new(&self.name).ok()?, &model, options).ok()?;
        let facts = policy.look_up_facts(wanted).await;
        let facts = ModelFacts {
            window: facts.window.filter(|_| self.window.is_none()),
            price: facts.price.filter(|_| !has_price),
        };
        self.window = self.window.or(facts.window);
        let price = facts.price.and_then(price_of);
        if let Some(price) = price {
            self.prices.insert(model.to_string(), price);
        }
        note(&model, &address, facts.window, price)
    }
}

pub(super) fn price_of(facts: ServedPrice) -> Option<PriceDefinition> {
    let optional = |micros: Option<u64>| micros.and_then(Money::of_micros);
    Some(PriceDefinition {
        input: Money::of_micros(facts.input)?,
        cache_read: optional(facts.cache_read),
        cache_write: optional(facts.cache_write),
        output: Money::of_micros(facts.output)?,
    })
}

fn note(
    model: &ModelName,
    address: &str,
    window: Option<u64>,
    price: Option<PriceDefinition>,
) -> Option<String> {
    let window = window.map(|tokens| format!("a window of {tokens} tokens"));
    let price = price.map(|price| {
        let (input, output) = (f64::from(price.input), f64::from(price.output));
        format!("prices of {input} and {output} for a million tokens of input and output")
    });
    let facts: Vec<_> = window.into_iter().chain(price).collect();
    (!facts.is_empty()).then(|| format!("{model} has {}, says {address}", facts.join(", and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(model: &str) -> Option<u64> {
        KnownModels::current().find(&model.parse().unwrap()).map(|known| known.window)
    }

    #[test]
    fn the_data_is_dated_and_plausible() {
        let known = KnownModels::current();
        assert_eq!(known.as_of.len(), "2025-01-01".len());
        assert_eq!(known.currency, "USD");
        for model in &known.models {
            assert!((8_000..=10_000_000).contains(&model.window), "{model:?}");
            assert!(model.price.input.micros() <= model.price.output.micros(), "{model:?}");
            let named: ModelName = format!("{}:{}", model.provider, model.name).parse().unwrap();
            assert_eq!(known.find(&named).unwrap().name, model.name);
        }
    }

    #[test]
    fn names_match_up_to_a_date() {
        assert_eq!(window("anthropic:claude-sonnet-4-5-20250929"), Some(200_000));
        assert_eq!(window("openai-chat:gpt-5"), Some(400_000));
        assert_eq!(window("openai:gpt-5-unheard-of"), None);
        assert_eq!(window("openai:gpt-50"), None);
        // Another version has another price.
        for other in [
            "anthropic:claude-opus-4-6",
            "anthropic:claude-opus-4-6-20260205",
            "openai:gpt-5.2",
            "openai:gpt-5-codex",
        ] {
            assert_eq!(window(other), None, "{other}");
        }
        for same in ["claude-opus-4-20250514", "claude-opus-4@20250514", "claude-opus-4-latest"] {
            assert_eq!(window(&format!("anthropic:{same}")), Some(200_000), "{same}");
        }
        assert!(window("openai:gpt-4o-2024-08-06").is_some());
        assert_eq!(window("scripted:gpt-5"), None);
        let find = |name: &str| KnownModels::current().find(&name.parse().unwrap()).unwrap().name.clone();
        assert_eq!(find("openai:gpt-4o-mini-2024-07-18"), "gpt-4o-mini");
        assert_eq!(find("gemini:gemini-2.5-flash-lite"), "gemini-2.5-flash-lite");
    }

    #[test]
    fn what_a_definition_sets_stays() {
        let mut own =
            AgentDefinition { model: Some("openai:gpt-5".parse().unwrap()), ..AgentDefinition::default() };
        own.window = Some(7);
        own.fill_known_model();
        assert_eq!((own.window, own.prices.len()), (Some(7), 1));
        let mut elsewhere = AgentDefinition { window: None, prices: Default::default(), ..own };
        elsewhere.base_url = Some("http://localhost".to_owned());
        elsewhere.fill_known_model();
        assert_eq!((elsewhere.window, elsewhere.prices.len()), (None, 0));
    }
}
