//! Windows and prices that servers tell about their models.
//!
//! The list of [known models](super::KnownModels) is about models at the addresses of their providers. Other servers
//! are asked, before a session is recorded with the definition. What they tell is recorded as if the user had written
//! `window` and `prices`, so a session continues in the same way when its server is gone or says something else.

use backstitch_providers::{ModelFacts, ServedPrice, WantedFacts};

use super::build::BuildOptions;
use super::definition::{AgentDefinition, PriceDefinition};
use super::model::ModelName;
use super::values::Money;
use crate::message::PolicyName;

impl AgentDefinition {
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
            let Ok(mut inherited) = sub_agent.inherited(&caller, &[]) else { continue };
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
        let mut seen = std::collections::BTreeSet::new();
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
        let has_price =
            self.prices.contains_key(&model.to_string()) || self.prices.contains_key(&model.model);
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

fn price_of(facts: ServedPrice) -> Option<PriceDefinition> {
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
