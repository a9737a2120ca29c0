//! Prompts bound to their parameters.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::build::Prompt;
use super::{PromptError, RenderedPrompt};
use crate::message::Part;
use crate::session::Session;

/// A prompt with its parameters and its mission. A clone is cheap.
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

    /// Sets the mission: the first user message of an evaluation.
    #[must_use]
    pub fn asking(self, mission: impl Into<Arc<str>>) -> Self {
        self.asking_parts(vec![Part::text(mission)])
    }

    /// Sets the mission, in text and media.
    #[must_use]
    pub fn asking_parts(mut self, mission: Vec<Part>) -> Self {
        self.mission = mission.into();
        self
    }

    /// The prompt.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// The parameters, by field name.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// The mission; empty if none is set.
    pub fn mission(&self) -> &[Part] {
        &self.mission
    }

    /// Renders the text and the tools for the current state of a session.
    pub fn render(&self, session: &Session) -> Result<RenderedPrompt, PromptError> {
        super::render::render(self, session)
    }
}

impl fmt::Debug for BoundPrompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BoundPrompt").field("prompt", &self.prompt).finish_non_exhaustive()
    }
}

/// Returns the fields of a value.
pub(super) fn values_of<P: Serialize + ?Sized>(parameters: &P) -> Result<Map<String, Value>, PromptError> {
    let found = match serde_json::to_value(parameters).map_err(PromptError::Parameters)? {
        Value::Object(values) => return Ok(values),
        // The unit type serializes as null.
        Value::Null => return Ok(Map::new()),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
    };
    Err(PromptError::NoFields { found })
}
