//! What the commands of a tool may write, and calls that ask for more rights than their tool has.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What commands in a sandbox may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLimit {
    /// The workspace, and further paths that the sandbox names.
    Workspace,
    /// Nothing but a temporary directory, also not over a network. The system enforces it.
    Nothing,
}

/// Returns whether the value of an argument asks for rights. Everything that is not clearly empty does: an object may
/// hold a `reason`, and otherwise only `false`, empty lists and nothing.
pub fn asks_for_rights(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let is_nothing = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(all) => all.is_empty(),
                _ => false,
            };
            name != "reason" && !is_nothing
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::Effect;
    use crate::tool_spec::{ToolName, ToolSpec};

    #[test]
    fn what_is_not_clearly_empty_asks() {
        for empty in [
            json!(null),
            json!({}),
            json!({"reason": "none"}),
            json!({"network": false, "sockets": null, "read": [], "write": [], "reason": "none"}),
        ] {
            assert!(!asks_for_rights(&empty), "{empty}");
        }
        for asking in [
            json!(true),
            json!("network"),
            json!([]),
            json!({"network": true}),
            json!({"network": "yes"}),
            json!({"read": ["/a"]}),
            json!({"write": ["/a"], "reason": "to publish"}),
            json!({"unknown": 1}),
        ] {
            assert!(asks_for_rights(&asking), "{asking}");
        }
    }

    #[test]
    fn the_effect_of_a_call_depends_on_what_it_asks_for() {
        let mut spec = ToolSpec::new(ToolName::new("sew").unwrap(), "Sews.");
        spec.effect = Effect::Workspace;
        let asking = json!({"needs": {"network": true}});
        let arguments = asking.as_object().unwrap();
        // A tool without such an argument does not know it.
        assert_eq!(
            (spec.effect_of(arguments), spec.strongest_effect()),
            (Effect::Workspace, Effect::Workspace)
        );
        spec.rights_argument = Some("needs".to_owned());
        assert_eq!(
            (spec.effect_of(arguments), spec.strongest_effect()),
            (Effect::External, Effect::External)
        );
        let quiet = json!({"needs": {"network": false}});
        assert_eq!(spec.effect_of(quiet.as_object().unwrap()), Effect::Workspace);
        assert!(spec.asks_for_rights(arguments) && !spec.asks_for_rights(quiet.as_object().unwrap()));
    }
}
