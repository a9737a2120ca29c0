//! Async functions as policies: a person at a prompt, a rule, or a model behind another interface.

use std::future::Future;
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{BoxFuture, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo};
use backstitch_core::session::BoxError;

type Decide = dyn Fn(PolicyRequest) -> BoxFuture<'static, Result<PolicyAnswer, BoxError>> + Send + Sync;

/// A policy that is a function.
pub struct FunctionPolicy {
    name: PolicyName,
    decide: Arc<Decide>,
}

impl FunctionPolicy {
    /// Creates a policy that calls this function.
    pub fn new<F, W>(name: PolicyName, decide: F) -> Self
    where
        F: Fn(PolicyRequest) -> W + Send + Sync + 'static,
        W: Future<Output = Result<PolicyAnswer, BoxError>> + Send + 'static,
    {
        Self { name, decide: Arc::new(move |question| Box::pin(decide(question))) }
    }
}

impl Policy for FunctionPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo {
            provider: "function".to_owned(),
            model: self.name.to_string(),
            ..RequestInfo::default()
        }
    }

    fn decide(
        &self,
        question: PolicyRequest,
        _: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            (self.decide)(question).await.map_err(|source| {
                let message = source.to_string();
                PolicyError {
                    source: Some(source),
                    ..PolicyError::new(self.name.clone(), ErrorCode::FunctionFailed, message)
                }
            })
        })
    }
}

debug_fields!(FunctionPolicy { name });
