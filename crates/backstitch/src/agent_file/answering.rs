//! The form of an agent's answers, tool calls or programs, and the compression of its requests.

use std::sync::Arc;

use backstitch_repl::compression::{Compression, NoCompression, Registry};
use backstitch_repl::recall::TOOL_NAME;
use backstitch_repl::transcript::{Elide, KeepAll, TranscriptCompression};
use backstitch_repl::{LispAgent, MAX_TURNS, Signature, check_data_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::AgentDefinition;
use super::error::Problem;

/// Form of an agent's answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// Text and tool calls.
    #[default]
    Tools,
    /// Programs of the agent language, which call tools.
    Lisp,
}

/// JSON that programs read as `data/name`, in place or in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "`{ file = \"FILE.json\" }` or `{ value = ... }`")]
pub struct DataDefinition {
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// JSON file that holds the value. It is read into `value` when the definition is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<std::path::PathBuf>,
}

impl AgentDefinition {
    /// Refuses keys that do not apply to the form of the answers.
    pub(super) fn check_answers(&self) -> Result<(), Problem> {
        if self.max_turns == Some(0) {
            return Err(Problem::new(["max_turns"], "an agent needs at least 1 turn"));
        }
        match self.answers {
            AnswerMode::Tools => {
                let only_lisp = "this is for agents that answer with programs: set `answers = \"lisp\"`";
                Problem::check([
                    ("data", !self.data.is_empty(), only_lisp),
                    ("signature", self.signature.is_some(), only_lisp),
                ])?;
                self.transcript_compression().map(|_| ())
            }
            AnswerMode::Lisp => {
                let no_sections = "an agent that answers with programs has no sections; use `system`";
                Problem::check([
                    ("section", !self.sections.is_empty(), no_sections),
                    ("output", self.output.is_some(), "`signature` describes the answer of a program"),
                ])?;
                self.lisp().map(|_| ())
            }
        }
    }

    /// Returns the compression for an agent that answers with tool calls; `None` if requests hold everything.
    pub(super) fn transcript_compression(&self) -> Result<Option<Arc<dyn TranscriptCompression>>, Problem> {
        let Some(given) = &self.compression else { return Ok(None) };
        let known = Registry::<dyn TranscriptCompression>::standard();
        let wrong = |error| Problem::new(["compression"], error);
        let mut chosen = known.normalize(given).map_err(wrong)?;
        let mut configuration = chosen.configuration();
        if chosen.name() == Elide::NAME && configuration["recall"].is_null() {
            // The recall tool is offered with every compression, so placeholders name it.
            configuration["recall"] = TOOL_NAME.into();
            chosen = known.normalize(&configuration).map_err(wrong)?;
        }
        Ok((chosen.name() != KeepAll::NAME).then_some(chosen))
    }

    /// Builds the agent that answers with programs, without its tools.
    pub(super) fn lisp(&self) -> Result<LispAgent, Problem> {
        let mut lisp = LispAgent::new();
        for (name, data) in &self.data {
            check_data_name(name).map_err(|error| Problem::new(["data", name.as_str()], error))?;
            let Some(value) = &data.value else {
                return Err(Problem::new(["data", name.as_str()], "set `file` or `value`"));
            };
            lisp = lisp.with_data(name, value.clone());
        }
        if let Some(signature) = &self.signature {
            let signature: Signature =
                signature.parse().map_err(|error| Problem::new(["signature"], error))?;
            lisp = lisp.with_signature(signature);
        }
        if let Some(turns) = self.max_turns {
            lisp = lisp.with_max_turns(turns);
        }
        if let Some(system) = &self.system {
            lisp = lisp.with_instructions(system);
        }
        Ok(lisp.with_compression(self.compression_of_turns()?))
    }

    /// Returns the compression of turns for an agent that answers with programs.
    fn compression_of_turns(&self) -> Result<Arc<dyn Compression>, Problem> {
        let given = self.compression.as_ref().unwrap_or(&Value::Bool(true));
        let known = Registry::<dyn Compression>::standard();
        let chosen = known.normalize_for(given, self.max_turns.unwrap_or(MAX_TURNS));
        chosen.map_err(|error| Problem::new(["compression"], error))
    }

    /// Whether requests may leave out parts of earlier messages.
    pub(super) fn leaves_out(&self) -> Result<bool, Problem> {
        match self.answers {
            AnswerMode::Tools => Ok(self.transcript_compression()?.is_some()),
            AnswerMode::Lisp => Ok(self.compression_of_turns()?.name() != NoCompression::NAME),
        }
    }
}
