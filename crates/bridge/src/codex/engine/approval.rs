//! Requests of the app-server for approval.

use serde_json::{Value, json};

/// What a request of the app-server asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    /// Whether the call of this item may run.
    Item(String),
    /// Whether a tool of a server may run: the server, and the arguments of the tool.
    ServerTool { server: String, arguments: Value },
    /// Something that only a person could answer.
    Other,
}

impl Ask {
    /// Reads a request.
    pub(super) fn of(method: &str, params: &Value) -> Self {
        let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = params.pointer("/_meta/codex_approval_kind").and_then(Value::as_str);
        match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                text("itemId").map_or(Self::Other, Self::Item)
            }
            "mcpServer/elicitation/request" if kind == Some("mcp_tool_call") => {
                let arguments = params.pointer("/_meta/tool_params").cloned().unwrap_or(Value::Null);
                text("serverName").map_or(Self::Other, |server| Self::ServerTool { server, arguments })
            }
            _ => Self::Other,
        }
    }

    /// Returns the answer.
    pub(super) fn answer(&self, allows: bool) -> Value {
        match self {
            Self::ServerTool { .. } if allows => json!({"action": "accept", "content": {}}),
            Self::ServerTool { .. } => json!({"action": "decline"}),
            _ => json!({"decision": if allows { "accept" } else { "decline" }}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_answered_in_their_own_form() {
        let command = Ask::of("item/commandExecution/requestApproval", &json!({"itemId": "c1", "new": 1}));
        assert_eq!(command, Ask::Item("c1".to_owned()));
        assert_eq!(command.answer(false), json!({"decision": "decline"}));
        let tool = json!({"serverName": "s", "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"t": 1}}});
        let tool = Ask::of("mcpServer/elicitation/request", &tool);
        assert_eq!(tool, Ask::ServerTool { server: "s".to_owned(), arguments: json!({"t": 1}) });
        assert_eq!(tool.answer(true), json!({"action": "accept", "content": {}}));
        assert_eq!(tool.answer(false), json!({"action": "decline"}));
        // A server that asks for a password, a permission, and things that are not known.
        for (method, params) in [
            ("mcpServer/elicitation/request", json!({"serverName": "s"})),
            ("item/permissions/requestApproval", json!({"itemId": "c1"})),
            ("item/commandExecution/requestApproval", json!({"itemId": 3})),
            ("new/request", Value::Null),
        ] {
            assert_eq!(Ask::of(method, &params), Ask::Other, "{method}");
        }
    }
}
