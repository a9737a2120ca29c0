//! Renders a conversation as a request.

use backstitch_core::message::Modality;
use backstitch_core::tool::ToolSpec;
use serde_json::{Value, json};

use super::super::openai;
use super::DIALECT;
use crate::request::{
    InputMessage, Media, OutputSchema, Piece, PlannedCall, PlannedTurn, RawCall, ReasoningSummary,
    RefusedPart, RenderError, RenderReport, RenderState, RequestInput, fields, is_filled, legal, nudge,
    object, parameters, render_pieces, words,
};

pub(super) fn render_input(
    message: &InputMessage<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let (items, mut media) = rendering.parts(input, DIALECT.media);
    let role = if message.is_system { "developer" } else { "user" };
    let content = render_pieces(message.parts.iter().copied(), &mut media, content)?;
    if !content.is_empty() {
        items.push(fields([("role", role.into()), ("content", content.into())]));
    }
    Ok(())
}

pub(super) fn render_body(
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<Value, RenderError> {
    let RequestInput { tools, target, options, output, system } = input;
    let asks = |item: &Value| item["role"] == "user" || item["type"] == "function_call_output";
    if !rendering.messages.last().is_some_and(asks) {
        let text = json!({"type": "input_text", "text": nudge(&mut rendering.report)});
        rendering.messages.push(json!({"role": "user", "content": [text]}));
    }

    let format = output.as_ref().map(|OutputSchema { schema, strict }| {
        json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict})
    });
    let reasoning = options.effort.as_ref().map(|effort| {
        let is_summarized = options.summary == ReasoningSummary::Auto
            && !options.refuses(RefusedPart::ReasoningSummary, &mut rendering.report);
        object([("effort", effort.as_str().into()), ("summary", is_summarized.then_some("auto").into())])
    });
    let is_included = rendering.has_reasoning
        || (reasons(&target.model)
            && !options.refuses(RefusedPart::EncryptedReasoning, &mut rendering.report));
    Ok(object([
        ("model", target.model.clone().into()),
        ("instructions", Some(system.as_str()).filter(|system| !system.is_empty()).into()),
        ("input", std::mem::take(&mut rendering.messages).into()),
        ("tools", tools.iter().map(|tool| declared(tool)).collect()),
        ("tool_choice", openai::tool_choice(input, |name| json!({"type": "function", "name": name}))),
        ("parallel_tool_calls", options.parallel_tool_calls.filter(|_| !tools.is_empty()).into()),
        ("temperature", options.sampling.temperature.into()),
        ("top_p", options.sampling.top_p.into()),
        ("text", object([("format", format.into()), ("verbosity", options.verbosity.clone().into())])),
        ("max_output_tokens", options.max_output_tokens.into()),
        ("reasoning", reasoning.into()),
        ("prompt_cache_key", options.cache_key.clone().into()),
        ("store", false.into()),
        ("include", is_included.then(|| json!(["reasoning.encrypted_content"])).into()),
        ("stream", options.stream.then_some(true).into()),
    ]))
}

/// Whether a model may reason. Those that are known not to refuse requests for encrypted reasoning.
fn reasons(model: &str) -> bool {
    const PLAIN: [&str; 4] = ["gpt-4", "gpt-3.5", "chatgpt-4", "gpt-5-chat"];
    // Names of fine-tuned models and of gateways have a prefix.
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    !PLAIN.iter().any(|plain| name.starts_with(plain))
}

fn declared(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": tool.name.as_str(),
        "description": tool.description,
        "parameters": parameters(tool),
        "strict": false,
    })
}

fn content(piece: Piece) -> Value {
    match piece {
        Piece::Text(text) => fields([("type", "input_text".into()), ("text", text.into())]),
        Piece::Url { url, modality: Modality::Document, .. } => {
            json!({"type": "input_file", "file_url": url})
        }
        Piece::Url { url, .. } => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        Piece::Bytes { mime, data, modality: Modality::Document } => {
            let url = format!("data:{mime};base64,{data}");
            json!({"type": "input_file", "filename": "document.pdf", "file_data": url})
        }
        Piece::Bytes { mime, data, .. } => {
            let url = format!("data:{mime};base64,{data}");
            json!({"type": "input_image", "image_url": url, "detail": "auto"})
        }
    }
}

