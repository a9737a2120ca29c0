//! Renders a conversation as a request.

use backstitch_core::tool::ToolSpec;
use serde_json::{Value, json};

use super::DIALECT;
use crate::request::{
    InputMessage, OutputSchema, Piece, PlannedCall, PlannedTurn, RawCall, RenderError, RenderReport,
    RenderState, RequestInput, RequestOptions, SamplingOptions, ThinkingBudget, ToolChoice, fields,
    is_filled, last_role, legal, nudge, object, parameters, render_pieces, words,
};

/// Replaces the signature, which Gemini requires, of calls that Gemini did not make.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn render_input(
    message: &InputMessage<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let (contents, mut media) = rendering.parts(input, DIALECT.media);
    let mut parts = render_pieces(message.parts.iter().copied(), &mut media, part)?;
    if message.is_system && !parts.is_empty() {
        parts.insert(0, json!({"text": "System:"}));
    }
    push(contents, "user", parts);
    Ok(())
}

pub(super) fn render_body(
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<Value, RenderError> {
    let RequestInput { tools, options, output, system, .. } = input;
    end_with_user(rendering);

    let has_tools = !tools.is_empty();
    let system = (!system.is_empty()).then(|| json!({"parts": [{"text": system}]}));
    let declared: Vec<Value> = tools.iter().map(|tool| declared(tool)).collect();
    let calling = tool_choice(&options.tool_choice).filter(|_| has_tools);
    Ok(object([
        ("systemInstruction", system.into()),
        ("contents", std::mem::take(&mut rendering.messages).into()),
        ("tools", has_tools.then(|| json!([{"functionDeclarations": declared}])).into()),
        ("toolConfig", calling.map(|calling| json!({"functionCallingConfig": calling})).into()),
        ("generationConfig", config(options, output.as_ref())),
    ]))
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Default => None,
        ToolChoice::Auto => Some(json!({"mode": "AUTO"})),
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Named(name) => {
            Some(json!({"mode": "ANY", "allowedFunctionNames": [legal::legal_name(name)]}))
        }
    }
}

fn config(options: &RequestOptions, output: Option<&OutputSchema>) -> Value {
    let SamplingOptions { temperature, top_p, seed, stop } = &options.sampling;
    let budget = match options.thinking {
        ThinkingBudget::Default => ("thinkingBudget", Value::Null),
        ThinkingBudget::Adaptive => ("includeThoughts", true.into()),
        ThinkingBudget::Budget(budget) => ("thinkingBudget", budget.into()),
    };
    let level = options.effort.as_ref().map(|effort| effort.to_uppercase());
    object([
        ("maxOutputTokens", options.max_output_tokens.into()),
        ("responseMimeType", output.map(|_| "application/json").into()),
        ("responseJsonSchema", output.map(|output| output.schema.clone()).into()),
        ("temperature", (*temperature).into()),
        ("topP", (*top_p).into()),
        ("seed", (*seed).into()),
        ("stopSequences", stop.clone().into()),
        ("thinkingConfig", object([budget, ("thinkingLevel", level.into())])),
    ])
}

fn declared(tool: &ToolSpec) -> Value {
    json!({
        "name": legal::legal_name(tool.name.as_str()),
        "description": tool.description,
        "parametersJsonSchema": parameters(tool),
    })
}

fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if !parts.is_empty() {
        contents.push(fields([("role", role.into()), ("parts", parts.into())]));
    }
}

fn end_with_user(rendering: &mut RenderState) {
    if last_role(&rendering.messages) != Some("user") {
        let text = json!({"text": nudge(&mut rendering.report)});
        push(&mut rendering.messages, "user", vec![text]);
    }
}

fn part(piece: Piece) -> Value {
    match piece {
        Piece::Text(text) => fields([("text", text.into())]),
        Piece::Url { url, mime, .. } => json!({"fileData": {"mimeType": mime, "fileUri": url}}),
        Piece::Bytes { mime, data, .. } => json!({"inlineData": {"mimeType": mime, "data": data}}),
    }
}

