//! Conversations, tools and answers for tests.

pub(crate) mod journals;
#[cfg(feature = "http")]
pub(crate) mod server;
#[cfg(feature = "http")]
pub(crate) mod wire;

use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::{EvaluationId, IdStream};
use backstitch_core::journal::{InnerMessage, ProviderSidecar};
use backstitch_core::machine::conversation;
use backstitch_core::message::{
    Message, MessageBuilder, OptionResultBuilder, Part, PolicyName, Retry, RoleHint,
};
use backstitch_core::ports::{BoxFuture, PolicyAnswer, PolicyRequest};
use backstitch_core::session::Session;
use backstitch_core::time::Clock;
use backstitch_core::tool::{ToolName, ToolSpec};
use backstitch_core::view::Transcript;
use backstitch_providers::validate::validate;
use backstitch_providers::{
    HttpRequest, HttpResponse, ModelTarget, Provider, RenderedRequest, RequestOptions, Thread, Transport,
    TransportError, render,
};
use backstitch_testkit::request_form::check_form;
use backstitch_testkit::sample;
use serde_json::{Value, json};

pub(crate) const MODEL: &str = "model-1";

/// A transport that reaches no server.
pub(crate) struct Nobody;

impl Transport for Nobody {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("there is no server")) })
    }
}

/// A conversation that is built message by message.
pub(crate) struct Talk {
    pub(crate) ids: IdStream,
    pub(crate) evaluation: EvaluationId,
    /// The earlier evaluations of the conversation.
    followed: Vec<EvaluationId>,
    turn: u64,
    messages: Vec<InnerMessage>,
}

impl Talk {
    pub(crate) fn new() -> Self {
        let ids = sample::ids(5);
        Self { evaluation: ids.next(), ids, followed: Vec::new(), turn: 0, messages: Vec::new() }
    }

    /// Starts an evaluation that follows the previous one.
    pub(crate) fn follow_up(mut self) -> Self {
        self.followed.push(std::mem::replace(&mut self.evaluation, self.ids.next()));
        self.turn = 0;
        self
    }

    fn push(&mut self, message: Message, provider: Option<ProviderSidecar>) {
        self.messages.push(InnerMessage {
            message_id: self.ids.next(),
            evaluation_id: self.evaluation,
            sequence: self.of_evaluation().count() as u64,
            turn: self.turn,
            prompt_ns: "tests".into(),
            prompt_key: "talk".into(),
            created_at: sample::clock().now(),
            message,
            role: None,
            provider: provider.map(Box::new),
            extra: Extra::default(),
        });
    }

    fn of_evaluation(&self) -> impl Iterator<Item = &InnerMessage> {
        self.messages.iter().filter(|message| message.evaluation_id == self.evaluation)
    }

    pub(crate) fn say(mut self, hint: RoleHint, parts: Vec<Part>) -> Self {
        let mut builder = MessageBuilder::continue_step(self.turn, &self.ids);
        builder.policy(PolicyName::new("ada").unwrap()).role_hint(hint);
        for part in parts {
            builder.add_part(part);
        }
        for message in builder.into_messages().unwrap() {
            self.push(message, None);
        }
        self
    }

    pub(crate) fn system(self, text: &str) -> Self {
        self.say(RoleHint::System, vec![Part::text(text)])
    }

    pub(crate) fn user(self, text: &str) -> Self {
        self.say(RoleHint::User, vec![Part::text(text)])
    }

    /// Adds an answer; its calls stay open.
    pub(crate) fn answer(mut self, mut answer: PolicyAnswer) -> Self {
        self.turn += 1;
        let mut provider = answer.provider.take();
        let policy = PolicyName::new("model").unwrap();
        for message in answer.into_messages(&policy, self.turn, &self.ids).unwrap() {
            self.push(message, provider.take());
        }
        self
    }

    fn open(&self) -> Vec<Message> {
        let answered: Vec<_> = self.messages.iter().filter_map(InnerMessage::tool_call_id).collect();
        let calls = self.messages.iter().filter(|message| {
            message.message.option_call().is_some_and(|call| !answered.contains(&call.invocation_id))
        });
        calls.map(|message| message.message.clone()).collect()
    }

    /// Adds the result of the open call at this index.
    pub(crate) fn result(mut self, place: usize, result: Result<Value, &str>) -> Self {
        let builder = OptionResultBuilder::response_to(&self.open()[place]).unwrap();
        let message = match result {
            Ok(value) => builder.success(value),
            Err(text) => builder.error("tool_error", text, Retry::Refused),
        };
        self.push(message, None);
        self
    }

    pub(crate) fn result_with(mut self, value: Value, parts: Vec<Part>) -> Self {
        let mut builder = OptionResultBuilder::response_to(&self.open()[0]).unwrap();
        builder.with_parts(parts);
        let message = builder.success(value);
        self.push(message, None);
        self
    }

    pub(crate) fn transcript(&self) -> Transcript {
        Transcript::new(self.messages.iter().cloned().collect())
    }

    pub(crate) fn messages(&self) -> Vec<Arc<InnerMessage>> {
        conversation(&self.transcript(), &self.followed, self.evaluation)
    }

    pub(crate) fn question(&self) -> PolicyRequest {
        PolicyRequest {
            output: None,
            shown: self.messages().into_iter().collect(),
            renderer: None,
            media: Default::default(),
            refusals: Default::default(),
            deltas: Default::default(),
            session_id: self.ids.next(),
            evaluation_id: self.evaluation,
            turn: self.turn + 1,
            transcript: self.transcript(),
            options: tools().into_iter().map(Arc::new).collect(),
            session: Session::new(self.ids.next(), sample::clock()),
            memo: Default::default(),
        }
    }

