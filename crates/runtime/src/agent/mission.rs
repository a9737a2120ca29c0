//! Missions: the request that starts an evaluation. Also the options for resuming an interrupted one.

use std::time::Duration;

use backstitch_core::budget::Limits;
use backstitch_core::id::EvaluationId;
use backstitch_core::message::{MediaPart, Part};
use backstitch_core::object::Object;

/// The request that starts an evaluation: text, and optionally media.
///
/// ```
/// use backstitch_core::message::Part;
/// use backstitch_runtime::Mission;
///
/// let words = Mission::from("Mend the coat.");
/// assert_eq!(words, Mission::new(vec![Part::text("Mend the coat.")]));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mission {
    pub(crate) parts: Vec<Part>,
    pub(crate) objects: Vec<Object>,
}

impl Mission {
    /// Creates a mission of these parts. Media among them has to be external, or in the store already.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts, objects: Vec::new() }
    }

    /// Adds a text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::text(text.into()));
        self
    }

    /// Adds media with its bytes, which are stored with the mission. See [`MediaPart::held`].
    #[must_use]
    pub fn with_media(mut self, (media, object): (MediaPart, Object)) -> Self {
        self.parts.push(Part::Media(media));
        self.objects.push(object);
        self
    }

    /// Text and media, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// True if there is no part, or if every part is blank text.
    pub(crate) fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Text(part) => part.text.inline().is_some_and(|text| text.trim().is_empty()),
            Part::Media(_) => false,
        })
    }
}

impl From<&str> for Mission {
    fn from(text: &str) -> Self {
        Self::new(vec![Part::text(text)])
    }
}

impl From<String> for Mission {
    fn from(text: String) -> Self {
        Self::new(vec![Part::text(text)])
    }
}

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
    /// The files are restored. Their state before that is recorded. What others certainly changed after an interrupted
    /// call stays.
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
    /// What to do about files that changed since. By default what an interrupted call changed is restored, and what others changed is
    /// adopted. The session waits for a decision if that cannot be told apart, and if the machine was restarted: then a
    /// power loss may have changed files.
    pub drift: Option<DriftPolicy>,
}
