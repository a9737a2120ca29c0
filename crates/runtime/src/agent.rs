//! What drives a session: who decides, what may be called, within which limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::digest::Digest;
use backstitch_core::machine::{Machinery, ToolLoops};
use backstitch_core::ports::Policy;
use backstitch_core::session::Session;
use backstitch_core::tool::ToolSpec;
use serde_json::Value;

use crate::runner::Tools;

type SetUp = dyn Fn(&mut Session) + Send + Sync;

/// What drives a session. A clone is cheap.
#[derive(Clone)]
pub struct Agent {
    /// The namespace of its prompt.
    pub ns: String,
    /// The key of its prompt.
    pub key: String,
    /// The rendered prompt: the system message of every evaluation.
    pub system: Option<String>,
    /// Who decides.
    pub policy: Arc<dyn Policy>,
    /// What may be called.
    pub tools: Tools,
    /// What makes an evaluation of answers and results.
    pub machinery: Arc<dyn Machinery>,
    /// What an evaluation may spend.
    pub budget: Option<Limits>,
    /// How much active time an evaluation has.
    pub deadline: Option<Duration>,
    /// How often a policy that could not answer is asked again.
    pub retries: u32,
    /// The definition of the agent as data, without secrets: it is recorded with a new session.
    pub definition: Value,
    set_up: Arc<SetUp>,
}

impl Agent {
    /// An agent whose policy decides, without tools and limits.
    pub fn new(ns: impl Into<String>, key: impl Into<String>, policy: Arc<dyn Policy>) -> Self {
        Self {
            ns: ns.into(),
            key: key.into(),
            system: None,
            policy,
            tools: Tools::default(),
            machinery: Arc::new(ToolLoops::default()),
            budget: None,
            deadline: None,
            retries: 3,
            definition: Value::Null,
            set_up: Arc::new(|_| {}),
        }
    }

    /// Gives it a system message.
    #[must_use]
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Gives it tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Limits what an evaluation may spend.
    #[must_use]
    pub fn with_budget(mut self, budget: Limits) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Limits how much active time an evaluation has.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Limits how many answers an evaluation may have.
    #[must_use]
    pub fn with_max_turns(self, turns: u64) -> Self {
        self.with_machinery(Arc::new(ToolLoops { max_turns: Some(turns) }))
    }

    /// Makes evaluations of answers and results in another way.
    #[must_use]
    pub fn with_machinery(mut self, machinery: Arc<dyn Machinery>) -> Self {
        self.machinery = machinery;
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

    /// Says what the agent is, as data without secrets.
    #[must_use]
    pub fn with_definition(mut self, definition: Value) -> Self {
        self.definition = definition;
        self
    }

    pub(crate) fn set_up(&self, session: &mut Session) {
        (self.set_up)(session);
    }

    pub(crate) fn options(&self) -> Arc<[Arc<ToolSpec>]> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// A digest of what the prompt promises: its text and the contracts of its tools.
    pub fn fingerprint(&self) -> Result<Digest, serde_json::Error> {
        let tools: Result<Vec<_>, _> = self.tools.iter().map(|tool| tool.spec.contract_digest()).collect();
        Digest::of_json(&(&self.ns, &self.key, &self.system, tools?))
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Agent")
            .field("ns", &self.ns)
            .field("key", &self.key)
            .field("policy", self.policy.name())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
