//! How an agent answers: with calls, or with programs; and what it is shown of what was said before.

use std::sync::Arc;

use backstitch_repl::compression::{Compression, Registry};
use backstitch_repl::transcript::{Keep, TranscriptCompression};
use backstitch_repl::{LispAgent, Signature};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::AgentDefinition;
use super::error::Problem;

/// How an agent answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// With words and calls of tools.
    #[default]
    Tools,
    /// With programs of the agent language, which call tools.
    Lisp,
}

impl AnswerMode {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What `data/name` reads: JSON, in place or in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataDefinition {
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The file that holds it, as JSON. It is read into `value` when the definition is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<std::path::PathBuf>,
}

impl AgentDefinition {
    /// Refuses what does not belong to the way in which the agent answers.
    pub(super) fn check_mode(&self) -> Result<(), Problem> {
        let first_of =
            |keys: &[(&'static str, bool)]| keys.iter().find(|(_, is_there)| *is_there).map(|(key, _)| *key);
        match self.mode {
            AnswerMode::Tools => {
                let only_lisp = [("data", !self.data.is_empty()), ("signature", self.signature.is_some())];
                match first_of(&only_lisp) {
                    Some(key) => Err(Problem::new(
                        [key],
                        "this is for agents that answer with programs: say `mode = \"lisp\"`",
                    )),
                    None => self.transcript_compression().map(|_| ()),
                }
            }
            AnswerMode::Lisp => {
                if !self.sections.is_empty() {
                    return Err(Problem::new(
                        ["section"],
                        "an agent that answers with programs is told `system`, and has no sections",
                    ));
                }
                if self.output.is_some() {
                    return Err(Problem::new(["output"], "what a program answers is said by `signature`"));
                }
                self.lisp().map(|_| ())
            }
        }
    }

    /// What is shown of an evaluation to an agent that answers with calls; none when it is shown all of it.
    pub(super) fn transcript_compression(&self) -> Result<Option<Arc<dyn TranscriptCompression>>, Problem> {
        let Some(given) = &self.compression else { return Ok(None) };
        let chosen = Registry::<dyn TranscriptCompression>::standard().normalize(given);
        let chosen = chosen.map_err(|error| Problem::new(["compression"], error))?;
        Ok((chosen.name() != Keep::NAME).then_some(chosen))
    }

    /// The agent that answers with programs, without its tools.
    pub(super) fn lisp(&self) -> Result<LispAgent, Problem> {
        let mut lisp = LispAgent::new();
        for (name, data) in &self.data {
            let Some(value) = &data.value else {
                return Err(Problem::new(["data", name.as_str()], "say `file`, or `value`"));
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
        let given = self.compression.clone().unwrap_or(Value::Bool(true));
        let chosen = Registry::<dyn Compression>::standard().normalize_for(&given, lisp.options.max_turns);
        Ok(lisp.with_compression(chosen.map_err(|error| Problem::new(["compression"], error))?))
    }
}
