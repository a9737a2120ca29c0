//! Renders a conversation as a request.

use backstitch_core::message::{Modality, Part};
use backstitch_core::tool::ToolSpec;
use serde_json::{Value, json};

use super::super::openai;
use super::DIALECT;
use crate::answer::without_thoughts;
use crate::request::{
    InputMessage, OutputSchema, Piece, PlannedTurn, RawCall, RefusedPart, RenderError, RenderReport,
    RenderState, RequestInput, fields, last_role, legal, nudge, object, only_text, parameters, pieces, words,
};

/// Fields of answers that are refused or useless in requests.
const ANSWER_ONLY: [&str; 5] = ["annotations", "audio", "images", "refusal", "function_call"];

pub(super) fn render_input(
    message: &InputMessage<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let mut content = take_images(input, rendering)?;
    let (messages, mut media) = rendering.parts(input, DIALECT.media);
    if message.is_system {
        messages.extend(user(content));
        let text = words(message.parts.iter().copied(), media.report)?;
        if !text.is_empty() {
            messages.push(json!({"role": "system", "content": text}));
        }
    } else {
        content.extend(pieces(message.parts.iter().copied(), &mut media)?);
        messages.extend(user(content));
    }
    Ok(())
}

/// The images of the last answer.
fn take_images(input: &RequestInput<'_>, rendering: &mut RenderState) -> Result<Vec<Piece>, RenderError> {
    let images = std::mem::take(&mut rendering.images);
    let (_, mut media) = rendering.parts(input, DIALECT.media);
    media.leniently(|media| pieces(&images, media))
}

pub(super) fn render_body(
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<Value, RenderError> {
    let RequestInput { tools, target, options, output, system } = input;
    let images = take_images(input, rendering)?;
    rendering.messages.extend(user(images));
    if !system.is_empty() {
        rendering.insert_first(json!({"role": "system", "content": system}));
    }
    let RenderState { messages, report, .. } = rendering;
    if matches!(last_role(messages), None | Some("assistant" | "system")) {
        messages.push(json!({"role": "user", "content": nudge(report)}));
    }

    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    let format = output.as_ref().map(|OutputSchema { schema, strict }| {
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}})
    });
    let limit = options.max_output_tokens;
    // Most compatible servers only know the older name.
    let is_older =
        limit.is_some() && (target.endpoint.is_some() ^ options.refuses(RefusedPart::LimitName, report));
    let reports_usage = options.stream && !options.refuses(RefusedPart::StreamUsage, report);
    Ok(object([
        ("model", target.model.clone().into()),
        ("messages", std::mem::take(messages).into()),
        ("tools", tools.iter().map(|tool| declared(tool)).collect()),
        ("tool_choice", openai::tool_choice(input, named)),
        ("parallel_tool_calls", options.parallel_tool_calls.filter(|_| !tools.is_empty()).into()),
        ("temperature", options.sampling.temperature.into()),
        ("top_p", options.sampling.top_p.into()),
        ("seed", options.sampling.seed.into()),
        ("stop", options.sampling.stop.clone().into()),
        ("verbosity", options.verbosity.clone().into()),
        ("response_format", format.into()),
        (if is_older { "max_tokens" } else { "max_completion_tokens" }, limit.into()),
        ("reasoning_effort", options.effort.clone().into()),
        ("prompt_cache_key", options.cache_key.clone().into()),
        ("stream", options.stream.then_some(true).into()),
        ("stream_options", reports_usage.then(|| json!({"include_usage": true})).into()),
    ]))
}

fn declared(tool: &ToolSpec) -> Value {
    let function =
        json!({"name": tool.name.as_str(), "description": tool.description, "parameters": parameters(tool)});
    json!({"type": "function", "function": function})
}

/// A message of a user; `None` without content.
fn user(pieces: Vec<Piece>) -> Option<Value> {
    if pieces.is_empty() {
        return None;
    }
    let content = match only_text(&pieces) {
        Some(text) => Value::String(text),
        None => pieces.into_iter().map(content_part).collect(),
    };
    Some(fields([("role", "user".into()), ("content", content)]))
}

fn content_part(piece: Piece) -> Value {
    match piece {
        Piece::Text(text) => fields([("type", "text".into()), ("text", text.into())]),
        Piece::Bytes { mime, data, modality: Modality::Audio } => {
            let format = if mime == "audio/wav" { "wav" } else { "mp3" };
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        Piece::Bytes { mime, data, modality: Modality::Document } => {
            let url = format!("data:{mime};base64,{data}");
            json!({"type": "file", "file": {"filename": "document.pdf", "file_data": url}})
        }
        Piece::Bytes { mime, data, .. } => {
            json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}})
        }
        Piece::Url { url, .. } => json!({"type": "image_url", "image_url": {"url": url}}),
    }
}

