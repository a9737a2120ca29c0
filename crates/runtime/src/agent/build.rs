//! Building an agent: each method sets one thing and returns it.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::execution::Resources;
use backstitch_core::machine::MachineFactory;
use backstitch_core::ports::Policy;
use backstitch_core::prompt::{BoundPrompt, Output, RenderedPrompt};
use backstitch_core::secrets::Secrets;
use backstitch_core::session::Session;
use backstitch_core::tool::Tool;
use backstitch_repl::transcript::TranscriptCompression;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Agent, AgentWorkspace, Backoff, OnTruncation, PromptSource};
use crate::contract::OutputContract;
use crate::error::RuntimeError;
use crate::prices::Prices;
use crate::spans::Contents;
use crate::tools::Tools;

impl Agent {
    /// Decides with a model, named by one string as on the command line: `PROVIDER:MODEL`, or `scripted:FILE`. The runtime that
    /// drives the agent opens it.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Decides with a policy: a model, a person, a script, any function.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.policy = Arc::new(policy);
        self.model = None;
        self
    }

    /// Sets the system message.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Adds tools. Two tools of one name are an error when the agent is used.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<Tool>>) -> Self {
        let all = self.tools.iter().cloned().chain(tools.into_iter().map(Into::into));
        match Tools::new(all) {
            Ok(tools) => self.tools = tools,
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Works on the files of a directory, or of any other workspace.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<AgentWorkspace>) -> Self {
        self.files = Some(workspace.into());
        self
    }

    /// Gives its tools resources, made anew for each session: two sessions share none unless the function shares them.
    #[must_use]
    pub fn resources(mut self, resources: impl Fn() -> Resources + Send + Sync + 'static) -> Self {
        self.resources = Some(Arc::new(resources));
        self
    }

    /// Answers with a value of this type: the model is given its schema, and an answer that does not fit is refused once.
    #[must_use]
    pub fn answers_with<T: DeserializeOwned + JsonSchema + 'static>(mut self) -> Self {
        match OutputContract::new(Output::value::<T>()) {
            Ok(contract) => self.output = Some(Arc::new(contract)),
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Follows a prompt: its name, text, tools and output take the place of the agent's when an evaluation starts.
    #[must_use]
    pub fn prompt(mut self, prompt: BoundPrompt) -> Self {
        self.bound = Some(Arc::new(prompt));
        self
    }

    /// Keeps the first problem of its definition for when it is used.
    fn fail(&mut self, error: RuntimeError) {
        self.problem.get_or_insert_with(|| Arc::new(error));
    }

    /// Keeps these keys out of everything that its tools give back. Those of its policy are kept out anyway.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Limits what an evaluation may spend.
    #[must_use]
    pub fn with_budget(mut self, budget: Limits) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Decides in advance what becomes of an answer that reached its token limit.
    #[must_use]
    pub fn with_on_truncation(mut self, on_truncation: OnTruncation) -> Self {
        self.on_truncation = on_truncation;
        self
    }

    /// Says what models cost.
    #[must_use]
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Limits how much active time an evaluation has.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Limits how many answers an evaluation may have. An agent with a machinery of its own, as one that answers with programs,
    /// has its own limit.
    #[must_use]
    pub fn with_max_turns(mut self, turns: u64) -> Self {
        self.loops.max_turns = Some(turns);
        self
    }

    /// Ends an evaluation when so many answers in a row make the same calls with the same arguments: 12 unless something else is
    /// said, and with none they may for ever.
    #[must_use]
    pub fn with_max_repeats(mut self, repeats: impl Into<Option<u64>>) -> Self {
        self.loops.max_repeats = repeats.into();
        self
    }

    /// Says how often, and after which waits, a policy that could not answer is asked again.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Limits how deep agents that work for agents may be nested. An agent that works for another is held to both limits.
    #[must_use]
    pub fn with_max_depth(mut self, depth: u32) -> Self {
        self.max_depth = depth;
        self
    }

    /// Says what its answer looks like.
    #[must_use]
    pub fn with_output(mut self, output: OutputContract) -> Self {
        self.output = Some(Arc::new(output));
        self
    }

    /// The agent with a prompt as it was rendered: its name, its text, its tools beside those that the agent has, and its output.
    pub fn with_prompt(
        mut self,
        bound: &BoundPrompt,
        rendered: RenderedPrompt,
    ) -> Result<Self, RuntimeError> {
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

    /// Shows less of a long conversation, by a strategy. Agents that answer with programs have one of their own.
    #[must_use]
    pub fn with_compression(mut self, strategy: Arc<dyn TranscriptCompression>) -> Self {
        self.compression = Some(strategy);
        self
    }

    /// Makes evaluations of answers and results in another way.
    #[must_use]
    pub fn with_machinery(mut self, machinery: Arc<dyn MachineFactory>) -> Self {
        self.machinery = Some(machinery);
        self
    }

    /// Registers reducers, policies and observers of slices in every session that it drives.
    #[must_use]
    pub fn with_set_up(mut self, set_up: impl Fn(&mut Session) + Send + Sync + 'static) -> Self {
        self.set_up = Arc::new(set_up);
        self
    }

    /// Registers more, after what is registered already.
    #[must_use]
    pub fn and_set_up(mut self, set_up: impl Fn(&mut Session) + Send + Sync + 'static) -> Self {
        let before = self.set_up;
        self.set_up = Arc::new(move |session| {
            before(session);
            set_up(session);
        });
        self
    }

    /// Puts contents into `tracing` spans as well: texts, arguments and results. Without it spans hold names, numbers and kinds
    /// of errors. Sub-agents inherit it.
    #[must_use]
    pub fn with_contents_in_spans(mut self) -> Self {
        self.contents = Contents::Told;
        self
    }

    /// Says what the agent is, as data without secrets.
    #[must_use]
    pub fn with_definition(mut self, definition: Value) -> Self {
        self.definition = definition;
        self
    }
}
