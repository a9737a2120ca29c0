//! The form that asks a client about a call, and what its answers mean.
//!
//! A client may answer a form by itself, without a person: some accept every form without fields. So the form has a
//! required field, and only an answer that fills it approves a call. The journal names the client as the author of the
//! decision, since the server cannot know whether a person made it.

use backstitch_core::journal::Decision;
use backstitch_runtime::ApprovalQuestion;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema};

/// The field of the form.
const FIELD: &str = "decision";

const APPROVE: &str = "approve";
const DENY: &str = "deny";

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormAnswer {
    Decided(Decision),
    /// The client accepted the form without filling it, which a program does by itself.
    Unfilled,
}

/// Returns the question about a call. One that is asked again begins with the reason.
pub(super) fn question(asked: &ApprovalQuestion) -> ElicitRequestParams {
    let ApprovalQuestion { name, arguments, change, .. } = asked;
    let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let change = change.as_ref().map(|change| format!("{change}\n")).unwrap_or_default();
    let choices = EnumSchema::builder(vec![APPROVE.to_owned(), DENY.to_owned()])
        .title("Decision")
        .description("approve runs the call, deny refuses it")
        .build();
    let schema = ElicitationSchema::builder().required_enum_schema(FIELD, choices).build_unchecked();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{change}Run {name} with these arguments?\n{shown}"),
        requested_schema: schema,
    }
}

/// Reads an answer of `client`.
pub(super) fn answer_of(answer: &ElicitResult, client: &str) -> FormAnswer {
    let deny = |reason: String| FormAnswer::Decided(Decision::Deny { reason: Some(reason) });
    match answer.action {
        ElicitationAction::Accept => {
            let chosen = answer.content.as_ref().and_then(|content| content.get(FIELD)?.as_str());
            match chosen {
                Some(APPROVE) => FormAnswer::Decided(Decision::Approve),
                Some(DENY) => deny(format!("{client} answered `{DENY}`")),
                _ => FormAnswer::Unfilled,
            }
        }
        ElicitationAction::Decline => deny(format!("{client} declined the call")),
        _ => deny(format!(
            "the question about it was dismissed at {client}, and nothing was run; ask again if it is still needed"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn answer(action: ElicitationAction, content: Value) -> FormAnswer {
        let mut answer = ElicitResult::new(action);
        answer.content = Some(content);
        answer_of(&answer, "the MCP client needle 1")
    }

    #[test]
    fn only_a_filled_field_approves() {
        let accept = |content| answer(ElicitationAction::Accept, content);
        assert_eq!(accept(json!({"decision": "approve"})), FormAnswer::Decided(Decision::Approve));
        for content in [
            json!({}),
            json!(null),
            json!("approve"),
            json!({"decision": null}),
            json!({"decision": true}),
            json!({"decision": "yes"}),
            json!({"decision": "Approve"}),
            json!({"decision": ["approve"]}),
            json!([{"decision": "approve"}]),
        ] {
            assert_eq!(accept(content.clone()), FormAnswer::Unfilled, "{content}");
        }
    }

    #[test]
    fn refusals_name_the_client_and_not_a_person() {
        let approve = json!({"decision": "approve"});
        let refusals = [
            answer(ElicitationAction::Accept, json!({"decision": "deny"})),
            answer(ElicitationAction::Decline, approve.clone()),
            answer(ElicitationAction::Cancel, approve),
        ];
        for refusal in refusals {
            let FormAnswer::Decided(Decision::Deny { reason: Some(reason) }) = refusal else {
                panic!("{refusal:?}")
            };
            assert!(reason.contains("the MCP client needle 1") && !reason.contains("person"), "{reason}");
        }
    }

    #[test]
    fn the_field_is_required() {
        let call = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let asked = ApprovalQuestion { call, name: "hem".to_owned(), arguments: Map::new(), change: None };
        let asked = serde_json::to_value(question(&asked)).unwrap();
        assert_eq!(asked["message"], "Run hem with these arguments?\n{}");
        let schema = &asked["requestedSchema"];
        assert_eq!(schema["required"], json!(["decision"]));
        assert_eq!(schema["properties"]["decision"]["enum"], json!(["approve", "deny"]));
    }
}
