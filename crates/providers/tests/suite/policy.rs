//! A model as a policy, with a transport that records requests.

use std::sync::{Arc, Mutex};

use backstitch_core::message::{Part, PolicyName};
use backstitch_core::ports::{BoxFuture, Deltas, Policy, PolicyError, PolicyRequest};
use backstitch_providers::{
    ApiKey, Body, Delta, HttpRequest, HttpResponse, ModelPolicy, ModelTarget, Provider, ProviderError,
    RequestOptions, Transport, TransportError,
};
use backstitch_testkit::block_on;
use serde_json::{Value, json};

use super::support::{MODEL, Talk, streamed_answer, target, whole_answer};

const KEY: &str = "sk-hunter2";

/// A response, and how it is split.
#[derive(Clone)]
struct Written {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    piece: usize,
    /// Whether the connection breaks after the body.
    breaks: bool,
    sent: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Written {
    fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Self { status, headers, body: body.into(), piece: 3, breaks: false, sent: Arc::default() }
    }
}

struct Pieces {
    rest: Vec<u8>,
    piece: usize,
    breaks: bool,
}

impl Body for Pieces {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async move {
            if self.rest.is_empty() {
                return if self.breaks { Err(TransportError::broken("reset")) } else { Ok(None) };
            }
            let later = self.rest.split_off(self.piece.min(self.rest.len()));
            Ok(Some(std::mem::replace(&mut self.rest, later)))
        })
    }
}

impl Transport for Written {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            self.sent.lock().unwrap().push(request);
            let (status, headers) = (self.status, self.headers.clone());
            if status == 0 {
                return Err(TransportError::broken("no route"));
            }
            let body = Pieces { rest: self.body.clone(), piece: self.piece, breaks: self.breaks };
            Ok(HttpResponse { status, headers, body: Box::new(body) })
        })
    }
}

fn policy(provider: Provider, transport: &Written) -> ModelPolicy {
    let name = PolicyName::new("model").unwrap();
    ModelPolicy::new(name, target(provider), Some(ApiKey::new(KEY)), Arc::new(transport.clone()))
}

fn decide(policy: &ModelPolicy) -> Result<backstitch_core::ports::PolicyAnswer, PolicyError> {
    ask(policy, Talk::new().system("Be brief.").user("How is the weather?").question())
}

fn ask(
    policy: &ModelPolicy,
    question: PolicyRequest,
) -> Result<backstitch_core::ports::PolicyAnswer, PolicyError> {
    let described = policy.describe(&question);
    block_on(policy.decide(question, described))
}

#[test]
fn answers_arrive_streamed_and_whole() {
    for provider in Provider::ALL {
        for piece in [1, 2, 7, 100_000] {
            let mut streamed =
                Written::new(200, "text/event-stream; charset=utf-8", streamed_answer(provider));
            streamed.piece = piece;
            let said = Arc::new(Mutex::new(String::new()));
            let heard = said.clone();
            let mut question = Talk::new().user("How is the weather?").question();
            question.deltas = Deltas::new(move |delta| {
                if let Delta::Text(text) = delta {
                    heard.lock().unwrap().push_str(&text);
                }
            });
            let answer = ask(&policy(provider, &streamed), question).unwrap();
            assert_eq!((answer.parts, answer.calls.len()), (vec![Part::text("Checking.")], 2), "{provider}");
            assert_eq!(*said.lock().unwrap(), "Checking.");
        }
        let whole = Written::new(200, "application/json", whole_answer(provider).to_string());
        let answer = decide(&policy(provider, &whole).with_options(RequestOptions::default())).unwrap();
        assert_eq!(answer.calls.len(), 2, "{provider}");
    }
}

#[test]
fn what_is_sent_is_what_was_described() {
    for provider in Provider::ALL {
        let transport = Written::new(200, "text/event-stream", streamed_answer(provider));
        let policy = policy(provider, &transport);
        let question = Talk::new().user("Hello").question();
        let info = policy.describe(&question);
        block_on(policy.decide(question, info.clone())).unwrap();
        let sent = transport.sent.lock().unwrap();
        let body = sent[0].body.text();
        assert_eq!(info.digest, Some(backstitch_core::digest::Digest::of(body.as_bytes())));
        assert_eq!((info.length, info.provider.as_str()), (body.len() as u64, provider.as_str()));
        assert!(sent[0].secret.is_some() && !sent[0].url.contains(KEY));
    }
}

