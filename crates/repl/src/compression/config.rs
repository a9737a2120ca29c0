//! Selection of a strategy by a configuration.
//!
//! | configuration | meaning |
//! |---|---|
//! | `true` | the default strategy with its default options |
//! | `false`, `null`, nothing | no compression |
//! | `"trim"` | that strategy with its default options |
//! | `["trim", {"turns": 10}]` | that strategy, with options |
//! | `{"strategy": "trim", "turns": 10}` | the same, as a table of a settings file |
//! | `{"println_limit": 10}` | the default strategy, with options |
//!
//! Names may be written like the types (`SingleUserCoalesced`). Unknown names and options are errors that
//! list the known ones.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// A configuration that does not describe a strategy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// There is no such strategy.
    #[error("there is no compression strategy {name:?}; there are {}", known.join(", "))]
    UnknownStrategy {
        /// The requested name.
        name: String,
        /// The known strategies.
        known: Vec<String>,
    },
    /// The strategy has no such option.
    #[error("the compression strategy {strategy} has no option {option:?}; it has {}", known.join(", "))]
    UnknownOption {
        /// The strategy.
        strategy: String,
        /// The unknown option.
        option: String,
        /// The known options.
        known: Vec<String>,
    },
    /// An option cannot have this value.
    #[error("the option {option} of the compression strategy {strategy} cannot be {given}: {reason}")]
    InvalidOption {
        /// The strategy.
        strategy: String,
        /// The option.
        option: String,
        /// The value, as JSON.
        given: String,
        /// Why it is invalid, and which values are valid.
        reason: String,
    },
    /// The value is not a configuration.
    #[error("compression is true, false, a name, [name, options] or a table with a strategy, not {given}")]
    NotAConfiguration {
        /// The value, as JSON.
        given: String,
    },
}

type Factory<S> = Arc<dyn Fn(&Map<String, Json>) -> Result<Arc<S>, ConfigurationError> + Send + Sync>;

/// The strategies that a configuration can choose from, by name.
pub struct Registry<S: ?Sized> {
    known: IndexMap<String, Factory<S>>,
    default: &'static str,
    none: &'static str,
}

impl<S: ?Sized> Clone for Registry<S> {
    fn clone(&self) -> Self {
        Self { known: self.known.clone(), default: self.default, none: self.none }
    }
}

impl<S: ?Sized> fmt::Debug for Registry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

impl<S: ?Sized> Registry<S> {
    /// Creates an empty registry. `default` is the strategy for `true`, `none` the one for `false`.
    pub fn new(default: &'static str, none: &'static str) -> Self {
        Self { known: IndexMap::new(), default, none }
    }

    /// Adds a strategy: its name, and a function that creates it from its options.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&Map<String, Json>) -> Result<Arc<S>, ConfigurationError> + Send + Sync + 'static,
    ) -> Self {
        self.known.insert(name.into(), Arc::new(make));
        self
    }

    /// The names of all strategies.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Creates the strategy that a configuration describes.
    pub fn normalize(&self, given: &Json) -> Result<Arc<S>, ConfigurationError> {
        let none = Map::new();
        match given {
            Json::Bool(true) => self.make(self.default, &none),
            Json::Bool(false) | Json::Null => self.make(self.none, &none),
            Json::String(name) => self.make(name, &none),
            Json::Array(pair) => match pair.as_slice() {
                [Json::String(name)] => self.make(name, &none),
                [Json::String(name), Json::Object(options)] => self.make(name, options),
                _ => Err(ConfigurationError::NotAConfiguration { given: given.to_string() }),
            },
            Json::Object(table) => {
                let mut options = table.clone();
                match options.shift_remove("strategy") {
                    None => self.make(self.default, &options),
                    Some(Json::String(name)) => self.make(&name, &options),
                    Some(_) => Err(ConfigurationError::NotAConfiguration { given: given.to_string() }),
                }
            }
            Json::Number(_) => Err(ConfigurationError::NotAConfiguration { given: given.to_string() }),
        }
    }

    /// The strategy of a sub-agent: its own if it has one, else its parent's.
    pub fn inherit(&self, parent: &Arc<S>, own: Option<&Json>) -> Result<Arc<S>, ConfigurationError> {
        own.map_or_else(|| Ok(parent.clone()), |own| self.normalize(own))
    }

    fn make(&self, name: &str, options: &Map<String, Json>) -> Result<Arc<S>, ConfigurationError> {
        let make = self.known.get(name).or_else(|| self.known.get(&snake_case(name)));
        let unknown = || ConfigurationError::UnknownStrategy {
            name: name.to_owned(),
            known: self.known.keys().cloned().collect(),
        };
        make.ok_or_else(unknown)?(options)
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, character) in name.char_indices() {
        if character.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Parses the options of a strategy, with defaults for missing ones.
pub(super) fn parse<O>(strategy: &str, given: &Map<String, Json>) -> Result<O, ConfigurationError>
where
    O: Default + Serialize + DeserializeOwned,
{
    let mut options = object(&O::default());
    for (option, value) in given {
        let Some(before) = options.insert(option.clone(), value.clone()) else {
            options.shift_remove(option);
            return Err(ConfigurationError::UnknownOption {
                strategy: strategy.to_owned(),
                option: option.clone(),
                known: options.keys().cloned().collect(),
            });
        };
        // One at a time, so that the error can name the option.
        if let Err(error) = serde_json::from_value::<O>(Json::Object(options.clone())) {
            options.insert(option.clone(), before);
            let (strategy, option, given) = (strategy.to_owned(), option.clone(), value.to_string());
            let reason = expected(&error.to_string());
            return Err(ConfigurationError::InvalidOption { strategy, option, given, reason });
        }
    }
    Ok(serde_json::from_value(Json::Object(options)).unwrap_or_default())
}

/// The part of a serde error that describes the expected value, in plain words.
fn expected(error: &str) -> String {
    let expected = error.find("expected ").map_or(error, |at| &error[at..]);
    ["usize", "u64"]
        .iter()
        .fold(expected.to_owned(), |text, word| text.replace(word, "a whole number from 0 on"))
}

pub(super) fn object(options: &impl Serialize) -> Map<String, Json> {
    match serde_json::to_value(options) {
        Ok(Json::Object(object)) => object,
        _ => Map::new(),
    }
}
