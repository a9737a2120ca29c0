//! Agents whose work another program does.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::answering::AnswerMode;
use super::definition::{AgentDefinition, Approve, PriceDefinition, RequestDefinition};
use super::error::{Problem, near};
use crate::host::AgentEngine;
use crate::mode::AgentMode;
use crate::ports::SandboxSockets;
use crate::{Agent, Tools};
use backstitch_runtime::OnTruncation;

/// The engines that agent files may name.
const ENGINES: [&str; 2] = ["claude-code", "codex"];

/// The provider of the models of Codex, in records and prices.
const CODEX_PROVIDER: &str = "openai";

/// The program that does the work of an agent: its name, or a table with `name` and `model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDefinition {
    /// The name: `claude-code` or `codex`.
    pub name: String,
    /// The model, in the program's own words. `None` leaves the choice to the program.
    pub model: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineTable {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of an engine, or a table with `name` and `model`")]
enum EngineForm {
    Name(String),
    Table(EngineTable),
}

impl<'de> Deserialize<'de> for EngineDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match EngineForm::deserialize(deserializer)? {
            EngineForm::Name(name) => Self { name, model: None },
            EngineForm::Table(EngineTable { name, model }) => Self { name, model },
        })
    }
}

impl Serialize for EngineDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.model {
            None => serializer.serialize_str(&self.name),
            model => EngineTable { name: self.name.clone(), model: model.clone() }.serialize(serializer),
        }
    }
}

impl EngineDefinition {
    /// Returns why the money that the program spends cannot be counted. Claude Code counts it itself. Codex does not, and
    /// may use any server, so that only the file can name the price of its model.
    pub(super) fn unknown_price(&self, prices: &BTreeMap<String, PriceDefinition>) -> Option<String> {
        if self.name != "codex" {
            return None;
        }
        let Some(model) = &self.model else {
            let message = "the price of its model is unknown: set `engine = { name = …, model = … }`, and the price in `prices`";
            return Some(message.to_owned());
        };
        let named = format!("{CODEX_PROVIDER}:{model}");
        let is_known = prices.contains_key(&named) || prices.contains_key(model);
        (!is_known).then(|| format!("the price of {named} is unknown: set it in `prices`"))
    }
}

impl std::fmt::Display for EngineDefinition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.model {
            Some(model) => write!(formatter, "{}:{model}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

impl AgentDefinition {
    /// Refuses settings that cannot apply to an agent whose work another program does.
    pub(super) fn check_engine(&self) -> Result<(), Problem> {
        let Some(engine) = &self.engine else { return Ok(()) };
        if !ENGINES.contains(&engine.name.as_str()) {
            let known = ENGINES.join(", ");
            let message = format!(
                "there is no engine `{}`; there are {known}{}",
                engine.name,
                near(&engine.name, &ENGINES)
            );
            return Err(Problem::new(["engine"], message));
        }
        if engine.model.as_ref().is_some_and(|model| model.trim().is_empty() || model.starts_with('-')) {
            return Err(Problem::new(["engine", "model"], "this is not a name of a model"));
        }
        let own = "the engine has its own";
        let own_model = "the engine has its own model: set `engine = { name = …, model = … }`";
        let refused = [
            ("model", self.model.is_some(), own_model),
            ("base_url", self.base_url.is_some(), own),
            ("script", self.script.is_some(), own),
            ("fallback", !self.fallbacks.is_empty(), own),
            ("answers", self.answers != AnswerMode::default(), "an engine answers with text"),
            ("data", !self.data.is_empty(), "an engine answers with text"),
            ("signature", self.signature.is_some(), "an engine answers with text"),
            ("output", self.output.is_some(), "an engine answers with text"),
            ("compression", self.compression.is_some(), "the engine shortens its own conversation"),
            ("window", self.window.is_some(), "the engine shortens its own conversation"),
            ("on_truncation", self.on_truncation != OnTruncation::default(), own),
            ("max_repeats", self.max_repeats.is_some(), "the engine has its own loop"),
            ("request", self.request != RequestDefinition::default(), own),
            ("retry", self.retry.is_some(), "the engine retries its own requests"),
            ("mode", self.mode == Some(AgentMode::Plan), "an engine decides itself what it changes: use ask"),
        ];
        let refuse = |problem: Problem| {
            let message = format!("this does not apply to an agent with an engine: {}", problem.message);
            Problem { message, ..problem }
        };
        Problem::check(refused).map_err(refuse)?;
        if self.sandbox.as_ref().is_some_and(|sandbox| !sandbox.is_off() && !sandbox.network) {
            let message = "the engine needs the network for its model: allow it, or turn the sandbox off";
            return Err(Problem::new(["sandbox", "network"], message));
        }
        if self.sandbox.as_ref().is_some_and(|sandbox| sandbox.allowed_sockets() != SandboxSockets::On) {
            let message =
                "the engine reaches its session by a socket: set it to \"on\", or turn the sandbox off";
            return Err(Problem::new(["sandbox", "sockets"], message));
        }
        Ok(())
    }

    /// Sets what the sandbox of a new session leaves open to its default. An engine reaches its session by a socket.
    pub fn complete_sandbox(&mut self) {
        let Some(sandbox) = &mut self.sandbox else { return };
        if self.engine.is_some() && !sandbox.is_off() {
            sandbox.sockets.get_or_insert(SandboxSockets::On);
        }
        sandbox.complete();
    }

    /// Builds an agent whose work another program does.
    pub(super) fn with_engine(&self, engine: &EngineDefinition, tools: Tools) -> Agent {
        let agent = Agent::new(format!("{}/{}", &self.ns, &self.name)).tools(tools);
        let approval = self.approval.iter().map(|(tool, approve)| (tool.clone(), *approve == Approve::Ask));
        let mut approval: BTreeMap<_, _> = approval.collect();
        if self.mode == Some(AgentMode::Ask) {
            approval.entry("default".to_owned()).or_insert(true);
        }
        let mut agent = agent.engine(AgentEngine {
            name: engine.name.clone(),
            model: engine.model.clone(),
            approval,
            sandbox: self.sandbox.clone(),
        });
        let mut limits = self.budget.limits().unwrap_or_default();
        limits.turns = limits.turns.into_iter().chain(self.max_turns).min();
        agent.budget = (limits != crate::budget::Limits::default()).then_some(limits);
        agent
    }
}