#[test]
fn keys_stand_nowhere() {
    let body = json!({"error": {"message": format!("Incorrect API key: {KEY}"), "type": KEY, "code": KEY}});
    for provider in Provider::ALL {
        let transport = Written::new(401, "application/json", body.to_string());
        let policy = policy(provider, &transport);
        let error = decide(&policy).unwrap_err();
        let sent = transport.sent.lock().unwrap();
        let everything = format!("{error} {error:?} {policy:?} {:?} {:?}", sent[0], ApiKey::new(KEY));
        assert!(!everything.contains("hunter2"), "{everything}");
        assert_eq!((error.kind.as_str(), error.retryable), ("auth", false));
    }
}

#[test]
fn broken_connections_leave_nothing_and_may_be_tried_again() {
    for provider in Provider::ALL {
        let text = streamed_answer(provider);
        let mut cut = Written::new(200, "text/event-stream", &text.as_bytes()[..text.len() / 2]);
        for breaks in [false, true] {
            cut.breaks = breaks;
            let error = decide(&policy(provider, &cut)).unwrap_err();
            assert_eq!((error.kind.as_str(), error.retryable), ("cut_stream", true), "{provider}");
        }
        let unreached = Written::new(0, "", "");
        let error = decide(&policy(provider, &unreached)).unwrap_err();
        assert_eq!((error.kind.as_str(), error.retryable), ("network", true), "{provider}");
    }
}

#[test]
fn a_bare_error_in_a_stream_is_found() {
    let text = "data: {\"candidates\":[]}\n\n{\n \"error\": {\n \"code\": 503, \"status\": \"UNAVAILABLE\", \"message\": \"m\"}\n}\n";
    let error = decide(&policy(Provider::Gemini, &Written::new(200, "text/event-stream", text))).unwrap_err();
    assert_eq!(error.kind, "overloaded");
    let source = error.source.unwrap();
    assert_eq!(source.downcast_ref::<ProviderError>().unwrap().code.as_deref(), Some("UNAVAILABLE"));
}

#[test]
fn delays_reach_the_caller() {
    let mut limited = Written::new(429, "application/json", "{}");
    limited.headers.push(("retry-after".into(), "7".into()));
    let error = decide(&policy(Provider::Anthropic, &limited)).unwrap_err();
    assert_eq!((error.kind.as_str(), error.retryable), ("rate_limited", true));
    assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(7)));
}

#[test]
fn structured_answers_are_read() {
    let body = json!({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "{\"t\": \"x\"}"}}]});
    let transport = Written::new(200, "application/json", body.to_string());
    let options = RequestOptions {
        output_schema: Some(Arc::new(json!({"type": "object"}))),
        ..RequestOptions::default()
    };
    let answer = decide(&policy(Provider::OpenAiChat, &transport).with_options(options)).unwrap();
    assert_eq!(answer.output, Some(json!({"t": "x"})));
}

#[test]
fn compatible_servers_are_asked_at_their_address() {
    let transport = Written::new(200, "application/json", whole_answer(Provider::OpenAiChat).to_string());
    let target = ModelTarget::new(Provider::OpenAiChat, MODEL).at("http://127.0.0.1:9/v1");
    let name = PolicyName::new("model").unwrap();
    let options = RequestOptions { max_output_tokens: Some(5), ..RequestOptions::default() };
    let policy = ModelPolicy::new(name, target, None, Arc::new(transport.clone())).with_options(options);
    let answer = decide(&policy).unwrap();
    assert_eq!(answer.provider.unwrap().endpoint.as_deref(), Some("http://127.0.0.1:9/v1"));
    let sent = transport.sent.lock().unwrap();
    assert_eq!(sent[0].url, "http://127.0.0.1:9/v1/chat/completions");
    assert!(sent[0].secret.is_none());
    let body: Value = serde_json::from_str(&sent[0].body.text()).unwrap();
    assert_eq!((&body["max_tokens"], body.get("stream")), (&json!(5), None));
}
