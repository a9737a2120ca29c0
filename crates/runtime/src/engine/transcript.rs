//! The conversation as text, for a program that does not have it.

use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::message::Content;
use backstitch_core::text::one_line;

/// The most characters of the text.
const LONGEST: usize = 60_000;

/// The most characters of one call or result.
const LONGEST_PART: usize = 2_000;

/// Writes the conversation so far before a prompt. The oldest messages are left out if it is too long.
pub(super) fn with_history(history: &[Arc<InnerMessage>], prompt: &str) -> String {
    let mut lines: Vec<String> = history.iter().filter_map(|message| line(message)).collect();
    let mut length: usize = lines.iter().map(String::len).sum();
    let mut left_out = 0;
    while length > LONGEST && !lines.is_empty() {
        length -= lines.remove(0).len();
        left_out += 1;
    }
    if lines.is_empty() && left_out == 0 {
        return prompt.to_owned();
    }
    let note =
        if left_out > 0 { format!(" The first {left_out} entries are left out.") } else { String::new() };
    format!(
        "This task was begun in a conversation that is not available any more. Its record follows; the files are as it \
         left them.{note} Do not repeat what is done.\n\n<record>\n{}\n</record>\n\n{prompt}",
        lines.join("\n")
    )
}

fn line(message: &InnerMessage) -> Option<String> {
    let text = match &message.message.content {
        Content::OptionCall(call) => {
            format!("call {} {}", call.option_name, one_line(&call.arguments.text(), LONGEST_PART))
        }
        Content::OptionResult(result) => {
            let word = if result.is_error { "error of" } else { "result of" };
            format!("{word} {}: {}", result.option_name, one_line(&message.content(), LONGEST_PART))
        }
        Content::Parts(_) => {
            let author = match message.role() {
                Role::System => return None,
                Role::User => "person",
                Role::Assistant | Role::Tool => "you",
            };
            format!("{author}: {}", message.content())
        }
    };
    Some(text)
}
