//! A tool that returns what a compression left out of requests.

use std::sync::Arc;

use backstitch_repl::Turn;
use backstitch_repl::compression::History;
use backstitch_repl::recall::{RecallExcerpt, Reference, Window, from_transcript, from_turns};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::id::CallId;
use crate::journal::{Effect, InnerMessage};
use crate::machine::conversation;
use crate::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use crate::view::Transcript;

const DESCRIPTION: &str = "Returns what was left out of this conversation: a turn by its number, with its messages, calls and \
     prints, or a call by its id, with its arguments and its whole result. Without arguments it lists the turns. Long texts \
     are returned in parts; `next` is the start of the next part.";

/// Default number of characters for programs. A program that prints so much has it shown in full.
const FOR_PROGRAMS: usize = 1_800;

/// Returns the tool that returns what a compression left out: of the [turns](backstitch_repl::compression) of
/// an agent that answers with programs, or of the [transcript](backstitch_repl::transcript) of any agent.
pub fn recall() -> Tool {
    Tool::builder(backstitch_repl::recall::TOOL_NAME, DESCRIPTION)
        .expect("invariant: the name is one")
        .effect(Effect::Pure)
        .workspace(WorkspaceUse::None)
        .handler(|context: ToolContext, wanted: RecallArgs| async move {
            let recalled = recall_excerpt(&context, &wanted, wanted.reference()?).await?;
            Ok(ToolResult::default().with_value(recalled)?)
        })
}

async fn recall_excerpt(
    context: &ToolContext,
    wanted: &RecallArgs,
    reference: Reference,
) -> Result<RecallExcerpt, ToolError> {
    let turns = context.finished_turns().await?;
    let by_programs = !turns.is_empty();
    let window = wanted.window(if by_programs { FOR_PROGRAMS } else { Window::default().limit });
    let recalled = match reference {
        // Turns hold the prints, and the transcript holds the whole result of each call.
        Reference::Overview | Reference::Turn(_) if by_programs => {
            let mut history = History::new();
            for turn in turns {
                let turn: Turn = serde_json::from_value(turn.data.inline().cloned().unwrap_or_default())
                    .map_err(|error| ToolError::new(format!("turn {} cannot be read: {error}", turn.turn)))?;
                history.push(Arc::new(turn));
            }
            from_turns(&history, reference, window)
        }
        _ => from_transcript(&whole_transcript(context).await?, reference, window),
    };
    recalled.map_err(|error| ToolError::Validation { message: error.to_string() })
}

async fn whole_transcript(context: &ToolContext) -> Result<Vec<Arc<InnerMessage>>, ToolError> {
    let followed = context.followed_evaluations().await?;
    let transcript = context.session(|draft| Transcript::of(draft))??;
    let mut messages = conversation(&transcript, &followed, context.evaluation_id());
    // Content that is too large for its record is left out most often.
    for message in &mut messages {
        *message = context.whole_message(message).await?;
    }
    Ok(messages)
}

/// Selects what to recall.
#[derive(Deserialize, JsonSchema)]
struct RecallArgs {
    /// The number of a turn.
    turn: Option<u64>,
    /// The id of a call, as the placeholder of its result names it.
    call_id: Option<String>,
    /// The first character to return: `next` of the part before. Default: 0.
    from: Option<usize>,
    /// Maximum number of characters to return.
    limit: Option<usize>,
}

impl RecallArgs {
    fn reference(&self) -> Result<Reference, ToolError> {
        let wrong = |message: &str| ToolError::Validation { message: message.to_owned() };
        match (self.turn, &self.call_id) {
            (None, None) => Ok(Reference::Overview),
            (Some(turn), None) => Ok(Reference::Turn(turn)),
            (None, Some(call)) => {
                let call: CallId = call.parse().map_err(|_| wrong("call_id: this is not a call id"))?;
                Ok(Reference::CallId(call))
            }
            (Some(_), Some(_)) => Err(wrong("set either `turn` or `call_id`, not both")),
        }
    }

    fn window(&self, usual: usize) -> Window {
        let most = Window::default().limit;
        Window { from: self.from.unwrap_or(0), limit: self.limit.unwrap_or(usual).clamp(1, most) }
    }
}
