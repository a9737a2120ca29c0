//! Messages of calls, and content of messages, also where it is too large for their records.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Record, RecordBody};
use backstitch_core::message::{Content, Message, OptionCall, OptionResult, PolicyName, RoleHint};
use backstitch_core::ports::{Store, StoreError, content_of};
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

/// Returns a message for people to read, with its content as far as the store has it. What only a provider
/// understands is not fetched. Content that is missing or damaged stays a reference, which [`message_text`] describes.
///
/// [`message_text`]: crate::message_text
pub async fn readable_message(store: &dyn Store, message: &Arc<InnerMessage>) -> Result<Arc<InnerMessage>> {
    let wanted = message.message.object_refs();
    if wanted.is_empty() {
        return Ok(message.clone());
    }
    let mut contents = HashMap::new();
    for id in wanted {
        match content_of(store.object(id).await) {
            Ok(found) => contents.extend(found.map(|content| (id, content))),
            Err(
                StoreError::MissingObject { .. }
                | StoreError::DamagedObject { .. }
                | StoreError::Pruned { .. },
            ) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut whole = InnerMessage::clone(message);
    match whole.message.hydrate_content(|reference| contents.get(&reference.object).cloned()) {
        Ok(()) => Ok(Arc::new(whole)),
        Err(_) => Ok(message.clone()),
    }
}

/// Returns a record for people to read: a message has its content, as [`readable_message`] returns it.
pub async fn readable_record(store: &dyn Store, record: &Arc<Record>) -> Result<Arc<Record>> {
    let RecordBody::MessageAppended(message) = &record.body else { return Ok(record.clone()) };
    let whole = readable_message(store, message).await?;
    if Arc::ptr_eq(&whole, message) {
        return Ok(record.clone());
    }
    let mut record = Record::clone(record);
    record.body = RecordBody::MessageAppended(whole);
    Ok(Arc::new(record))
}