pub(super) fn render_turn(
    mut turn: PlannedTurn<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let mut parts = match turn.raw.take() {
        Some(raw) => replayed(raw, &turn, &mut rendering.report)?,
        None => {
            let text = words(turn.parts.iter().copied(), &mut rendering.report)?;
            let mut parts: Vec<Value> = Vec::new();
            if !text.is_empty() {
                parts.push(fields([("text", text.into())]));
            }
            for call in &turn.calls {
                let args = legal::arguments_object(&call.call.arguments)?;
                let (id, name) = (call.id().into(), call.name().into());
                let call = fields([("id", id), ("name", name), ("args", args.into())]);
                parts.push(fields([("functionCall", call)]));
            }
            parts
        }
    };
    if parts.is_empty() {
        return Ok(());
    }
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(first) = first
        && first.get("thoughtSignature").is_none()
    {
        first["thoughtSignature"] = UNSIGNED.into();
    }
    end_with_user(rendering);
    rendering.begin_turn();
    let (contents, mut media) = rendering.parts(input, DIALECT.media);
    push(contents, "model", parts);
    let (mut responses, mut shown) = (Vec::new(), Vec::new());
    for call in &turn.calls {
        responses.push(response(call, media.report)?);
        shown.extend(call.parts.iter().filter(|part| part.as_media().is_some()));
    }
    push(contents, "user", responses);
    // Responses cannot hold media by URL, so all media of results stands in a content after them.
    let shown = media.leniently(|media| render_pieces(shown, media, part))?;
    push(contents, "user", shown);
    Ok(())
}

fn response(call: &PlannedCall<'_>, report: &mut RenderReport) -> Result<Value, RenderError> {
    let key = if call.result.is_error { "error" } else { "output" };
    let spoken = words(call.parts.iter().filter(|part| part.as_text().is_some()), report)?;
    let mut text = call.result.text.clone();
    if !spoken.is_empty() {
        text = if text.is_empty() { spoken } else { format!("{text}\n{spoken}") };
    }
    let content = fields([(key, text.into())]);
    let mut response = fields([("name", call.name().into()), ("response", content)]);
    if let Some(id) = &call.wire_id {
        response["id"] = id.as_str().into();
    }
    Ok(fields([("functionResponse", response)]))
}

/// The parts as received, with legal names and arguments. Signatures stay on their parts.
fn replayed(
    raw: Value,
    turn: &PlannedTurn<'_>,
    report: &mut RenderReport,
) -> Result<Vec<Value>, RenderError> {
    let Value::Array(mut parts) = raw else { return Ok(Vec::new()) };
    parts.retain(|part| part["text"] != "" || part.get("thoughtSignature").is_some());
    for part in &parts {
        report.count_bytes(part["inlineData"]["data"].as_str());
        report.media += usize::from(part.get("fileData").is_some());
    }
    let calls = parts.iter_mut().filter_map(|part| part.get_mut("functionCall"));
    for (raw, call) in calls.zip(&turn.calls) {
        raw["name"] = call.name().into();
        if !raw["args"].is_object() {
            raw["args"] = legal::arguments_object(&call.call.arguments)?.into();
        }
    }
    Ok(parts)
}

/// The possible fields of a part, of which it has exactly one.
const KINDS: [&str; 6] =
    ["text", "functionCall", "inlineData", "fileData", "executableCode", "codeExecutionResult"];

/// The calls of a raw payload; `None` if one of its parts has an unknown form and the payload cannot be sent
/// back.
pub(super) fn raw_calls(raw: &Value) -> Option<Vec<RawCall>> {
    let is_typed = |media: &Value| media["mimeType"].as_str().is_some_and(|mime| mime.contains('/'));
    let mut calls = Vec::new();
    for part in raw.as_array()? {
        let mut kinds = KINDS.into_iter().filter(|kind| part.get(kind).is_some());
        let (kind, None) = (kinds.next()?, kinds.next()) else { return None };
        let content = &part[kind];
        let is_whole = match kind {
            "text" => content.is_string(),
            "inlineData" => is_typed(content) && is_filled(&content["data"]),
            "fileData" => {
                is_typed(content) && content["fileUri"].as_str().is_some_and(|uri| uri.contains("://"))
            }
            _ => content.is_object(),
        };
        let is_signed_well = part.get("thoughtSignature").is_none_or(is_filled);
        (is_whole && is_signed_well).then_some(())?;
        if kind == "functionCall" {
            let id = match content.get("id") {
                None => None,
                Some(id) => Some(id.as_str()?.to_owned()),
            };
            calls.push(RawCall { id });
        }
    }
    Some(calls)
}
