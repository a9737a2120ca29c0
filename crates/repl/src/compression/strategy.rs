//! Strategies, defined by their options.
//!
//! The options of a strategy are its only state, so the trait [`Strategy`] is implemented for them.
//! [`ConfiguredStrategy`] adds what a registry needs, for turns of programs and for transcripts alike: a
//! configuration, and the name of the renderer.

use std::fmt;

use backstitch_core::digest::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::config::{ConfigurationError, object, parse};

/// A strategy, as a function of its options: selects what a model is shown of a history.
pub trait Strategy: fmt::Debug + Default + Serialize + DeserializeOwned + Send + Sync {
    /// The name in configurations.
    const NAME: &'static str;
    /// The version of the rendered text. Requests name it, so it changes with the text.
    const VERSION: u32;
    /// The history that it renders.
    type History<'a>;
    /// The messages that it renders, with statistics.
    type Rendered;

    /// Renders the messages of the next request.
    fn render(&self, history: Self::History<'_>) -> Self::Rendered;
}

/// A strategy with its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredStrategy<O> {
    options: O,
}

impl<O> ConfiguredStrategy<O> {
    /// Creates the strategy with these options.
    pub fn new(options: O) -> Self {
        Self { options }
    }

    /// Returns the options.
    pub fn options(&self) -> &O {
        &self.options
    }
}

impl<O: Strategy> ConfiguredStrategy<O> {
    /// The name in configurations.
    pub const NAME: &'static str = O::NAME;

    /// Reads the options from a configuration, with defaults for the rest.
    pub(crate) fn read(given: &Map<String, Json>) -> Result<Self, ConfigurationError> {
        parse(O::NAME, given).map(Self::new)
    }

    /// Returns the strategy and its options, as they are configured.
    pub(crate) fn to_configuration(&self) -> Json {
        let mut table = Map::new();
        table.insert("strategy".into(), O::NAME.into());
        table.extend(object(&self.options));
        Json::Object(table)
    }

    /// Returns the text that identifies the renderer of a request.
    pub(crate) fn renderer_name(&self) -> String {
        let mut options = Json::Object(object(&self.options));
        options.sort_all_objects();
        let digest = Digest::of(options.to_string().as_bytes());
        let hex: String = digest.as_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/{} {hex}", O::NAME, O::VERSION)
    }
}
