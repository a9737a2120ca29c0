//! What a program reports, the fields of records that only observed sessions have, and the records of their requests.

use std::collections::HashSet;

use backstitch_core::budget::Amounts;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    BudgetCharged, CallStarted, EvaluationStarted, Finish, RequestFinished, RequestStarted,
};
use backstitch_core::message::Arguments;
use backstitch_core::view::{Call, Evaluation, Request};
use serde_json::{Map, Value, json};

use super::ObservedSession;
use crate::error::Result;

/// Name of the additional field.
pub(super) const FIELD: &str = "outside";

/// Name of the additional field of requests.
const CONVERSATION: &str = "conversation";

/// Returns the id of a call that a program knows by another id. `count` says how often the program has used that id.
pub(super) fn observed_call_id(session: SessionId, foreign: &str, count: usize) -> CallId {
    match count {
        1 => CallId::of_foreign(session, foreign),
        _ => CallId::of_foreign(session, &format!("{foreign}#{count}")),
    }
}

/// Returns the id by which a program knows the prompt of an evaluation.
pub fn observed_prompt_id(evaluation: &Evaluation) -> Option<&str> {
    observed_origin(evaluation)?.get("prompt")?.as_str()
}

/// Returns where a program keeps the conversation of an evaluation, in its own words.
pub fn observed_origin(evaluation: &Evaluation) -> Option<&Map<String, Value>> {
    evaluation.started_with()?.extra.get(FIELD)?.as_object()
}

/// Name in the origin of an evaluation: the session of the guarded command in which the program runs. Both record the same changes.
pub const OBSERVED_INSIDE: &str = "inside";

/// Returns the session of the guarded command in which an evaluation of a program runs.
pub(crate) fn session_around(started: &EvaluationStarted) -> Option<SessionId> {
    started.extra.get(FIELD)?.get(OBSERVED_INSIDE)?.as_str()?.parse().ok()
}

/// Returns the conversation that a request of a program belongs to, in its own words.
pub fn observed_conversation(request: &Request) -> Option<&Map<String, Value>> {
    request.finished.as_ref()?.record.extra.get(CONVERSATION)?.as_object()
}

pub(super) fn of_prompt(prompt: Option<&str>, origin: &Map<String, Value>) -> Extra {
    let mut fields = origin.clone();
    fields.extend(prompt.map(|prompt| ("prompt".to_owned(), Value::String(prompt.to_owned()))));
    extra(Value::Object(fields))
}

pub(super) fn of_call(turn: u64, agent: Option<&str>) -> Extra {
    match agent {
        Some(agent) => extra(json!({"turn": turn, "agent": agent})),
        None => extra(json!({"turn": turn})),
    }
}

fn extra(value: Value) -> Extra {
    Extra::try_from(Map::from_iter([(FIELD.to_owned(), value)])).unwrap_or_default()
}

/// Returns whether another program runs a call. It is never repeated here, so nobody has to decide about it.
pub fn is_observed(started: &CallStarted) -> bool {
    started.extra.get(FIELD).is_some()
}

fn field<'a>(call: &'a Call, name: &str) -> Option<&'a Value> {
    call.intent.as_ref()?.record.extra.get(FIELD)?.get(name)
}

/// Returns the turn of a call.
pub(super) fn turn_of(call: &Call) -> Option<u64> {
    field(call, "turn")?.as_u64()
}

/// Returns the sub-agent of a program that made a call.
pub fn observed_agent(call: &Call) -> Option<&str> {
    field(call, "agent")?.as_str()
}

impl ObservedSession {
    /// Records requests of the program that are not recorded yet. Returns how many there were.
    pub async fn requests(&self, requests: Vec<ObservedRequest>) -> Result<usize> {
        let state = self.live.state().await;
        let evaluations = state.view.evaluations().flat_map(|evaluation| evaluation.requests.iter());
        let known: HashSet<String> = evaluations
            .filter_map(|request| {
                request.finished.as_ref()?.record.extra.get(FIELD)?.as_str().map(str::to_owned)
            })
            .collect();
        drop(state);
        let mut new: Vec<ObservedRequest> = Vec::new();
        for request in requests {
            if !known.contains(&request.id) && new.iter().all(|other| other.id != request.id) {
                new.push(request);
            }
        }
        if new.is_empty() {
            return Ok(0);
        }
        // A program may write down a request only after it has answered.
        let latest = self.live.view().await.latest_evaluation().map(|latest| latest.evaluation_id);
        let evaluation = match latest {
            Some(latest) => latest,
            None => self.open_evaluation().await?,
        };
        let count = new.len();
        self.hold(|commit| {
            let known = commit.view().evaluation(evaluation).map_or(0, |known| known.requests.len() as u64);
            for (turn, request) in (known + 1..).zip(new) {
                let ObservedRequest { id, provider, model, usage } = request;
                let usage = Amounts { turns: 1, ..usage };
                commit.push(RequestStarted {
                    evaluation_id: evaluation,
                    turn,
                    provider,
                    model,
                    digest: None,
                    length: 0,
                    renderer: None,
                    reservation: None,
                    extra: Extra::default(),
                });
                let mut mark = Map::from_iter([(FIELD.to_owned(), Value::String(id))]);
                if !self.conversation.is_empty() {
                    mark.insert(CONVERSATION.to_owned(), Value::Object(self.conversation.clone()));
                }
                commit.push(RequestFinished {
                    usage,
                    extra: Extra::try_from(mark).unwrap_or_default(),
                    ..RequestFinished::new(evaluation, turn, Finish::Stop)
                });
                commit.push(BudgetCharged::new(None, usage));
            }
            Ok(())
        })
        .await?;
        Ok(count)
    }
}

/// The most characters of a tool's name.
const LONGEST_NAME: usize = 200;

/// A prompt of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedPrompt {
    /// Its text.
    pub text: String,
    /// The id by which the program knows it.
    pub id: Option<String>,
}

/// A call of a tool of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCall {
    /// The id by which the program knows it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments; usually an object.
    pub input: Value,
    /// The sub-agent that makes the call; none for the main conversation.
    pub agent: Option<String>,
}

impl ObservedCall {
    /// Creates a call of the main conversation.
    pub fn new(id: impl Into<String>, name: &str, input: Value) -> Self {
        let name = name.chars().filter(|one| !one.is_control()).take(LONGEST_NAME).collect();
        Self { id: id.into(), name, input, agent: None }
    }

    pub(super) fn arguments(&self) -> Arguments {
        match &self.input {
            Value::Object(object) => Arguments::from_object(object.clone()),
            other => Arguments::from_text(other.to_string()),
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedResult {
    /// The value, or the message of the failure.
    pub outcome: Result<Value, String>,
    /// Duration of the call in microseconds, if the program reports it.
    pub elapsed_micros: Option<u64>,
}

/// A request of the program to its model.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedRequest {
    /// The id by which the program knows the answer. A request is recorded once.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Tokens and money.
    pub usage: Amounts,
}
