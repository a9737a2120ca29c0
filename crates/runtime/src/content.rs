//! Content of messages, also where it is too large for their records.

use std::collections::HashMap;

use backstitch_core::journal::InnerMessage;
use backstitch_core::ports::{Store, content_of};
use serde_json::Value;

use crate::error::Result;

/// Returns the arguments of a message with a call, which has all of its content.
pub(crate) fn arguments_of(message: &InnerMessage) -> Value {
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
