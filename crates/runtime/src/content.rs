//! Messages of calls, and content of messages, also where it is too large for their records.

use std::collections::HashMap;

use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Message, OptionCall, OptionResult, PolicyName, RoleHint};
use backstitch_core::ports::{Store, content_of};
use serde_json::Value;

use crate::error::Result;

/// Returns the message with a call that a policy makes.
pub(crate) fn call_message(policy: PolicyName, call: OptionCall, step_num: Option<u64>) -> Message {
    let mut message = Message::new(policy, Content::OptionCall(call));
    message.role_hint_for_llm = Some(RoleHint::Assistant);
    message.step_num = step_num;
    message
}

/// Returns the message with the result of a call, in the name of its tool.
pub(crate) fn result_message(result: OptionResult, step_num: Option<u64>) -> Message {
    let policy = PolicyName::new(&result.option_name).unwrap_or_else(|_| PolicyName::runtime());
    let mut message = Message::new(policy, Content::OptionResult(result));
    message.role_hint_for_llm = Some(RoleHint::Tool);
    message.step_num = step_num;
    message
}

/// Replaces a value that cannot be stored exactly by its text.
pub(crate) fn storable(value: Value) -> Value {
    match backstitch_core::storable::check(&value) {
        Ok(()) => value,
        Err(_) => Value::String(value.to_string()),
    }
}

/// Returns the arguments of a message with a call, which has all of its content.
pub fn arguments_of(message: &InnerMessage) -> Value {
    let arguments = message.message.option_call().map(|call| &call.arguments);
    match arguments.map(|arguments| (arguments.object(), arguments.text())) {
        Some((Some(object), _)) => Value::Object(object.clone()),
        // Arguments that are not a JSON object are kept as text.
        Some((None, text)) => Value::String(text.into_owned()),
        None => Value::Null,
    }
}

/// Returns a message with content that is too large for its record.
pub async fn with_content(store: &dyn Store, message: &InnerMessage) -> Result<InnerMessage> {
    let mut contents = HashMap::new();
    for id in message.object_refs() {
        let found = content_of(store.object(id).await)?;
        contents.extend(found.map(|content| (id, content)));
    }
    let mut message = message.clone();
    message.hydrate_content(|reference| contents.get(&reference.object).cloned())?;
    Ok(message)
}
