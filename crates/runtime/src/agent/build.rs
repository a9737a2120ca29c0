//! Builder methods of [`Agent`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::approval::ApprovalRules;
use backstitch_core::budget::Limits;
use backstitch_core::execution::Resources;
use backstitch_core::machine::MachineFactory;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Policy, Sandbox};
use backstitch_core::prompt::{BoundPrompt, Output, RenderedPrompt};
use backstitch_core::secrets::Secrets;
use backstitch_core::session::Session;
use backstitch_core::tool::Tool;
use backstitch_repl::transcript::TranscriptCompression;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Agent, Backoff, Fallback, OnTruncation, PromptSource};
use crate::contract::OutputContract;
use crate::error::{Result, RuntimeError};
use crate::policy::NoPolicy;
use crate::prices::Prices;
use crate::spans::Contents;
use crate::tools::Tools;
use crate::workspace::WorkspaceSpec;

impl Agent {
    /// Uses a model, named as on the command line: `PROVIDER:MODEL` or `scripted:FILE`. The runtime that
    /// drives the agent opens it.
    pub fn model(self, name: impl Into<String>) -> Self {
        Self { model: Some(name.into()), ..self }
    }

    /// Uses a policy: a model, a person, a script or any function.
    pub fn policy(self, policy: impl Policy + 'static) -> Self {
        Self { policy: Arc::new(policy), model: None, ..self }
    }

    /// Sets the system message.
    pub fn instructions(self, text: impl Into<String>) -> Self {
        Self { system: Some(text.into()), ..self }
    }

    /// Adds tools. Two tools of one name are an error when the agent is used.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<Tool>>) -> Self {
        let all = self.tools.iter().cloned().chain(tools.into_iter().map(Into::into));
        match Tools::new(all) {
            Ok(tools) => self.tools = tools,
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Sets rules about calls: which run without approval, which need it, and which are denied. They replace
    /// what the tools declare, and apply to the calls of sub-agents as well. They are not recorded in
    /// sessions.
    pub fn approval_rules(self, rules: ApprovalRules) -> Self {
        Self { approval_rules: rules, ..self }
    }

    /// Works on the files of a directory, or of any other workspace. A path stands for that directory; a
    /// [`WorkspaceSpec`] also says what is left out of it, and how copies of it are set up.
    pub fn workspace(self, workspace: impl Into<WorkspaceSpec>) -> Self {
        Self { files: Some(workspace.into()), ..self }
    }

    /// Gives each new session a copy of the [directory](Agent::workspace) of its own, so that several sessions and people work
    /// on a project at once. The original is not touched until the changes of a session are
    /// [applied](crate::LiveSession::apply). It has no effect on a workspace that is open already.
    pub fn isolated(self) -> Self {
        Self { is_isolated: true, ..self }
    }

    /// Provides resources to its tools. The function is called once per session, so sessions share only what
    /// it shares.
    pub fn resources(self, resources: impl Fn() -> Resources + Send + Sync + 'static) -> Self {
        Self { resources: Some(Arc::new(resources)), ..self }
    }

    /// Requires an answer of this type. The model receives its schema; the first answer that does not fit is
    /// returned to the model for correction, a second one is an error.
    pub fn answers_with<T: DeserializeOwned + JsonSchema + 'static>(mut self) -> Self {
        match OutputContract::new(Output::value::<T>()) {
            Ok(contract) => self.output = Some(Arc::new(contract)),
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Uses a prompt. When an evaluation starts, its name, text and output replace those of the agent, and its
    /// tools are added.
    pub fn prompt(self, prompt: BoundPrompt) -> Self {
        Self { bound: Some(Arc::new(prompt)), ..self }
    }

    /// Keeps the first error of the definition. It is returned when the agent is used.
    pub(super) fn fail(&mut self, error: RuntimeError) {
        self.problem.get_or_insert_with(|| Arc::new(error));
    }

    /// Redacts these keys in all results of its tools, in addition to those of its policy.
    pub fn secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Limits what an evaluation may spend.
    pub fn budget(self, budget: Limits) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Sets what happens to an answer that reached its token limit.
    pub fn on_truncation(self, on_truncation: OnTruncation) -> Self {
        Self { on_truncation, ..self }
    }

    /// Sets the prices of models.
    pub fn prices(self, prices: Prices) -> Self {
        Self { prices, ..self }
    }

    /// Adds another model for requests that the model before it does not answer.
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallbacks.push(fallback);
        self
    }

    /// Sets the context window of its model, in tokens.
    pub fn window(self, tokens: impl Into<Option<u64>>) -> Self {
        Self { window: tokens.into(), ..self }
    }

    /// Limits how much active time an evaluation has.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Limits the number of answers in an evaluation. An agent with a machine of its own, such as one that
    /// answers with programs, has its own limit.
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.loops.max_turns = Some(turns);
        self
    }

