//! Messages of servers, which are untrusted.
//!
//! Guarantees: a message over a limit is not parsed; one that cannot be read becomes an error for the request that it
//! answers, with the reason; content and tools of an unknown form are left out, and the rest of the message is kept.

mod scan;

use rmcp::model::{
    ContentBlock, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, Tool,
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

pub(super) use scan::LARGEST;
use scan::Scan;

/// Code of the errors that are made here. No server can send it: the codes of the protocol are negative.
const UNREADABLE: ErrorCode = ErrorCode(7001);

/// Key of `_meta` with the number of tools that a list has lost.
const LEFT_OUT: &str = "backstitch/left_out";

/// The most tools of a page that are kept.
pub(super) const MOST_TOOLS: usize = 500;

/// A message that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct IncomingMessage {
    bytes: Vec<u8>,
    scan: Scan,
    /// Whether its request was answered before the end of the message, which may never come.
    is_answered: bool,
}

impl IncomingMessage {
    /// Adds bytes. Those of a message that is too large are forgotten.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.scan.feed(bytes);
        if self.scan.excess.is_some() {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.scan.excess.is_some()
    }

    fn is_object(&self) -> bool {
        serde_json::from_slice::<Map<String, Value>>(&self.bytes).is_ok()
    }

    /// Returns an error for the request of a message that is too large, once, as soon as both are known.
    pub(super) fn early_answer(&mut self) -> Option<ServerJsonRpcMessage> {
        let excess = self.scan.excess.filter(|_| !self.is_answered)?;
        let request = self.scan.answered()?;
        self.is_answered = true;
        unreadable(request, format!("its answer is not read: {excess}"))
    }

    /// Reads the message. `request` is the one that it answers, if that is known. `None` means that it is of no use,
    /// such as a line that is not JSON.
    pub(super) fn read(self, request: Option<&RequestId>) -> Option<ServerJsonRpcMessage> {
        let answered = || request.cloned().or_else(|| self.scan.answered());
        if self.is_answered {
            return None;
        }
        if let Some(excess) = self.scan.excess {
            return unreadable(answered()?, format!("its answer is not read: {excess}"));
        }
        match parsed(&self.bytes) {
            Ok(message) => Some(message),
            Err(reason) => {
                tracing::debug!(reason, "a message of a server cannot be read");
                let reason = format!("its answer cannot be read: {reason}");
                match answered() {
                    Some(request) => unreadable(request, reason),
                    // JSON that is not a message ends a handshake. Other lines, such as notices, do not.
                    None if self.is_object() => {
                        Some(JsonRpcMessage::error(ErrorData::new(UNREADABLE, reason, None), None))
                    }
                    None => None,
                }
            }
        }
    }
}

/// Returns an error of this module as the answer to a request.
pub(super) fn unreadable(request: RequestId, reason: String) -> Option<ServerJsonRpcMessage> {
    Some(JsonRpcMessage::error(ErrorData::new(UNREADABLE, reason, None), Some(request)))
}

/// Returns why an answer could not be read, if the error is one of this module.
pub(super) fn reason_of(error: &ErrorData) -> Option<&str> {
    (error.code == UNREADABLE).then_some(&*error.message)
}

/// Returns the number of tools that a list has lost.
pub(super) fn left_out(meta: Option<&Map<String, Value>>) -> usize {
    let count = meta.and_then(|meta| meta.get(LEFT_OUT)?.as_u64());
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

fn parsed(bytes: &[u8]) -> Result<ServerJsonRpcMessage, String> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    // The code is reserved for this module.
    if value["error"]["code"] == UNREADABLE.0 {
        value["error"]["code"] = json!(ErrorCode::INTERNAL_ERROR.0);
    }
    if let Some(result) = value.get_mut("result").and_then(Value::as_object_mut) {
        keep_known_content(result);
        keep_known_tools(result);
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn keep_known_content(result: &mut Map<String, Value>) {
    let Some(blocks) = result.get_mut("content").and_then(Value::as_array_mut) else { return };
    for block in blocks {
        if ContentBlock::deserialize(&*block).is_err() {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or("none");
            let kind: String = kind.chars().take(40).collect();
            let text = format!("[content of the kind {kind:?} is left out: it cannot be shown]");
            *block = json!({"type": "text", "text": text});
        }
    }
}

fn keep_known_tools(result: &mut Map<String, Value>) {
    let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) else { return };
    let count = tools.len();
    tools.truncate(MOST_TOOLS);
    tools.retain(|tool| Tool::deserialize(tool).is_ok());
    let lost = count - tools.len();
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    meta[LEFT_OUT] = json!(lost);
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerResult;

    use super::*;

    fn read(text: &str) -> Option<ServerJsonRpcMessage> {
        let mut message = IncomingMessage::default();
        message.add(text.as_bytes());
        message.read(None)
    }

    fn result(text: &str) -> ServerResult {
        match read(text) {
            Some(JsonRpcMessage::Response(response)) => response.result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn known_content_is_kept_beside_unknown_content() {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [
            {"type": "text", "text": "needle"}, {"type": "hologram", "data": 7}, {"type": "image"}, 5,
            {"type": "text", "text": "thread"},
        ]}});
        let ServerResult::CallToolResult(result) = result(&answer.to_string()) else { panic!() };
        let texts: Vec<&str> = result.content.iter().map(|block| &*block.as_text().unwrap().text).collect();
        assert_eq!((texts[0], texts[4]), ("needle", "thread"));
        assert!(texts[1].contains("hologram") && texts[2].contains("image"), "{texts:?}");
    }

    #[test]
    fn a_tool_of_a_wrong_form_does_not_cost_the_list() {
        let good = json!({"name": "hem", "inputSchema": {"type": "object"}});
        let mut tools = vec![json!({"name": 7}), json!("sew"), json!({"name": "darn"}), good.clone()];
        tools.extend(std::iter::repeat_n(good, 600));
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, "_meta": "x"}});
        let ServerResult::ListToolsResult(list) = result(&answer.to_string()) else { panic!() };
        assert_eq!(list.tools.len(), 497);
        assert_eq!(left_out(list.meta.as_deref()), 107);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_of_its_request() {
        let deep = format!(r#"{{"id":4,"jsonrpc":"2.0","result":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for text in [&deep, r#"{"jsonrpc":"2.0","id":4,"result":oops}"#, r#"{"jsonrpc":"2.0","id":4}"#] {
            let Some(JsonRpcMessage::Error(error)) = read(text) else { panic!("{text}") };
            assert_eq!(error.id, Some(RequestId::Number(4)), "{text}");
            assert!(reason_of(&error.error).is_some(), "{text}");
        }
        assert!(read("npm notice: a new version").is_none());
        let Some(JsonRpcMessage::Error(error)) = read(r#"{"hello": 1}"#) else { panic!() };
        assert_eq!(error.id, None);
        assert!(read("").is_none());
        let claimed = r#"{"jsonrpc":"2.0","id":4,"error":{"code":7001,"message":"x"}}"#;
        let Some(JsonRpcMessage::Error(error)) = read(claimed) else { panic!() };
        assert_eq!(reason_of(&error.error), None);
    }
}
