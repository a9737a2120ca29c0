//! A server on loopback that speaks the wire formats of providers. Each request gets the next scripted
//! answer.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backstitch::providers::Provider;
use backstitch::providers::validate::validate;
use backstitch_testkit::request_form::check_form;
use serde_json::{Value, json};

/// The name of the model.
pub(crate) const MODEL: &str = "tailor-1";

/// All providers, with the environment variable of their key.
pub(crate) const PROVIDERS: [(&str, &str); 4] = [
    ("openai", "OPENAI_API_KEY"),
    ("openai-chat", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "GOOGLE_API_KEY"),
];

/// Time limit of a gate.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer of the server.
#[derive(Clone)]
pub(crate) enum Said {
    Text(&'static str),
    /// Text, and a call with a name and arguments.
    Call(&'static str, &'static str, Value),
    /// Text that is not complete, and a connection that stays open.
    Hangs(&'static str),
    /// Lines of text, each of them one piece. All but the first are sent at once when the gate is opened. Only for `openai-chat`.
    Lines(Arc<str>, Arc<AtomicBool>),
    /// An HTTP error with a status and a body.
    Refused(&'static str, String),
}

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A running server.
pub(crate) struct Model {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Questions about the model itself.
    looked_up: Arc<Mutex<Vec<Asked>>>,
}

impl Model {
    pub(crate) fn new(provider: &'static str, answers: impl Into<Vec<Said>>) -> Self {
        Self::with_limit(provider, answers, usize::MAX)
    }

    /// Answers the question for its list of models with this one.
    pub(crate) fn listing(provider: &'static str, answers: impl Into<Vec<Said>>, models: &Value) -> Self {
        Self::started(provider, answers.into(), usize::MAX, Some(models.to_string()))
    }

    /// Refuses requests with a body of more than so many bytes, as too long for its context.
    pub(crate) fn with_limit(provider: &'static str, answers: impl Into<Vec<Said>>, most: usize) -> Self {
        Self::started(provider, answers.into(), most, None)
    }

    fn started(provider: &'static str, answers: Vec<Said>, most: usize, models: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let looked_up: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (requests, questions) = (asked.clone(), looked_up.clone());
        let mut answers = VecDeque::from(answers);
        // The thread ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Some(request) = read_request(&mut stream) else { continue };
                if is_about_model(&request) {
                    let is_list = request.head.lines().next().is_some_and(|line| line.contains("/models "));
                    let models = models.clone().filter(|_| is_list);
                    let status = if models.is_some() { "200 OK" } else { "404 Not Found" };
                    questions.lock().unwrap().push(request);
                    let answer = Said::Refused(status, models.unwrap_or_default());
                    answer_with(&mut stream, provider, &answer);
                    continue;
                }
                let refused =
                    refusal(provider, &request).or_else(|| (request.body.len() > most).then(too_long));
                requests.lock().unwrap().push(request);
                let Some(answer) = refused.or_else(|| answers.pop_front()) else { continue };
                std::thread::spawn(move || answer_with(&mut stream, provider, &answer));
            }
        });
        Self { url, asked, looked_up }
    }

    /// Returns the questions about the model itself so far.
    pub(crate) fn looked_up(&self) -> Vec<Asked> {
        self.looked_up.lock().unwrap().clone()
    }

    /// Returns the requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// Returns the error of a strict server, if a request breaks a rule or does not have the published form.
fn refusal(provider: &str, request: &Asked) -> Option<Said> {
    let provider = Provider::named(provider)?;
    let body: Value = serde_json::from_str(&request.body).ok()?;
    let valid = validate(provider, &body).map_err(|error| error.to_string());
    let message = valid.and_then(|()| check_form(provider.as_str(), &body)).err()?;
    Some(Said::Refused(
        "400 Bad Request",
        json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string(),
    ))
}

/// Whether a request asks for the window or the price of a model.
fn is_about_model(request: &Asked) -> bool {
    request.head.starts_with("GET ") || request.head.starts_with("POST /api/show ")
}

fn too_long() -> Said {
    let message = "This model's maximum context length is exceeded.";
    let error =
        json!({"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"});
    Said::Refused("400 Bad Request", json!({ "error": error }).to_string())
}

fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some(Asked { head: head.to_owned(), body: body.to_owned() });
        }
    }
}

