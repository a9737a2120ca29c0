//! Retries of requests that failed.

use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::values::Span;
use crate::Backoff;

/// Retries of a request that failed, and the delays between them. Absent values are the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryDefinition {
    /// Maximum number of retries of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Delay before the first retry. It doubles with each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Span>,
    /// Longest delay, unless the server asks for a certain one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Span>,
}

impl RetryDefinition {
    pub(super) fn backoff(&self) -> Backoff {
        let usual = Backoff::default();
        Backoff {
            retries: self.retries.unwrap_or(usual.retries),
            first: self.first.map_or(usual.first, |first| first.0),
            longest: self.longest.map_or(usual.longest, |longest| longest.0),
        }
    }

    /// Refuses values that are not useful.
    pub fn check(&self) -> Result<(), Problem> {
        if self.retries.is_some_and(|retries| retries > 100) {
            return Err(Problem::new(["retry", "retries"], "set at most 100"));
        }
        Ok(())
    }
}
