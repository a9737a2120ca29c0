//! Options for resuming an interrupted evaluation.

use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::id::EvaluationId;

/// How far an agent may differ from the one that started an evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Not at all: system message, tools and output are the same. Fails if there is no record to compare them
    /// with.
    Strict,
    /// The prompt has the same name, and every call without a result can still run as it was made. The
    /// recorded system message is sent.
    #[default]
    Compatible,
    /// In any way.
    Forced,
}

/// What to do about files that changed while no process drove the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftPolicy {
    /// The changes count as a person's: the session continues with them, and nothing is restored. A call
    /// that was interrupted while it may have been writing does not run again, but ends with an error that
    /// says that its files were kept.
    Adopt,
    /// The files are restored. Their state before that is recorded.
    Restore,
    /// The session waits for a decision.
    Ask,
}

/// Options for resuming an evaluation.
///
/// ```
/// use std::time::Duration;
///
/// use backstitch_runtime::{Fidelity, ResumeOptions};
///
/// let options = ResumeOptions {
///     deadline: Some(Duration::from_secs(300)), // five more minutes
///     fidelity: Fidelity::Strict,               // refuse an agent that changed
///     ..ResumeOptions::default()
/// };
/// assert!(options.budget.is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// The evaluation to resume. `None` means the latest.
    pub evaluation: Option<EvaluationId>,
    /// How far the agent may differ.
    pub fidelity: Fidelity,
    /// Budget from now on.
    pub budget: Option<Limits>,
    /// Active time from now on.
    pub deadline: Option<Duration>,
    /// A message for the agent, which it reads before it continues. Calls that the model has requested and that have not
    /// begun do not run any more: after a rewind to before a call, the message is an instruction in place of it.
    pub message: Option<String>,
    /// Accepts an answer that reached its token limit, instead of continuing it.
    pub accept: bool,
    /// What to do about files that changed since. By default they are adopted, unless the machine was
    /// restarted: then a power loss may have changed them, and the session waits for a decision.
    pub drift: Option<DriftPolicy>,
}
