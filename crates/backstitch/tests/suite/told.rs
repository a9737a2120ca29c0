//! Results of calls, as the model receives them.

use backstitch::CallOutcome;
use backstitch::journal::InnerMessage;
use backstitch::message::{Content, OptionResult};
use serde_json::Value;

use crate::harness::Harness;

impl Harness {
    /// Makes a call that has to succeed, and returns its result.
    pub(crate) async fn succeeds(&self, name: &str, arguments: Value) -> Value {
        match self.run(name, arguments).await {
            CallOutcome::Succeeded(message) => result(&message).result.inline().cloned().unwrap(),
            other => panic!("{name} did not succeed: {other:?}"),
        }
    }

    /// Makes a call that has to fail, and returns the kind and the text of its error.
    pub(crate) async fn fails(&self, name: &str, arguments: Value) -> (String, String) {
        match self.run(name, arguments).await {
            CallOutcome::Failed(message) => {
                let result = result(&message);
                (result.error_type.clone().unwrap(), result.error_message.clone().unwrap())
            }
            other => panic!("{name} did not fail: {other:?}"),
        }
    }
}

fn result(message: &InnerMessage) -> &OptionResult {
    match &message.message.content {
        Content::OptionResult(result) => result,
        other => panic!("no result: {other:?}"),
    }
}
