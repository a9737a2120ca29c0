//! The models that the servers of providers offer.

use backstitch_providers::ServedModel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::build::BuildOptions;
use super::definition::{AgentDefinition, PriceDefinition};
use super::error::{AgentFileError, Problem};
use super::known::price_of;
use super::model::{ModelName, ModelProvider};
use crate::message::PolicyName;

/// The name of the model that stands for all of a server.
const ANY: &str = "any";

/// A model with what is known about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedModel {
    /// The model, as `PROVIDER:MODEL`.
    pub model: String,
    /// The context window, in tokens.
    pub window: Option<u64>,
    /// The price per million tokens.
    #[schemars(with = "Option<serde_json::Value>")]
    pub price: Option<PriceDefinition>,
}

/// The models of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerModels {
    /// The provider.
    pub provider: String,
    /// Its address.
    pub url: String,
    /// The models that it offers.
    pub models: Vec<ListedModel>,
    /// Why they are not known.
    pub error: Option<String>,
}

impl ServerModels {
    /// Asks the server of a provider for its models, with the key of the provider. A definition knows the providers that
    /// users define, and their addresses. A server that does not answer is reported with the reason.
    pub async fn ask(
        definition: &AgentDefinition,
        provider: &ModelProvider,
        options: &BuildOptions<'_>,
    ) -> Self {
        let access = definition.access(provider).ok().flatten();
        let url = definition.base_url.clone().or_else(|| access.as_ref()?.base_url.clone());
        let url = url.or_else(|| Some(access?.format.base_url().to_owned())).unwrap_or_default();
        let name = provider.as_str().to_owned();
        match list(definition, provider, options).await {
            Ok(models) => {
                let models = models.into_iter().map(|model| listed(&name, model)).collect();
                Self { provider: name, url, models, error: None }
            }
            Err(error) => Self { provider: name, url, models: Vec::new(), error: Some(error.to_string()) },
        }
    }
}

async fn list(
    definition: &AgentDefinition,
    provider: &ModelProvider,
    options: &BuildOptions<'_>,
) -> Result<Vec<ServedModel>, AgentFileError> {
    let name = PolicyName::new(&definition.name).map_err(|error| Problem::new(["name"], error))?;
    let model = ModelName { provider: provider.clone(), model: ANY.to_owned() };
    let policy = definition.model_policy(name, &model, options)?;
    policy.list_models().await.map_err(|error| AgentFileError::Transport(error.to_string()))
}

fn listed(provider: &str, model: ServedModel) -> ListedModel {
    let price = model.facts.price.and_then(price_of);
    ListedModel { model: format!("{provider}:{}", model.name), window: model.facts.window, price }
}
