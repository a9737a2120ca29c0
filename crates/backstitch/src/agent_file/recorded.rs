//! The form in which definitions are recorded with sessions.
//!
//! It is the definition as JSON, with the version of the form. The forms of older versions can be read too.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};

/// The version of the recorded form.
const VERSION: u64 = 1;

impl AgentDefinition {
    /// Renders the form that is recorded with a session.
    pub fn to_recorded(&self) -> Value {
        let mut recorded = serde_json::to_value(self).unwrap_or_default();
        recorded["v"] = json!(VERSION);
        recorded
    }

    /// Parses the definition that is recorded with a session.
    pub fn from_recorded(recorded: &Value) -> Result<Self, AgentFileError> {
        let refused = |message: &str| AgentFileError::from(Problem::new([], message));
        let Value::Object(mut fields) = recorded.clone() else {
            return Err(refused("the session has no recorded definition, so no agent can be built from it"));
        };
        match fields.remove("v").map(|version| version.as_u64()) {
            Some(Some(VERSION)) => {}
            Some(_) => return Err(refused("the session was recorded by a newer version: use that version")),
            None => fields = upcast(fields),
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| {
            refused(&format!("the recorded definition of the session cannot be read: {error}"))
        })
    }
}

/// Sets the directory of a definition in its recorded form.
pub(super) fn recorded_in(mut recorded: Value, directory: &Path) -> Value {
    recorded["workspace"]["path"] = json!(directory.to_string_lossy());
    recorded
}

/// Converts the form without a version: a script, with a directory and the effect of the shell.
fn upcast(mut old: Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("ns".to_owned(), json!("cli"));
    fields.insert("name".to_owned(), json!("run"));
    fields.insert("model".to_owned(), json!("scripted:script"));
    if let Some(path) = old.remove("workspace") {
        fields.insert("workspace".to_owned(), json!({ "path": path }));
    }
    if let Some(effect) = old.remove("shell_effect") {
        fields.insert("shell".to_owned(), json!({ "effect": effect }));
    }
    fields.append(&mut old);
    fields
}
