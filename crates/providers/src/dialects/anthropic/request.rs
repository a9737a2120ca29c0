//! Renders a conversation as a request.

use backstitch_core::message::Modality;
use backstitch_core::tool::ToolSpec;
use serde_json::{Value, json};

use super::DIALECT;
use crate::request::{
    CacheMarks, Departure, InputMessage, Media, Piece, PlannedCall, PlannedTurn, RawCall, RenderError,
    RenderReport, RenderState, RequestInput, RequestOptions, ThinkingBudget, ToolChoice, fields, is_filled,
    last_role, legal, nudge, object, parameters, render_pieces, words,
};

/// The default token limit of an answer. Messages requires one.
const MAX_TOKENS: u32 = 8192;

pub(super) fn render_input(
    message: &InputMessage<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let (messages, mut media) = rendering.parts(input, DIALECT.media);
    let mut blocks = render_pieces(message.parts.iter().copied(), &mut media, block)?;
    if message.is_system && !blocks.is_empty() {
        blocks.insert(0, text_block("System:"));
    }
    push_user(messages, blocks);
    Ok(())
}

pub(super) fn render_body(
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<Value, RenderError> {
    let RequestInput { tools, target, options, output, system } = input;
    end_with_user(&mut rendering.messages, &mut rendering.report);

    let max_tokens = options.max_output_tokens.unwrap_or_else(|| default_limit(options.thinking));
    let mut tools: Vec<Value> = tools.iter().map(|tool| declared(tool)).collect();
    let mut system: Vec<Value> =
        if system.is_empty() { Vec::new() } else { vec![text_block(system.as_str())] };
    if options.cache == CacheMarks::Auto {
        mark(tools.last_mut());
        mark(system.last_mut());
        mark_messages(&mut rendering.messages, tools.is_empty());
    }
    let thinking = thinking(options, rendering);
    let choice = tool_choice(options).filter(|_| !tools.is_empty());
    let format = output.as_ref().map(|output| json!({"type": "json_schema", "schema": output.schema}));
    Ok(object([
        ("model", target.model.clone().into()),
        ("max_tokens", max_tokens.into()),
        ("system", system.into()),
        ("messages", std::mem::take(&mut rendering.messages).into()),
        ("tools", tools.into()),
        ("tool_choice", choice.into()),
        ("stop_sequences", options.sampling.stop.clone().into()),
        ("thinking", thinking.into()),
        ("output_config", object([("effort", options.effort.clone().into()), ("format", format.into())])),
        ("stream", options.stream.then_some(true).into()),
    ]))
}

/// The choice of tools, with whether calls may be parallel.
fn tool_choice(options: &RequestOptions) -> Option<Value> {
    let mut choice = match &options.tool_choice {
        ToolChoice::Default if options.parallel_tool_calls.is_none() => return None,
        ToolChoice::Default | ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": legal::legal_name(name)}),
    };
    if let Some(parallel) = options.parallel_tool_calls {
        choice["disable_parallel_tool_use"] = (!parallel).into();
    }
    Some(choice)
}

/// Adds a message of a user. Messages alternate, so it is merged with one of a user before it.
fn push_user(messages: &mut Vec<Value>, blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    if last_role(messages) == Some("user")
        && let Some(content) = messages.last_mut().and_then(|message| message["content"].as_array_mut())
    {
        content.extend(blocks);
    } else {
        messages.push(fields([("role", "user".into()), ("content", blocks.into())]));
    }
}

fn end_with_user(messages: &mut Vec<Value>, report: &mut RenderReport) {
    if last_role(messages) != Some("user") {
        push_user(messages, vec![text_block(nudge(report))]);
    }
}

fn declared(tool: &ToolSpec) -> Value {
    json!({"name": tool.name.as_str(), "description": tool.description, "input_schema": parameters(tool)})
}

fn text_block(text: impl Into<String>) -> Value {
    fields([("type", "text".into()), ("text", Value::String(text.into()))])
}

/// Marks the ends of the last two user messages, which the next request repeats. Without declared tools there is one
/// mark more, for the first block of a conversation that begins with several: it stays, while the blocks after it
/// may change with each request, and then a mark at their end would only be paid for.
fn mark_messages(messages: &mut [Value], has_mark_left: bool) {
    let users = messages.iter_mut().filter(|message| message["role"] == "user");
    let mut users: Vec<_> = users.filter_map(|message| message["content"].as_array_mut()).collect();
    let is_only = users.len() == 1;
    let begins_with_several = has_mark_left && users.first().is_some_and(|blocks| blocks.len() > 1);
    if begins_with_several {
        mark(users.first_mut().and_then(|blocks| blocks.first_mut()));
    }
    if !(begins_with_several && is_only) {
        users.iter_mut().rev().take(2).for_each(|blocks| mark(blocks.last_mut()));
    }
}

fn mark(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// The default token limit of an answer. Thinking counts as a part of the answer, so its budget is added.
fn default_limit(thinking: ThinkingBudget) -> u32 {
    let ThinkingBudget::Budget(budget) = thinking else { return MAX_TOKENS };
    MAX_TOKENS.saturating_add(budget)
}

/// The `thinking` field. A fixed budget is left out where the thoughts before the last calls are missing,
/// since the provider refuses it there.
fn thinking(options: &RequestOptions, rendering: &mut RenderState) -> Option<Value> {
    match options.thinking {
        ThinkingBudget::Default => None,
        ThinkingBudget::Adaptive => Some(json!({"type": "adaptive"})),
        ThinkingBudget::Budget(0) => Some(json!({"type": "disabled"})),
        ThinkingBudget::Budget(_) if rendering.lacks_thoughts => {
            rendering.report.note(Departure::ThinkingLeftOut);
            None
        }
        ThinkingBudget::Budget(budget) => Some(json!({"type": "enabled", "budget_tokens": budget})),
    }
}

fn block(piece: Piece) -> Value {
    let (source, modality) = match piece {
        Piece::Text(text) => return text_block(text),
        Piece::Url { url, modality, .. } => (json!({"type": "url", "url": url}), modality),
        Piece::Bytes { mime, data, modality } => {
            let kind = ("type", "base64".into());
            (fields([kind, ("media_type", mime.into()), ("data", data.into())]), modality)
        }
    };
    let kind = if modality == Modality::Document { "document" } else { "image" };
    fields([("type", kind.into()), ("source", source)])
}

pub(super) fn render_turn(
    mut turn: PlannedTurn<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let content = match turn.raw.take() {
        Some(raw) => replayed(raw, &turn)?,
        None => {
            let text = words(turn.parts.iter().copied(), &mut rendering.report)?;
            let mut content: Vec<Value> = Vec::new();
            if !text.is_empty() {
                content.push(text_block(text.trim_end()));
            }
            for call in &turn.calls {
                let input = legal::arguments_object(&call.call.arguments)?;
                content.push(fields([
                    ("type", "tool_use".into()),
                    ("id", call.id().into()),
                    ("name", call.name().into()),
                    ("input", input.into()),
                ]));
            }
            content
        }
    };
    if content.is_empty() {
        return Ok(());
    }
    end_with_user(&mut rendering.messages, &mut rendering.report);
    let is_loop = !turn.calls.is_empty();
    rendering.lacks_thoughts =
        is_loop && (rendering.lacks_thoughts || !content.first().is_some_and(is_thought));
    rendering.begin_turn();
    let (messages, mut media) = rendering.parts(input, DIALECT.media);
    messages.push(fields([("role", "assistant".into()), ("content", content.into())]));
    let results = turn.calls.iter().map(|call| result(call, &mut media));
    push_user(messages, results.collect::<Result<Vec<Value>, RenderError>>()?);
    Ok(())
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn result(call: &PlannedCall<'_>, media: &mut Media<'_>) -> Result<Value, RenderError> {
    let mut content = media.leniently(|media| render_pieces(call.parts, media, block))?;
    if !call.result.text.trim().is_empty() {
        content.insert(0, text_block(call.result.text.as_str()));
    }
    let mut result = fields([("type", "tool_result".into()), ("tool_use_id", call.id().into())]);
    if !content.is_empty() {
        result["content"] = content.into();
    }
    if call.result.is_error {
        result["is_error"] = true.into();
    }
    Ok(result)
}

/// The content as received, with legal names and arguments. Thoughts are unchanged.
fn replayed(raw: Value, turn: &PlannedTurn<'_>) -> Result<Vec<Value>, RenderError> {
    let Value::Array(mut content) = raw else { return Ok(Vec::new()) };
    content.retain(|block| !is_blank(block));
    let calls = content.iter_mut().filter(|block| block["type"] == "tool_use");
    for (block, call) in calls.zip(&turn.calls) {
        block["name"] = call.name().into();
        if !call.call.arguments.is_parsable() || !block["input"].is_object() {
            block["input"] = legal::arguments_object(&call.call.arguments)?.into();
        }
    }
    Ok(content)
}

/// Whether a block is a text of white space only, which the provider refuses.
fn is_blank(block: &Value) -> bool {
    block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty())
}

/// The calls of a raw payload; `None` if one of its blocks has an unknown form and the payload cannot be sent
/// back.
pub(super) fn raw_calls(raw: &Value) -> Option<Vec<RawCall>> {
    let mut calls = Vec::new();
    let mut ends_in_thoughts = true;
    for block in raw.as_array()?.iter().filter(|block| !is_blank(block)) {
        let kind = block["type"].as_str()?;
        let is_whole = match kind {
            "text" => block["text"].is_string(),
            "thinking" => block["thinking"].is_string() && is_filled(&block["signature"]),
            "redacted_thinking" => is_filled(&block["data"]),
            "tool_use" => block["id"].is_string(),
            _ => false,
        };
        // Calls close an answer.
        (is_whole && (calls.is_empty() || kind == "tool_use")).then_some(())?;
        if kind == "tool_use" {
            calls.push(RawCall { id: block["id"].as_str().map(str::to_owned) });
        }
        ends_in_thoughts = matches!(kind, "thinking" | "redacted_thinking");
    }
    // An answer that ends in thoughts was cut off, and the provider refuses it in a conversation.
    (!ends_in_thoughts).then_some(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks messages of these roles and numbers of blocks, and returns the places of the marks.
    fn marked(roles: &[(&str, usize)], has_mark_left: bool) -> Vec<(usize, usize)> {
        let message = |(role, blocks): &(&str, usize)| {
            let blocks: Vec<Value> = (0..*blocks).map(|number| text_block(number.to_string())).collect();
            json!({"role": role, "content": blocks})
        };
        let mut messages: Vec<Value> = roles.iter().map(message).collect();
        mark_messages(&mut messages, has_mark_left);
        let blocks = messages.iter().enumerate().flat_map(|(place, message)| {
            let blocks = message["content"].as_array().into_iter().flatten().enumerate();
            blocks.filter(|(_, block)| block.get("cache_control").is_some()).map(move |(at, _)| (place, at))
        });
        blocks.collect()
    }

    #[test]
    fn what_the_next_request_repeats_is_marked() {
        assert_eq!(marked(&[("user", 1)], true), [(0, 0)]);
        assert_eq!(marked(&[("user", 2)], false), [(0, 1)]);
        assert_eq!(marked(&[("user", 2)], true), [(0, 0)], "the second block changes with each request");
        let longer = [("user", 2), ("assistant", 1), ("user", 1), ("assistant", 1), ("user", 3)];
        assert_eq!(marked(&longer, true), [(0, 0), (2, 0), (4, 2)]);
        assert_eq!(marked(&longer, false), [(2, 0), (4, 2)]);
    }
}
