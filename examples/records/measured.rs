//! A model with scripted answers, whose requests are rendered as for a real one.
//!
//! The request of each turn is rendered for a provider, validated and described, so that the journal has its
//! length. It is not sent; the script answers instead.

use std::sync::{Arc, Mutex, PoisonError};

use backstitch::message::PolicyName;
use backstitch::ports::{
    BoxFuture, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestBody, RequestInfo,
};
use backstitch::providers::{
    HttpRequest, HttpResponse, ModelPolicy, ModelTarget, Provider, Transport, TransportError,
};
use backstitch::{Script, ScriptedPolicy};

/// The requests that would have been sent.
pub(crate) type Requests = Arc<Mutex<Vec<String>>>;

/// A policy that renders the requests of a provider and answers from a script.
pub(crate) struct Measured {
    wire: ModelPolicy,
    script: ScriptedPolicy,
    requests: Requests,
}

impl Measured {
    pub(crate) fn new(script: Script, requests: Requests) -> Result<Self, Box<dyn std::error::Error>> {
        let name = PolicyName::new("clerk")?;
        let target = ModelTarget::new(Provider::OpenAiChat, "some-model");
        let wire = ModelPolicy::new(name.clone(), target, None, Arc::new(Nowhere));
        Ok(Self { wire, script: ScriptedPolicy::new(name, script), requests })
    }
}

impl Policy for Measured {
    fn name(&self) -> &PolicyName {
        self.wire.name()
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        self.wire.describe(question)
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(described.body.as_ref().map(RequestBody::text));
        self.script.decide(question, described)
    }
}

/// A transport that fails every request.
struct Nowhere;

impl Transport for Nowhere {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("this transport sends no requests")) })
    }
}
