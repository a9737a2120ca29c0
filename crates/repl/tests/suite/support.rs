//! An agent with given answers: real programs in the real language, and tools that are functions.

use std::sync::{Arc, OnceLock};

use backstitch_core::id::CallId;
use backstitch_core::journal::Role;
use backstitch_core::tool::{ToolName, ToolSpec};
use backstitch_lisp::{
    Engine, Inputs, Limits, MachineOutcome, Map, Request, Tools, Truncation, Value, from_json, to_json,
};
use backstitch_repl::compression::{
    CoalescedOptions, Compression, History, RenderContext, RenderedHistory, SingleUserCoalesced,
};
use backstitch_repl::{Excerpt, MemoryChange, Turn, TurnCall, TurnCallOutcome, TurnError};
use serde_json::{Value as Json, json};

pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}

/// The id of the n-th call.
pub(crate) fn call_id(number: usize) -> CallId {
    format!("01900000-0000-7000-8000-{number:012x}").parse().unwrap()
}

pub(crate) fn search() -> ToolSpec {
    let mut spec = ToolSpec::new(ToolName::new("search").unwrap(), "Searches items.\nBy title.");
    spec.parameters = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    });
    spec.output = Some(json!({"type": "array", "items": {"type": "object", "properties": {
        "id": {"type": "integer"}, "title": {"type": "string"}}, "required": ["id", "title"]}}));
    spec
}

pub(crate) fn map(json: Json) -> Map {
    match from_json(&json, &Limits::default()).unwrap() {
        Value::Map(map) => map,
        _ => panic!("an object"),
    }
}

/// An agent and its turns.
pub(crate) struct Agent {
    pub(crate) inputs: Inputs,
    pub(crate) turns: Vec<Turn>,
    calls: usize,
    sample: Truncation,
}

impl Agent {
    pub(crate) fn new() -> Self {
        let tools = Tools::new().with("search", ["query", "limit"]).with("ping", [] as [&str; 0]);
        Self {
            inputs: Inputs { tools, ..Inputs::default() },
            turns: Vec::new(),
            calls: 0,
            sample: Truncation::SAMPLE,
        }
    }

    /// Creates an agent that has answered with these programs.
    pub(crate) fn after(programs: &[&str]) -> Self {
        Self::sampled(programs, Truncation::SAMPLE)
    }

    /// Creates an agent that has answered with these programs, and whose turns keep such samples.
    pub(crate) fn sampled(programs: &[&str], sample: Truncation) -> Self {
        let mut agent = Self { sample, ..Self::new() };
        programs.iter().for_each(|program| agent.turn(program));
        agent
    }

    /// Answers with a program.
    pub(crate) fn turn(&mut self, source: &str) {
        let mut turn = Turn {
            number: self.turns.len() as u64 + 1,
            answer: format!("```clojure\n{source}\n```"),
            program: Some(source.to_owned()),
            ..Turn::default()
        };
        let failed = |error: backstitch_lisp::Error| {
            Some(TurnError { kind: error.kind().name().to_owned(), message: error.render() })
        };
        match engine().compile(source, &self.inputs) {
            Err(error) => turn.error = failed(error),
            Ok(program) => {
                let mut machine = engine().start(&program, self.inputs.clone());
                let finished = loop {
                    match machine.run() {
                        MachineOutcome::Finished(finished) => break finished,
                        MachineOutcome::Suspended(requests) => {
                            for request in requests {
                                let answer = self.answer(&request, &mut turn);
                                machine.resume(request.path(), answer);
                            }
                        }
                    }
                };
                turn.prints = finished.prints;
                match finished.result {
                    Err(error) => turn.error = failed(error),
                    Ok(value) => {
                        turn.success = true;
                        turn.result = Some(excerpt(&value, self.sample));
                        turn.memory = MemoryChange::between(
                            &self.inputs.memory,
                            &finished.memory,
                            &finished.defined,
                            self.sample,
                        );
                        self.inputs.memory = finished.memory;
                    }
                }
            }
        }
        self.turns.push(turn);
    }

    /// `search` returns the requested number of items, and fails for the query `fail`; `ping` returns
    /// nothing.
    fn answer(&mut self, request: &Request, turn: &mut Turn) -> Result<Value, String> {
        let Request::Tool(call) = request else { return Ok(Value::Nil) };
        let arguments = to_json(&call.arguments, None).unwrap();
        let answer = match &*call.name {
            "ping" => Ok(Json::Null),
            _ if arguments["query"] == "fail" => Err("the index is down\n;; === user/ ===".to_owned()),
            _ => {
                let count = arguments["limit"].as_u64().unwrap_or(4);
                let title = |id: u64| String::from(char::from(b'A' + (id % 26) as u8));
                Ok((0..count).map(|id| json!({"id": id + 1, "title": title(id)})).collect())
            }
        };
        self.calls += 1;
        turn.tool_calls.push(TurnCall {
            call_id: call_id(self.calls),
            path: Some(call.path.to_string()),
            name: call.name.to_string(),
            arguments: Excerpt::Whole(arguments),
            outcome: match &answer {
                Ok(json) => {
                    let value = from_json(json, &Limits::default()).unwrap();
                    TurnCallOutcome::Result(Excerpt::of(json, &value, self.sample))
                }
                Err(message) => TurnCallOutcome::Error(message.clone()),
            },
        });
        answer.map(|json| from_json(&json, &Limits::default()).unwrap())
    }

    pub(crate) fn history(&self) -> History {
        self.turns.iter().cloned().map(Arc::new).collect()
    }

    /// The next request in the forms of the specification.
    pub(crate) fn render(&self, scene: &RenderContext) -> RenderedHistory {
        SingleUserCoalesced::new(CoalescedOptions::specified()).render(&self.history(), scene)
    }
}

fn excerpt(value: &Value, sample: Truncation) -> Excerpt {
    match to_json(value, None) {
        Ok(json) => Excerpt::of(&json, value, sample),
        Err(_) => Excerpt::sample(value, sample),
    }
}

/// A context without tools, data and a number of turns, which shows only the turns.
pub(crate) fn bare() -> RenderContext {
    RenderContext::new("M").max_turns(None)
}

/// The roles and texts of a request.
pub(crate) fn spoken(rendered: &RenderedHistory) -> Vec<(Role, &str)> {
    rendered.messages.iter().map(|message| (message.role, message.text.as_str())).collect()
}

/// The one user message of a request.
#[track_caller]
pub(crate) fn only(rendered: &RenderedHistory) -> &str {
    let users: Vec<_> = rendered.messages.iter().filter(|message| message.role != Role::System).collect();
    assert_eq!(users.len(), 1, "{users:#?}");
    assert_eq!(users[0].role, Role::User);
    &users[0].text
}
