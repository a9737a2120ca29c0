//! Wire validators: what each provider refuses, found out before anything is sent.
//!
//! Each provider has a table of [`Rule`]s. A rule looks at the JSON of a request and at nothing else; it shares no code with
//! the projections that make requests, so that a mistake there is not repeated here. Beside the rules stands the published form
//! of each request ([`validate_form`]): fields, types, and what goes together. Rules that only the provider can judge
//! are not in the tables: whether a signature is genuine, whether thoughts are unchanged, whether an address can be followed.

mod anthropic;
mod form;
mod forms;
mod gemini;
mod look;
mod openai_chat;
mod openai_responses;

use std::fmt;

use serde_json::Value;

use crate::provider::Provider;

/// When the tables were last compared with what providers document.
pub const RULES_AS_OF: &str = "2026-11";

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

/// A rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// What has to hold.
    pub what: &'static str,
    /// Where it does not.
    pub place: String,
}

/// A request that its provider would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} would refuse the request: {}", list(.violations))]
pub struct InvalidRequest {
    /// The provider.
    pub provider: Provider,
    /// What is wrong with it.
    pub violations: Vec<Violation>,
}

fn list(violations: &[Violation]) -> String {
    let one = |violation: &Violation| format!("{} ({}; {})", violation.rule, violation.what, violation.place);
    violations.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The rules of a provider.
pub fn rules(provider: Provider) -> &'static [Rule] {
    match provider {
        Provider::OpenAiChat => openai_chat::RULES,
        Provider::OpenAiResponses => openai_responses::RULES,
        Provider::Anthropic => anthropic::RULES,
        Provider::Gemini => gemini::RULES,
    }
}

/// Refuses a request that has not the published form: with a field that is not known, of another type, or without what goes
/// with it.
///
/// Strict servers refuse such requests, and others ignore what they do not know. A provider may send a field that is newer than
/// these tables and want it back, so that this is checked in tests, where all answers are known, and not before each request.
pub fn validate_form(provider: Provider, request: &Value) -> Result<(), InvalidRequest> {
    let shape = match provider {
        Provider::OpenAiChat => &forms::openai_chat::REQUEST,
        Provider::OpenAiResponses => &forms::openai_responses::REQUEST,
        Provider::Anthropic => &forms::anthropic::REQUEST,
        Provider::Gemini => &forms::gemini::REQUEST,
    };
    let found = form::problems(&form::Form::Object(shape), request);
    let broken =
        found.into_iter().map(|place| Violation { rule: "form", what: "it has the published form", place });
    let violations: Vec<Violation> = broken.collect();
    if violations.is_empty() { Ok(()) } else { Err(InvalidRequest { provider, violations }) }
}

/// Refuses a request that its provider would refuse.
pub fn validate(provider: Provider, request: &Value) -> Result<(), InvalidRequest> {
    let broken = rules(provider).iter().filter_map(|rule| {
        let place = (rule.check)(request).err()?;
        Some(Violation { rule: rule.id, what: rule.what, place })
    });
    let violations: Vec<Violation> = broken.collect();
    if violations.is_empty() { Ok(()) } else { Err(InvalidRequest { provider, violations }) }
}
