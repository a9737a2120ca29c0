//! The elements of wire validators: [`Rule`]s over the JSON of a request.
//!
//! The tables are in the folders of the providers (`rules.rs`). They depend only on the JSON, and share no code
//! with the renderers, so that a mistake there is not repeated here. A test enforces this.

mod look;

use serde_json::Value;

pub(crate) use look::{
    check_model, check_names, check_unique, each, each_in, ensure, field, has_text, is_closed_if_strict,
    is_object_text, is_plain_name, is_web_or_data, items, text,
};

/// A condition that a provider requires of requests.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The stable name of the rule.
    pub id: &'static str,
    /// The condition, in words.
    pub what: &'static str,
    /// Checks a request, and fails with the place of a violation.
    pub check: fn(&Value) -> Result<(), String>,
}

/// Creates an entry of a table.
pub(crate) const fn rule(
    id: &'static str,
    what: &'static str,
    check: fn(&Value) -> Result<(), String>,
) -> Rule {
    Rule { id, what, check }
}