/// Adds an answer and the results of its calls. Answers cannot hold images, so the model sees those of an answer without
/// calls with the next message of a user.
pub(super) fn render_turn(
    mut turn: PlannedTurn<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let images = take_images(input, rendering)?;
    rendering.messages.extend(user(images));
    let mut shown: Vec<&Part> = Vec::new();
    let message = match turn.raw.take() {
        Some(raw) => {
            shown.extend(turn.parts.iter().copied().filter(|part| is_image(part)));
            // A message of media alone is described.
            match replayed(raw, &turn)? {
                None => render_anew(&turn, &mut rendering.report)?,
                message => message,
            }
        }
        None => render_anew(&turn, &mut rendering.report)?,
    };
    if message.is_some() || !turn.calls.is_empty() {
        rendering.begin_turn();
    }
    rendering.messages.extend(message);
    if turn.calls.is_empty() {
        rendering.images.extend(shown.into_iter().cloned());
        return Ok(());
    }
    let (messages, mut media) = rendering.parts(input, DIALECT.media);
    for call in &turn.calls {
        let mut text = legal::marked(&call.result);
        let (spoken, seen): (Vec<&Part>, Vec<&Part>) =
            call.parts.iter().partition(|part| part.as_text().is_some());
        let more = words(spoken, media.report)?;
        if !more.is_empty() {
            text = if text.is_empty() { more } else { format!("{text}\n{more}") };
        }
        let id = call.id().into();
        messages.push(fields([("role", "tool".into()), ("tool_call_id", id), ("content", text.into())]));
        shown.extend(seen);
    }
    messages.extend(user(media.leniently(|media| pieces(shown, media))?));
    Ok(())
}

fn is_image(part: &Part) -> bool {
    part.as_media().is_some_and(|media| media.modality == Modality::Image)
}

fn render_anew(turn: &PlannedTurn<'_>, report: &mut RenderReport) -> Result<Option<Value>, RenderError> {
    let text = words(turn.parts.iter().copied(), report)?;
    let mut calls = Vec::new();
    for call in &turn.calls {
        let arguments = legal::arguments_text(&call.call.arguments)?;
        let function = fields([("name", call.name().into()), ("arguments", arguments.into())]);
        let id = call.id().into();
        calls.push(fields([("id", id), ("type", "function".into()), ("function", function)]));
    }
    // All servers accept an empty text; some refuse null.
    let (is_silent, role) = (text.is_empty(), ("role", "assistant".into()));
    let content = ("content", text.into());
    Ok(match (is_silent, calls.is_empty()) {
        (true, true) => None,
        (false, true) => Some(fields([role, content])),
        (_, false) => Some(fields([role, content, ("tool_calls", calls.into())])),
    })
}

/// The message as received, with legal names and arguments and without fields that only answers have.
fn replayed(raw: Value, turn: &PlannedTurn<'_>) -> Result<Option<Value>, RenderError> {
    let Value::Object(mut message) = raw else { return Ok(None) };
    message.retain(|name, value| !value.is_null() && !ANSWER_ONLY.contains(&name.as_str()));
    message.insert("role".into(), "assistant".into());
    if let Some(Value::Array(parts)) = message.get_mut("content") {
        parts.retain(|part| part["type"] == "text");
    }
    if turn.calls.is_empty() {
        message.remove("tool_calls");
        let is_empty = match message.get("content") {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(parts)) => parts.is_empty(),
            Some(_) => false,
        };
        if is_empty {
            return Ok(None);
        }
        // The thoughts of an ended turn are of no use. Those before calls may be needed, and servers that do
        // not need them remove them.
        if let Some(Value::String(text)) = message.get_mut("content") {
            let answer = without_thoughts(text).answer.to_owned();
            if answer.is_empty() {
                return Ok(None);
            }
            *text = answer;
        }
    }
    let content = message.entry("content").or_insert(Value::Null);
    if content.is_null() || content.as_array().is_some_and(Vec::is_empty) {
        *content = "".into();
    }
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (raw, call) in calls.into_iter().flatten().zip(&turn.calls) {
        raw["type"] = "function".into();
        raw["function"]["name"] = call.name().into();
        raw["function"]["arguments"] = legal::arguments_text(&call.call.arguments)?.into();
    }
    Ok(Some(message.into()))
}

/// The calls of a raw payload; `None` if it has an unknown form and cannot be sent back.
pub(super) fn raw_calls(raw: &Value) -> Option<Vec<RawCall>> {
    let message = raw.as_object()?;
    match message.get("content") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            let says = |part: &Value| part["text"].as_str().is_some_and(|text| !text.is_empty());
            let is_known = |part: &Value| match part["type"].as_str() {
                Some("text") => says(part),
                kind => kind == Some("image_url"),
            };
            parts.iter().all(is_known).then_some(())?;
        }
        Some(_) => return None,
    }
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(calls) => calls.as_array()?,
    };
    let ids = calls.iter().map(|call| {
        call.get("function")?.as_object()?;
        Some(RawCall { id: Some(call.get("id")?.as_str()?.to_owned()) })
    });
    ids.collect()
}
