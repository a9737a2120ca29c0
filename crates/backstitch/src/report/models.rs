//! The models that are known, and those that servers offer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent_file::{KnownModels, ListedModel, ServerModels};
use crate::report::Version;

/// Models with their windows and prices, by where these come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelsReport {
    /// Version of the form.
    pub v: Version,
    /// The date up to which the table of known models was compared with its source.
    pub as_of: String,
    /// The kind of source of the table.
    pub source: String,
    /// The unit of the prices in the table.
    pub currency: String,
    /// The models of the table.
    pub known: Vec<ListedModel>,
    /// What the settings of the user say about models.
    pub settings: Vec<ListedModel>,
    /// What servers offer.
    pub servers: Vec<ServerModels>,
}

impl ModelsReport {
    /// Creates a report of the models in the table of this version.
    pub fn of_table() -> Self {
        let table = KnownModels::current();
        let known = table.models.iter().map(|known| ListedModel {
            model: format!("{}:{}", known.provider, known.name),
            window: Some(known.window),
            price: Some(known.price),
        });
        Self {
            v: Version,
            as_of: table.as_of.clone(),
            source: table.source.clone(),
            currency: table.currency.clone(),
            known: known.collect(),
            settings: Vec::new(),
            servers: Vec::new(),
        }
    }
}
