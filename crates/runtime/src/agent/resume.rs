//! How an agent resumes what was interrupted.

use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::id::EvaluationId;

/// How far an agent may differ from the one that an evaluation was started with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Not at all: system message, tools and output are the same. Refused where nothing is recorded to compare them with.
    Strict,
    /// The prompt has the same name, and every call without a result can still be made as it was. The recorded system message
    /// is sent.
    #[default]
    Compatible,
    /// As far as it likes.
    Forced,
}

/// What to do about files that changed while nobody drove the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftPolicy {
    /// They are what a person made of them: the session continues with them, and nothing is restored. A call that was interrupted
    /// while it may have been writing does not run again then, but ends with an error that says that its files were kept.
    Adopt,
    /// They are put back to what they were. As found they are kept.
    Restore,
    /// The session waits until somebody says which.
    Ask,
}

/// How an evaluation is resumed.
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
    /// Which one; without it, the latest.
    pub evaluation: Option<EvaluationId>,
    /// How far the agent may differ.
    pub fidelity: Fidelity,
    /// What it may spend from now on.
    pub budget: Option<Limits>,
    /// How much active time it has from now on.
    pub deadline: Option<Duration>,
    /// Takes an answer that reached its token limit as it is, in place of continuing it.
    pub accept: bool,
    /// What to do about files that changed meanwhile; without it they are adopted, unless the machine was restarted since: then
    /// nobody knows whether a person changed them or a power loss did, and the session asks.
    pub drift: Option<DriftPolicy>,
}
