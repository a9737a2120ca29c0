//! Agents that answer with programs.

use std::sync::Arc;

use backstitch_core::ports::Policy;
use backstitch_repl::{AgentError, AnswerCheck, LispAgent, LispMachinery, LispOptions};
use serde_json::json;

use crate::agent::Agent;
use crate::contract::problems;
use crate::tools::Tools;

impl Agent {
    /// Creates an agent that answers with programs, which call these tools. It is driven, resumed and rewound
    /// like any other. Each call of a program runs through the tool runner, and is a transaction of its own.
    pub fn lisp(
        name: impl Into<String>,
        policy: impl Policy + 'static,
        lisp: LispAgent,
        tools: Tools,
    ) -> Result<Self, AgentError> {
        let mut lisp = lisp.with_tools(tools.iter().map(|tool| tool.spec.clone()));
        if let Some(schema) = lisp.signature.as_ref().and_then(|signature| signature.schema.as_ref()) {
            let check = answer_check(schema)?;
            lisp = lisp.with_answer_check(check);
        }
        // Options before they are adjusted to this agent: a sub-agent that inherits them may have more turns,
        // and so something to compress.
        let options = Arc::new(lisp.options.clone());
        let machinery = LispMachinery::new(lisp)?;
        let lisp = machinery.agent();
        let definition = json!({
            "mode": "lisp",
            "max_turns": lisp.options.max_turns,
            "turn_budget": lisp.options.turn_budget,
            "signature": lisp.signature.as_ref().map(ToString::to_string),
            "compression": lisp.options.compression.configuration(),
            "data": lisp.data.keys().collect::<Vec<_>>(),
        });
        let system = lisp.system();
        let mut agent = Self::new(name)
            .policy(policy)
            .tools(tools)
            .instructions(system)
            .definition(definition)
            .max_depth(options.max_depth)
            .machinery(Arc::new(machinery));
        agent.lisp = Some(options);
        Ok(agent)
    }

    /// Returns the limits and the compression of an agent that answers with programs, for its sub-agents to
    /// inherit ([`LispAgent::with_options`]). `None` for other agents.
    pub fn lisp_options(&self) -> Option<&LispOptions> {
        self.lisp.as_deref()
    }
}

/// Compiles the schema of an answer.
fn answer_check(schema: &serde_json::Value) -> Result<AnswerCheck, AgentError> {
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| AgentError::Signature { reason: error.to_string() })?;
    Ok(AnswerCheck::new(move |answer| problems(&validator, answer, "the answer")))
}
