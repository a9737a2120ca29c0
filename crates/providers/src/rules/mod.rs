//! The elements of wire validators: [`Rule`]s over the JSON of a request.
//!
//! The tables are in the folders of the providers (`rules.rs`). They depend only on the JSON, and share no code
//! with the renderers, so that a mistake there is not repeated here. A test enforces this.

mod look;

use std::fmt;

use serde_json::Value;

pub(crate) use look::{
    ensure, is_closed_everywhere, is_object_text, is_plain_name, is_web_or_data, items, repeated, text,
};

/// A condition that a provider requires of requests.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The stable name of the rule.
    pub id: &'static str,
    /// The condition, in words.
    pub what: &'static str,
    /// Checks a request, and fails with the place of a violation.
    pub check: fn(&Value) -> Result<(), String>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rule").field("id", &self.id).field("what", &self.what).finish_non_exhaustive()
    }
}
