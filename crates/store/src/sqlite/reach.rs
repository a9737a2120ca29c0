//! What can be reached from records.

use backstitch_core::journal::{RecordBody, WorkspaceRoot};
use backstitch_core::object::ObjectId;
use serde_json::Value;

/// The workspace roots that a record names.
pub(super) fn roots_of(body: &RecordBody) -> Vec<WorkspaceRoot> {
    let roots = match body {
        RecordBody::CallStarted(call) => [call.root, None],
        RecordBody::CallFinished(call) => [call.root, call.rescue],
        RecordBody::Rewound(rewound) => [rewound.rescue, None],
        _ => [None, None],
    };
    roots.into_iter().flatten().collect()
}

/// The manifests that a record names.
pub(super) fn manifests_of(body: &RecordBody) -> Vec<ObjectId> {
    roots_of(body).into_iter().map(|root| root.manifest).collect()
}

/// Everything in a manifest that looks like the name of an object.
pub(super) fn named_in(bytes: &[u8]) -> Vec<ObjectId> {
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        strings(&value, &mut |text| found.extend(text.parse::<ObjectId>()));
    }
    found
}

fn strings(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
