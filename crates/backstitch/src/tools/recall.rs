//! Seeing again what a request left out.

use backstitch_repl::recall::{Reference, Window, from_transcript};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::id::CallId;
use crate::journal::Effect;
use crate::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use crate::view::Transcript;

const DESCRIPTION: &str = "Shows a part of this conversation that was left out of what you see: a turn by its number, or a call \
     by its id, with its arguments and its result. Long texts come in parts; `next` says where the next one begins.";

/// A tool that shows what a [compression](backstitch_repl::transcript) left out of the conversation.
pub fn recall() -> Tool {
    Tool::builder(backstitch_repl::recall::TOOL_NAME, DESCRIPTION)
        .expect("invariant: the name is one")
        .effect(Effect::Pure)
        .workspace(WorkspaceUse::None)
        .handler(|context: ToolContext, wanted: Wanted| async move {
            let reference = wanted.reference()?;
            let evaluation = context.evaluation_id();
            let mut messages = context.session(|draft| Transcript::of(draft))??.inner_messages(evaluation);
            // What is most worth leaving out is what is too large for its record.
            for message in &mut messages {
                *message = context.whole_message(message).await?;
            }
            let window = Window { from: wanted.from.unwrap_or(0), ..Window::default() };
            let recalled = from_transcript(&messages, reference, window)
                .map_err(|error| ToolError::Validation { message: error.to_string() })?;
            Ok(ToolResult::default().with_value(recalled)?)
        })
}

/// What is to be seen again.
#[derive(Deserialize, JsonSchema)]
struct Wanted {
    /// The number of a turn.
    turn: Option<u64>,
    /// The id of a call, as the placeholder of its result names it.
    call_id: Option<String>,
    /// The first character to show, as `next` of the part before says.
    from: Option<usize>,
}

impl Wanted {
    fn reference(&self) -> Result<Reference, ToolError> {
        let wrong = |message: &str| ToolError::Validation { message: message.to_owned() };
        match (self.turn, &self.call_id) {
            (Some(turn), None) => Ok(Reference::Turn(turn)),
            (None, Some(call)) => {
                let call: CallId = call.parse().map_err(|_| wrong("call_id: this is no id of a call"))?;
                Ok(Reference::CallId(call))
            }
            _ => Err(wrong("say which: `turn` or `call_id`, and not both")),
        }
    }
}