    /// Renders the request for a provider. Panics if its validator refuses it.
    pub(crate) fn render(&self, provider: Provider, options: &RequestOptions) -> RenderedRequest {
        self.render_for(&ModelTarget::new(provider, MODEL), options)
    }

    pub(crate) fn render_for(&self, target: &ModelTarget, options: &RequestOptions) -> RenderedRequest {
        let messages = self.messages();
        let rendered = render(&Thread::of(&messages), &tools(), target, options).unwrap();
        let valid = validate(target.provider, &rendered.body).map_err(|error| error.to_string());
        if let Err(error) = valid.and_then(|()| check_form(target.provider.as_str(), &rendered.body)) {
            panic!("{error}\n{:#}", rendered.body);
        }
        rendered
    }
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let mut weather = ToolSpec::new(ToolName::new("get_weather").unwrap(), "Weather of a city");
    weather.parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    vec![weather, ToolSpec::new(ToolName::new("look").unwrap(), "Looks around")]
}

pub(crate) fn target(provider: Provider) -> ModelTarget {
    ModelTarget::new(provider, MODEL)
}

/// An answer of a provider with thoughts, text and two calls, without streaming.
pub(crate) fn whole_answer(provider: Provider) -> Value {
    match provider {
        Provider::OpenAiChat => {
            json!({"id":"chatcmpl-1","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"Checking.","refusal":null,"annotations":[],"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]}}],"usage":{"prompt_tokens":120,"completion_tokens":60,"total_tokens":180}})
        }
        Provider::OpenAiResponses => {
            json!({"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Need both cities."}],"encrypted_content":"gAAAAB=="},{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Checking.","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"call_a","name":"get_weather","arguments":"{\"city\":\"Oslo\"}","status":"completed"},{"type":"function_call","id":"fc_2","call_id":"call_b","name":"get_weather","arguments":"{\"city\":\"Rome\"}","status":"completed"}],"usage":{"input_tokens":120,"output_tokens":60,"total_tokens":180}})
        }
        Provider::Anthropic => {
            json!({"id":"msg_01","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Need both cities.","signature":"EqQB=="},{"type":"redacted_thinking","data":"EmwK=="},{"type":"text","text":"Checking."},{"type":"tool_use","id":"call_a","name":"get_weather","input":{"city":"Oslo"}},{"type":"tool_use","id":"call_b","name":"get_weather","input":{"city":"Rome"}}],"stop_reason":"tool_use","usage":{"input_tokens":40,"cache_creation_input_tokens":16,"cache_read_input_tokens":64,"output_tokens":60}})
        }
        Provider::Gemini => {
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Need both cities.","thought":true},{"text":"Checking."},{"functionCall":{"id":"call_a","name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"RXFR"},{"functionCall":{"id":"call_b","name":"get_weather","args":{"city":"Rome"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":120,"candidatesTokenCount":40,"thoughtsTokenCount":20,"totalTokenCount":180}})
        }
    }
}

/// The same answer, streamed.
pub(crate) fn streamed_answer(provider: Provider) -> String {
    let events: Vec<Value> = match provider {
        Provider::OpenAiChat => vec![
            json!({"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}),
            json!({"id":"c","choices":[{"index":0,"delta":{"content":"Check"},"finish_reason":null}],"obfuscation":"x9"}),
            json!({"id":"c","choices":[{"index":0,"delta":{"content":"ing."},"finish_reason":null}]}),
            json!({"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}]},"finish_reason":null}]}),
            json!({"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}},{"index":1,"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]}}]}),
            json!({"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}}]}),
            json!({"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}),
            json!({"id":"c","choices":[],"usage":{"prompt_tokens":120,"completion_tokens":60,"total_tokens":180}}),
            json!("[DONE]"),
        ],
        Provider::OpenAiResponses => {
            let whole = whole_answer(provider);
            let mut events = vec![
                json!({"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}),
                json!({"type":"keepalive","sequence_number":4}),
                json!({"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"delta":"Check"}),
                json!({"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"delta":"ing."}),
            ];
            for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
                events.push(json!({"type":"response.output_item.done","output_index":index,"item":item}));
            }
            let usage = &whole["usage"];
            events.push(json!({"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":usage}}));
            events
        }
        Provider::Anthropic => vec![
            json!({"type":"message_start","message":{"id":"msg_01","role":"assistant","content":[],"usage":{"input_tokens":40,"cache_read_input_tokens":64,"cache_creation_input_tokens":16,"output_tokens":1}}}),
            json!({"type":"ping"}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Need "}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"both cities."}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB=="}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwK=="}}),
            json!({"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}),
            json!({"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Check"}}),
            json!({"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"ing."}}),
            json!({"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"call_a","name":"get_weather","input":{}}}),
            json!({"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}),
            json!({"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"Oslo\"}"}}),
            json!({"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"call_b","name":"get_weather","input":{}}}),
            json!({"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"Rome\"}"}}),
            json!({"type":"news","from":"a later version"}),
            json!({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":60}}),
            json!({"type":"message_stop"}),
        ],
        Provider::Gemini => vec![
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Need ","thought":true}]}}],"usageMetadata":{"promptTokenCount":120}}),
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"both cities.","thought":true}]}}]}),
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Check"}]}}]}),
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"ing."}]}}]}),
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"functionCall":{"id":"call_a","name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"RXFR"}]}}]}),
            json!({"candidates":[{"index":0,"content":{"role":"model","parts":[{"functionCall":{"id":"call_b","name":"get_weather","args":{"city":"Rome"}}}]}}]}),
            json!({"candidates":[{"index":0,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":120,"candidatesTokenCount":40,"thoughtsTokenCount":20,"totalTokenCount":180}}),
        ],
    };
    wire::stream_of(&events)
}
