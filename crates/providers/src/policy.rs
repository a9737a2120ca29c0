//! A model as a policy: renders, validates, sends, reads.
//!
//! Nothing is sent that the provider's [validator](crate::validate) refuses. An answer that does not arrive whole is an error,
//! and nothing of it is kept. Keys are held as secrets: they stand in no `Debug`, no error and no journal, also where a
//! provider repeats them.

mod address;
mod exchange;

use std::fmt;
use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::digest::Digest;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Answer, BoxFuture, Policy, PolicyError, Question, RequestInfo};
use secrecy::{ExposeSecret, SecretString};

use crate::error::{ErrorKind, ProviderError};
use crate::options::RequestOptions;
use crate::parse::Delta;
use crate::provider::Target;
use crate::render::{RENDERER, RenderError, Rendered, render};
use crate::report::Report;
use crate::thread::Thread;
use crate::transport::Transport;
use crate::validate::{InvalidRequest, validate};

/// The key of an account.
#[derive(Debug, Clone)]
pub struct ApiKey(SecretString);

impl ApiKey {
    /// A key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(SecretString::from(key.into()))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

type OnDelta = dyn Fn(&Question, Delta) + Send + Sync;
type OnReport = dyn Fn(&Question, &Report) + Send + Sync;

/// A model as a policy.
#[derive(Clone)]
pub struct ModelPolicy {
    name: PolicyName,
    target: Target,
    key: Option<ApiKey>,
    options: RequestOptions,
    transport: Arc<dyn Transport>,
    on_delta: Option<Arc<OnDelta>>,
    on_report: Option<Arc<OnReport>>,
}

/// A request that was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsent {
    /// It could not be made.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// Its provider would refuse it.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
}

impl ModelPolicy {
    /// A model that is asked under a name. Without a key, requests carry none.
    pub fn new(name: PolicyName, target: Target, key: Option<ApiKey>, transport: Arc<dyn Transport>) -> Self {
        let options = RequestOptions { stream: true, ..RequestOptions::default() };
        Self { name, target, key, options, transport, on_delta: None, on_report: None }
    }

    /// Asks in another way. Without this, answers are streamed.
    #[must_use]
    pub fn with_options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    /// Tells what the model says while it says it.
    #[must_use]
    pub fn on_delta(mut self, tell: impl Fn(&Question, Delta) + Send + Sync + 'static) -> Self {
        self.on_delta = Some(Arc::new(tell));
        self
    }

    /// Tells in what each request departs from the conversation, before it is sent.
    #[must_use]
    pub fn on_report(mut self, tell: impl Fn(&Question, &Report) + Send + Sync + 'static) -> Self {
        self.on_report = Some(Arc::new(tell));
        self
    }

    /// The request that a question makes: rendered and found valid.
    pub fn request(&self, question: &Question) -> Result<Rendered, Unsent> {
        let state = question.conversation();
        let thread = state.as_ref().map(Thread::of).unwrap_or_default();
        let tools = question.options.iter().map(|tool| &**tool);
        let rendered = render(&thread, tools, &self.target, &self.options)?;
        validate(self.target.provider, &rendered.body)?;
        Ok(rendered)
    }

    fn error(&self, error: ProviderError) -> PolicyError {
        let secret = self.key.as_ref().map_or("", ApiKey::expose);
        let error = error.without(secret);
        PolicyError {
            policy: self.name.clone(),
            kind: error.kind.to_string(),
            message: error.message.clone(),
            retryable: error.retryable,
            retry_after: error.retry_after,
            source: Some(Box::new(error)),
        }
    }

    fn unsent(&self, unsent: Unsent) -> PolicyError {
        let kind = match &unsent {
            Unsent::Render(RenderError::Media(_)) => "unsupported_media",
            Unsent::Render(_) => "not_rendered",
            Unsent::Invalid(_) => ErrorKind::InvalidRequest.as_str(),
        };
        PolicyError {
            policy: self.name.clone(),
            kind: kind.to_owned(),
            message: unsent.to_string(),
            retryable: false,
            retry_after: None,
            source: Some(Box::new(unsent)),
        }
    }
}

impl Policy for ModelPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, question: &Question) -> RequestInfo {
        // A request that cannot be made is described without a digest; deciding says why.
        let body = self.request(question).ok().map(|rendered| rendered.body.to_string());
        let length = body.as_ref().map_or(0, |body| body.len() as u64);
        let output_tokens = self.options.max_output_tokens.map_or(0, u64::from);
        RequestInfo {
            provider: self.target.provider.to_string(),
            model: self.target.model.clone(),
            digest: body.map(|body| Digest::of(body.as_bytes())),
            length,
            renderer: Some(RENDERER.to_owned()),
            // Four bytes make a token, more or less.
            estimate: Amounts { input_tokens: length / 4, output_tokens, ..Amounts::ZERO },
        }
    }

    fn decide(&self, question: Question) -> BoxFuture<'_, Result<Answer, PolicyError>> {
        Box::pin(async move {
            let rendered = self.request(&question).map_err(|unsent| self.unsent(unsent))?;
            if let Some(tell) = &self.on_report {
                tell(&question, &rendered.report);
            }
            let answer = self.exchange(&question, rendered.body.to_string().into()).await;
            answer.map_err(|error| self.error(error))
        })
    }
}

impl fmt::Debug for ModelPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelPolicy")
            .field("name", &self.name)
            .field("target", &self.target)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
