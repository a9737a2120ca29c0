//! The policy of an agent without a model or a policy.

use backstitch_core::code::ErrorCode;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{BoxFuture, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo};

/// Fails every request.
#[derive(Debug)]
pub(crate) struct NoPolicy(PolicyName);

impl NoPolicy {
    pub(crate) const NAME: &str = "no-policy";
}

impl NoPolicy {
    /// Creates a policy of this name.
    pub(crate) fn of(name: PolicyName) -> Self {
        Self(name)
    }
}

impl Default for NoPolicy {
    fn default() -> Self {
        Self(PolicyName::new(Self::NAME).expect("invariant: the name is one"))
    }
}

impl Policy for NoPolicy {
    fn name(&self) -> &PolicyName {
        &self.0
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo::default()
    }

    fn decide(&self, _: PolicyRequest, _: RequestInfo) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async {
            let message = "the agent has neither a model nor a policy";
            Err(PolicyError::new(self.0.clone(), ErrorCode::NoModel, message))
        })
    }
}
