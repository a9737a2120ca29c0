//! What wire validators are made of: [`Rule`]s over the JSON of a request, and [`Form`]s that describe all of it.
//!
//! The tables stand in the folders of the providers (`rules.rs` and `form.rs`). They look at JSON and at nothing else, and share
//! no code with what renders requests, so that a mistake there is not repeated here. A test keeps it so.

mod form;
mod look;

use std::fmt;

use serde_json::Value;

pub(crate) use form::{Field, Form, Shape, Together, maybe, needed, problems};
pub(crate) use look::{
    ensure, is_closed_everywhere, is_object_text, is_plain_name, is_web_or_data, items, repeated, text,
};

/// One thing that a provider refuses.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Names the rule.
    pub id: &'static str,
    /// What has to hold.
    pub what: &'static str,
    /// Refuses a request, and says where.
    pub check: fn(&Value) -> Result<(), String>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rule").field("id", &self.id).field("what", &self.what).finish_non_exhaustive()
    }
}
