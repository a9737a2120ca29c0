//! Wire validators: they find invalid requests before they are sent.
//!
//! Each provider has a table of [`Rule`]s. A rule depends only on the JSON of a request, and shares no code
//! with the renderers, so that a mistake there is not repeated here. Rules that only the provider can
//! check are not in the tables: whether a signature is genuine, whether thoughts are unchanged, whether a URL
//! can be loaded.

use serde_json::Value;

use crate::dialects::dialect;
use crate::provider::Provider;
pub use crate::rules::Rule;

/// A rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// The condition, in words.
    pub what: &'static str,
    /// The place of the violation.
    pub place: String,
}

/// A request that its provider would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} would refuse the request: {}", list(.violations))]
pub struct InvalidRequest {
    /// The provider.
    pub provider: Provider,
    /// The violated rules.
    pub violations: Vec<Violation>,
}

fn list(violations: &[Violation]) -> String {
    let one = |violation: &Violation| format!("{} ({}; {})", violation.rule, violation.what, violation.place);
    violations.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The rules of a provider.
pub fn rules(provider: Provider) -> &'static [Rule] {
    dialect(provider).rules
}

/// Refuses a request that breaks a rule of its provider.
pub fn validate(provider: Provider, request: &Value) -> Result<(), InvalidRequest> {
    let broken = rules(provider).iter().filter_map(|rule| {
        let place = (rule.check)(request).err()?;
        Some(Violation { rule: rule.id, what: rule.what, place })
    });
    let violations: Vec<Violation> = broken.collect();
    if violations.is_empty() { Ok(()) } else { Err(InvalidRequest { provider, violations }) }
}