pub(super) fn render_turn(
    mut turn: PlannedTurn<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let answer = match turn.raw.take() {
        Some(raw) => replayed(raw, &turn, &mut rendering.report)?,
        None => {
            let text = words(turn.parts.iter().copied(), &mut rendering.report)?;
            let mut items = Vec::new();
            if !text.is_empty() {
                items.push(assistant_text(text));
            }
            for call in &turn.calls {
                items.push(fields([
                    ("type", "function_call".into()),
                    ("call_id", call.id().into()),
                    ("name", call.name().into()),
                    ("arguments", legal::arguments_text(&call.call.arguments)?.into()),
                ]));
            }
            items
        }
    };
    if answer.is_empty() && turn.calls.is_empty() {
        return Ok(());
    }
    rendering.has_reasoning |= answer.iter().any(|item| item["type"] == "reasoning");
    rendering.begin_turn();
    let (items, mut media) = rendering.parts(input, DIALECT.media);
    items.extend(answer);
    for call in &turn.calls {
        items.push(output(call, &mut media)?);
    }
    Ok(())
}

fn output(call: &PlannedCall<'_>, media: &mut Media<'_>) -> Result<Value, RenderError> {
    let text = legal::marked(&call.result);
    let mut parts = media.leniently(|media| render_pieces(call.parts, media, content))?;
    let output = if parts.is_empty() {
        Value::String(text)
    } else {
        if !text.is_empty() {
            parts.insert(0, json!({"type": "input_text", "text": text}));
        }
        Value::Array(parts)
    };
    let id = call.id().into();
    Ok(fields([("type", "function_call_output".into()), ("call_id", id), ("output", output)]))
}

/// An assistant message as plain text. Output parts are only for answers that are replayed with their id and
/// status.
fn assistant_text(text: impl Into<String>) -> Value {
    let kind = ("type", "message".into());
    fields([kind, ("role", "assistant".into()), ("content", Value::String(text.into()))])
}

/// Whether a message has all fields of an output item. Compatible servers leave some of them out.
fn is_output(item: &Value) -> bool {
    let parts = item["content"].as_array().into_iter().flatten();
    is_filled(&item["id"])
        && is_filled(&item["status"])
        && parts.into_iter().all(|part| part["annotations"].is_array())
}

/// The text of a message that cannot be replayed as an output item.
fn in_words(item: &Value) -> Option<Value> {
    let parts = item["content"].as_array().into_iter().flatten();
    let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
    (!text.is_empty()).then(|| assistant_text(text))
}

/// The items as received, with legal names and arguments.
fn replayed(
    raw: Value,
    turn: &PlannedTurn<'_>,
    report: &mut RenderReport,
) -> Result<Vec<Value>, RenderError> {
    let Value::Array(mut items) = raw else { return Ok(Vec::new()) };
    for item in items.iter_mut().filter(|item| item["type"] == IMAGE) {
        report.count_bytes(item["result"].as_str());
        if let Some(fields) = item.as_object_mut() {
            fields.retain(|name, _| IMAGE_FIELDS.contains(&name.as_str()));
        }
    }
    let calls = items.iter_mut().filter(|item| item["type"] == "function_call");
    for (item, call) in calls.zip(&turn.calls) {
        item["name"] = call.name().into();
        item["arguments"] = legal::arguments_text(&call.call.arguments)?.into();
    }
    let items = items.into_iter().filter_map(|item| {
        if item["type"] == "message" && !is_output(&item) { in_words(&item) } else { Some(item) }
    });
    Ok(items.collect())
}

/// The type of an item that is an image of the model.
const IMAGE: &str = "image_generation_call";

/// The fields of such an item in requests. Answers have more.
const IMAGE_FIELDS: [&str; 4] = ["type", "id", "status", "result"];

/// The calls of a raw payload; `None` if one of its items has an unknown form and the payload cannot be sent
/// back.
pub(super) fn raw_calls(raw: &Value) -> Option<Vec<RawCall>> {
    let items = raw.as_array()?;
    let is_reasoning = |item: &Value| item["type"] == "reasoning";
    let mut calls = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item["type"].as_str()? {
            "reasoning" => {
                // The provider refuses reasoning that nothing follows, and reasoning that is only stored on
                // its side.
                let led_to_something = items[index + 1..].iter().any(|item| !is_reasoning(item));
                let is_named = is_filled(&item["id"]);
                let is_whole =
                    is_named && item["summary"].is_array() && is_filled(&item["encrypted_content"]);
                (led_to_something && is_whole).then_some(())?;
            }
            "message" => {
                let parts = item["content"].as_array().filter(|parts| !parts.is_empty())?;
                let is_output_text = |part: &Value| part["type"] == "output_text" && part["text"].is_string();
                (item["role"] == "assistant" && parts.iter().all(is_output_text)).then_some(())?;
            }
            "function_call" => calls.push(RawCall { id: Some(item["call_id"].as_str()?.to_owned()) }),
            IMAGE => {
                let is_whole = is_filled(&item["id"]) && is_filled(&item["result"]);
                (is_whole && item["status"] == "completed").then_some(())?;
            }
            // Calls of tools that run at the provider, or that take free text, cannot be answered here.
            _ => return None,
        }
    }
    Some(calls)
}