fn answer_with(stream: &mut TcpStream, provider: &str, answer: &Said) {
    let (events, hangs) = match answer {
        Said::Refused(status, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
            let text = format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
            let _ = stream.write_all(text.as_bytes());
            return;
        }
        Said::Text(text) => (events(provider, text, None), false),
        Said::Call(text, name, arguments) => (events(provider, text, Some((name, arguments))), false),
        Said::Hangs(text) => (events(provider, text, None), true),
        Said::Lines(text, _) => (line_events(text), false),
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    // An answer that hangs does not send the last two events, which end it.
    let sent = if hangs { events.len() - 2 } else { events.len() };
    for (index, event) in events[..sent].iter().enumerate() {
        if let (1, Said::Lines(_, gate)) = (index, answer) {
            let started = Instant::now();
            while !gate.load(Ordering::SeqCst) && started.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let kind = event["type"].as_str().map(|kind| format!("event: {kind}\n")).unwrap_or_default();
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        if stream.write_all(format!("{kind}data: {data}\n\n").as_bytes()).is_err() {
            return;
        }
    }
    let _ = stream.flush();
    if hangs {
        // Until the client closes the connection.
        while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
    }
}

/// Builds the events of an answer with one piece for each line.
fn line_events(text: &str) -> Vec<Value> {
    let event = |delta: Value, reason: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let pieces = text.split_inclusive('\n');
    let mut events: Vec<Value> =
        pieces.map(|line| event(json!({"role": "assistant", "content": line}), Value::Null)).collect();
    events.push(event(json!({}), json!("stop")));
    events.push(json!("[DONE]"));
    events
}

/// Builds the events of an answer. The last two end it.
fn events(provider: &str, text: &str, call: Option<(&&str, &Value)>) -> Vec<Value> {
    let arguments = call.map(|(_, arguments)| arguments.to_string()).unwrap_or_default();
    match provider {
        "openai-chat" => {
            let delta = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
            let mut events = vec![delta(json!({"role": "assistant", "content": text}))];
            events.extend(call.map(|(name, _)| {
                let function = json!({"name": name, "arguments": arguments});
                delta(json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}))
            }));
            let reason = if call.is_some() { "tool_calls" } else { "stop" };
            events.push(json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
            events.push(json!("[DONE]"));
            events
        }
        "openai" => {
            let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]});
            let mut items = vec![message];
            items.extend(call.map(|(name, _)| {
                json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
                    "arguments": arguments, "status": "completed"})
            }));
            let mut events = vec![
                json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": text}),
            ];
            events.extend(items.iter().enumerate().map(|(index, item)| {
                json!({"type": "response.output_item.done", "output_index": index, "item": item})
            }));
            let usage = json!({"input_tokens": 20, "output_tokens": 5, "total_tokens": 25});
            events.push(json!({"type": "response.completed",
                "response": {"id": "resp_1", "status": "completed", "output": items, "usage": usage}}));
            events
        }
        "anthropic" => {
            let mut events = vec![
                json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [],
                    "usage": {"input_tokens": 20, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
                json!({"type": "content_block_stop", "index": 0}),
            ];
            if let Some((name, _)) = call {
                events.push(json!({"type": "content_block_start", "index": 1,
                    "content_block": {"type": "tool_use", "id": "call_1", "name": name, "input": {}}}));
                events.push(json!({"type": "content_block_delta", "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": arguments}}));
                events.push(json!({"type": "content_block_stop", "index": 1}));
            }
            let reason = if call.is_some() { "tool_use" } else { "end_turn" };
            events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}));
            events.push(json!({"type": "message_stop"}));
            events
        }
        _ => {
            let part = |part: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
            let mut events = vec![part(json!({"text": text}))];
            events.extend(call.map(|(name, arguments)| {
                part(json!({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2ln"}))
            }));
            events.push(part(json!({"text": ""})));
            events.push(json!({"candidates": [{"index": 0, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}}));
            events
        }
    }
}