    /// Ends an evaluation when this many consecutive answers make the same calls with the same arguments. The
    /// default is 12; `None` means no limit.
    pub fn max_repeats(mut self, repeats: impl Into<Option<u64>>) -> Self {
        self.loops.max_repeats = repeats.into();
        self
    }

    /// Sets the retries of a policy that could not answer.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Limits the nesting of sub-agents. A sub-agent is bound by its own limit and by that of its parent.
    pub fn max_depth(self, depth: u32) -> Self {
        Self { max_depth: depth, ..self }
    }

    /// Sets the form of its answer.
    pub fn output(self, output: OutputContract) -> Self {
        Self { output: Some(Arc::new(output)), ..self }
    }

    /// Returns the agent with a rendered prompt: its name, its text, its output, and its tools in addition to
    /// those of the agent.
    pub fn rendered_prompt(mut self, bound: &BoundPrompt, rendered: RenderedPrompt) -> Result<Self> {
        let prompt = bound.prompt();
        self.ns = prompt.ns().to_owned();
        self.key = prompt.key().to_owned();
        self.system = Some(rendered.text).filter(|text| !text.is_empty());
        self.tools = Tools::new(self.tools.iter().cloned().chain(rendered.tools))?;
        if let Some(output) = prompt.output() {
            self.output = Some(Arc::new(OutputContract::new(output.clone())?));
        }
        self.prompt = Some(Arc::new(PromptSource {
            name: prompt.name().to_owned(),
            inputs: Value::Object(bound.values().clone()),
            descriptor: prompt.descriptor()?,
        }));
        Ok(self)
    }

    /// Shortens long conversations by a strategy. Agents that answer with programs have one of their own.
    pub fn compression(self, strategy: Arc<dyn TranscriptCompression>) -> Self {
        Self { compression: Some(strategy), ..self }
    }

    /// Replaces the state machine that makes evaluations of answers and results.
    pub fn machinery(self, machinery: Arc<dyn MachineFactory>) -> Self {
        Self { machinery: Some(machinery), ..self }
    }

    /// Registers reducers, policies and observers of slices in every session that it drives.
    pub fn set_up(self, set_up: impl Fn(&mut Session) + Send + Sync + 'static) -> Self {
        Self { set_up: Arc::new(set_up), ..self }
    }

    /// Registers more, after the functions that are registered already.
    pub fn and_set_up(mut self, set_up: impl Fn(&mut Session) + Send + Sync + 'static) -> Self {
        let before = self.set_up;
        self.set_up = Arc::new(move |session| {
            before(session);
            set_up(session);
        });
        self
    }

    /// Adds contents to `tracing` spans: texts, arguments and results. By default spans hold only names,
    /// numbers and kinds of errors. Sub-agents inherit the setting.
    pub fn contents_in_spans(self) -> Self {
        Self { contents: Contents::Included, ..self }
    }

    /// Sets the definition of the agent as data without secrets.
    pub fn definition(self, definition: Value) -> Self {
        Self { definition, definition_in: None, ..self }
    }

    /// Sets the function that sets the directory of the [definition](Agent::definition()), for sessions with files on a
    /// disk. They may work in a copy of the agent's directory.
    pub fn definition_in(self, definition_in: fn(Value, &Path) -> Value) -> Self {
        Self { definition_in: Some(definition_in), ..self }
    }

    /// Returns the program that does the work, if it is not a model.
    pub fn engine_name(&self) -> Option<&str> {
        self.engine.as_ref().map(|engine| engine.name.as_str())
    }

    /// Gives the work to another program. The runtime that drives the agent opens it.
    pub fn engine(mut self, engine: AgentEngine) -> Self {
        match PolicyName::new(&engine.name) {
            Ok(name) => self.policy = std::sync::Arc::new(NoPolicy::of(name)),
            Err(error) => self.fail(RuntimeError::Message(error)),
        }
        self.model = None;
        self.engine = Some(engine);
        self
    }
}

/// The program that does the work of an agent, as data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentEngine {
    /// The name of the engine, such as `claude-code`.
    pub name: String,
    /// The model, in the program's own words. `None` leaves the choice to the program.
    pub model: Option<String>,
    /// Whether calls of the program's own tools need the approval of a person, by name. `default` is for all others that
    /// may change something.
    pub approval: BTreeMap<String, bool>,
    /// Limits of its processes. `None` means that they are not confined.
    pub sandbox: Option<Sandbox>,
}
