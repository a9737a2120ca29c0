//! Prompts with their parameters.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::build::Prompt;
use super::{PromptError, RenderedPrompt};
use crate::message::Part;
use crate::session::Session;

/// A prompt with its parameters, and what it is asked to do. A clone is cheap.
#[derive(Clone)]
pub struct BoundPrompt {
    prompt: Prompt,
    values: Arc<Map<String, Value>>,
    mission: Arc<[Part]>,
}

impl BoundPrompt {
    pub(super) fn new(prompt: Prompt, values: Map<String, Value>) -> Self {
        Self { prompt, values: Arc::new(values), mission: Arc::from(Vec::new()) }
    }

    /// Says what is to be done: the first message of a person in an evaluation.
    #[must_use]
    pub fn asking(self, mission: impl Into<Arc<str>>) -> Self {
        self.asking_parts(vec![Part::text(mission)])
    }

    /// Says what is to be done, in text and media.
    #[must_use]
    pub fn asking_parts(mut self, mission: Vec<Part>) -> Self {
        self.mission = mission.into();
        self
    }

    /// The prompt.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// The parameters, by field.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// What is to be done; empty when nobody said.
    pub fn mission(&self) -> &[Part] {
        &self.mission
    }

    /// The text and the tools for a session as it is.
    pub fn render(&self, session: &Session) -> Result<RenderedPrompt, PromptError> {
        super::render::render(self, session)
    }
}

impl fmt::Debug for BoundPrompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BoundPrompt").field("prompt", &self.prompt).finish_non_exhaustive()
    }
}

/// The fields of a value.
pub(super) fn values_of<P: Serialize + ?Sized>(parameters: &P) -> Result<Map<String, Value>, PromptError> {
    let found = match serde_json::to_value(parameters).map_err(PromptError::Parameters)? {
        Value::Object(values) => return Ok(values),
        // What has nothing to say says it as null.
        Value::Null => return Ok(Map::new()),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
    };
    Err(PromptError::NoFields { found })
}
