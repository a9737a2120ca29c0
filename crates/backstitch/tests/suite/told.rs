//! What a model is told of its calls.

use backstitch::CallOutcome;
use backstitch::journal::InnerMessage;
use backstitch::message::{Content, OptionResult};
use serde_json::Value;

use crate::harness::Harness;

impl Harness {
    /// Makes a call that succeeds, and gives what the model is told.
    pub(crate) async fn succeeds(&self, name: &str, arguments: Value) -> Value {
        match self.run(name, arguments).await {
            CallOutcome::Succeeded(message) => told(&message).result.inline().cloned().unwrap(),
            other => panic!("{name} did not succeed: {other:?}"),
        }
    }

    /// Makes a call that fails, and gives the error's kind and text as the model is told.
    pub(crate) async fn fails(&self, name: &str, arguments: Value) -> (String, String) {
        match self.run(name, arguments).await {
            CallOutcome::Failed(message) => {
                let result = told(&message);
                (result.error_type.clone().unwrap(), result.error_message.clone().unwrap())
            }
            other => panic!("{name} did not fail: {other:?}"),
        }
    }
}

fn told(message: &InnerMessage) -> &OptionResult {
    match &message.message.content {
        Content::OptionResult(result) => result,
        other => panic!("no result: {other:?}"),
    }
}
