//! What a call waits for while no process runs it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Most characters of the name of a signal.
const LONGEST_NAME: usize = 200;

/// A signal with this name can neither be sent nor waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a signal needs 1 to {longest} characters, without control characters", longest = LONGEST_NAME)]
pub struct InvalidSignalName;

/// What a call waits for: a time, a signal from outside, or whichever of the two comes first.
///
/// ```
/// use backstitch_core::time::Timestamp;
/// use backstitch_core::tool::Wait;
///
/// let noon: Timestamp = "2026-05-04T12:00:00Z".parse().unwrap();
/// assert_eq!(Wait::signal("delivered").or_until(noon).time(), Some(noon));
/// assert!(Wait::until(noon).is_over(noon));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<String>,
}

impl Wait {
    /// Waits until a time. One in the past does not wait.
    pub fn until(time: Timestamp) -> Self {
        Self { until: Some(time), signal: None }
    }

    /// Waits for the next signal with this name, which has at most 200 characters and no control characters.
    pub fn signal(name: impl Into<String>) -> Self {
        Self { until: None, signal: Some(name.into()) }
    }

    /// Waits no longer than until a time.
    #[must_use]
    pub fn or_until(self, time: Timestamp) -> Self {
        Self { until: Some(time), ..self }
    }

    /// Returns the time at which it ends by itself.
    pub fn time(&self) -> Option<Timestamp> {
        self.until
    }

    /// Returns the name of the signal that ends it.
    pub fn signal_name(&self) -> Option<&str> {
        self.signal.as_deref()
    }

    /// Checks the name of a signal.
    pub fn check_signal_name(name: &str) -> Result<(), InvalidSignalName> {
        let is_valid =
            !name.is_empty() && name.chars().count() <= LONGEST_NAME && !name.chars().any(char::is_control);
        if is_valid { Ok(()) } else { Err(InvalidSignalName) }
    }

    /// Whether its time has come.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// As the rest of "it waits ...".
impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.signal, self.until) {
            (Some(signal), Some(until)) => write!(formatter, "for the signal {signal:?}, or until {until}"),
            (Some(signal), None) => write!(formatter, "for the signal {signal:?}"),
            (None, Some(until)) => write!(formatter, "until {until}"),
            (None, None) => formatter.write_str("for nothing"),
        }
    }
}
