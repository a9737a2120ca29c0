//! A policy that reads its answers from a list.
//!
//! Which reply is next follows from how many answers the session shows, and not from a counter: a process that resumes after a
//! crash gives the same answers as the one before it would have, and a session that went back gives them again.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Amounts;
use backstitch_core::journal::Role;
use backstitch_core::message::{Arguments, Part, PolicyName};
use backstitch_core::ports::{Answer, AnsweredCall, BoxFuture, Policy, PolicyError, Question, RequestInfo};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Replies, in the order in which they are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The replies.
    #[serde(default, alias = "reply")]
    pub replies: Vec<Reply>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// What is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What is called, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "call")]
    pub calls: Vec<ScriptedCall>,
    /// How long the answer takes, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// What the answer costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// The structured answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// A call in a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The option.
    pub name: String,
    /// What it is called with.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// A policy that reads its answers from a list.
#[derive(Debug, Clone)]
pub struct ScriptedPolicy {
    name: PolicyName,
    script: Arc<Script>,
}

impl ScriptedPolicy {
    /// A policy that gives these replies.
    pub fn new(name: PolicyName, script: Script) -> Self {
        Self { name, script: Arc::new(script) }
    }
}

impl Policy for ScriptedPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &Question) -> RequestInfo {
        RequestInfo {
            provider: "scripted".to_owned(),
            model: self.name.to_string(),
            ..RequestInfo::default()
        }
    }

    fn decide(&self, question: Question, _: RequestInfo) -> BoxFuture<'_, Result<Answer, PolicyError>> {
        Box::pin(async move {
            let next = answers_so_far(&question);
            let Some(reply) = self.script.replies.get(next) else {
                let count = self.script.replies.len();
                return Err(PolicyError {
                    policy: self.name.clone(),
                    kind: "script_ended".to_owned(),
                    message: format!("the script has {count} replies, and all of them were given"),
                    retryable: false,
                    retry_after: None,
                    source: None,
                });
            };
            if let Some(millis) = reply.delay_ms {
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
            let calls = reply.calls.iter().map(|call| {
                AnsweredCall::new(call.name.clone(), Arguments::from_object(call.arguments.clone()))
            });
            Ok(Answer {
                parts: reply.text.iter().map(|text| Part::text(text.as_str())).collect(),
                calls: calls.collect(),
                provider: None,
                usage: reply.usage.unwrap_or_default(),
                output: reply.output.clone(),
            })
        })
    }
}

/// How many answers the session shows, in all of its evaluations.
fn answers_so_far(question: &Question) -> usize {
    let mut answers = 0;
    let mut last = None;
    for message in question.transcript.all().iter().filter(|message| message.role() == Role::Assistant) {
        let place = (message.evaluation_id, message.turn);
        if last.replace(place) != Some(place) {
            answers += 1;
        }
    }
    answers
}
