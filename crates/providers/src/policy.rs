//! A model as a policy: renders, validates, sends, parses.
//!
//! A request that the provider's [validator](crate::validate) refuses is never sent. An incomplete answer is
//! an error, and is dropped. Keys are held as secrets: they appear in no `Debug` output, no error and no
//! journal, even where a provider repeats them.

mod address;
mod exchange;
mod limiter;
mod lookup;
mod settled;

use std::fmt;
use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::code::ErrorCode;
use backstitch_core::digest::Digest;
use backstitch_core::journal::Role;
use backstitch_core::message::{MediaPart, PolicyName};
use backstitch_core::ports::{
    BoxFuture, FailedRequest, ModelIdentity, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestBody,
    RequestInfo,
};
use backstitch_core::secrets::Secrets;

use crate::error::ProviderError;
use crate::provider::ModelTarget;
use crate::request::{
    RENDERER, RefusedPart, RenderError, RenderReport, RenderedRequest, RequestLimits, RequestOptions,
    RequestTooLarge, Thread, ToolChoice,
};
use crate::secret::ApiKey;
use crate::transport::{RequestHeader, Transport};
use crate::validate::{InvalidRequest, validate};
use crate::wire::{self, render};

pub use lookup::WantedFacts;
use settled::SettledPrefix;

/// A [`Policy`] that asks a model of a provider.
#[derive(Clone)]
pub struct ModelPolicy {
    name: PolicyName,
    target: ModelTarget,
    key: Option<ApiKey>,
    options: RequestOptions,
    transport: Arc<dyn Transport>,
    limits: RequestLimits,
    answer_limit: usize,
    headers: Arc<[RequestHeader]>,
    provider_name: Option<String>,
}

/// The default size limit of an answer in bytes.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// The estimated number of tokens of an image or a page.
const MEDIA_TOKENS: u64 = 1_000;

/// A request as it is sent.
pub(crate) struct EncodedRequest {
    pub(crate) body: RequestBody,
    digest: Digest,
    report: RenderReport,
}

/// A request that was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It could not be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// Its provider would refuse it.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// It exceeds a limit of its provider.
    #[error(transparent)]
    TooLarge(#[from] RequestTooLarge),
}

impl SendError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Render(RenderError::Media(_)) => ErrorCode::UnsupportedMedia,
            Self::Render(RenderError::Option(_)) => ErrorCode::UnsupportedOption,
            Self::Render(RenderError::NotHydrated { .. }) => ErrorCode::NotRendered,
            Self::Invalid(_) => ErrorCode::InvalidRequest,
            Self::TooLarge(_) => ErrorCode::RequestTooLarge,
        }
    }
}

impl ModelPolicy {
    /// Creates a policy with this name. Without a key, requests have no authorisation.
    pub fn new(
        name: PolicyName,
        target: ModelTarget,
        key: Option<ApiKey>,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let options = RequestOptions { stream: true, ..RequestOptions::default() };
        let limits = RequestLimits::of(target.provider);
        Self {
            name,
            target,
            key,
            options,
            transport,
            limits,
            answer_limit: ANSWER_LIMIT,
            headers: Arc::default(),
            provider_name: None,
        }
    }

    /// Sets the request options. The default streams answers.
    #[must_use]
    pub fn with_options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    /// Replaces the limits of the provider: compatible servers have limits of their own.
    #[must_use]
    pub fn with_limits(mut self, limits: RequestLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the size limit of an answer in bytes; 64 MiB by default. A longer answer is malformed.
    #[must_use]
    pub fn with_answer_limit(mut self, bytes: usize) -> Self {
        self.answer_limit = bytes;
        self
    }

    /// Adds headers to every request, for gateways. They replace others of the same name.
    #[must_use]
    pub fn with_headers(mut self, headers: impl IntoIterator<Item = RequestHeader>) -> Self {
        self.headers = headers.into_iter().collect();
        self
    }

    /// Names the provider in records of requests and in prices; by default it has the name of its format.
    #[must_use]
    pub fn with_provider_name(mut self, name: impl Into<String>) -> Self {
        self.provider_name = Some(name.into());
        self
    }

    fn provider_name(&self) -> String {
        self.provider_name.clone().unwrap_or_else(|| self.target.provider.to_string())
    }

    /// Renders the request for a question. Fails if the request is invalid or too large.
    pub fn request(&self, question: &PolicyRequest) -> Result<RenderedRequest, SendError> {
        let thread = Thread::of(question.shown.iter());
        let tools = question.options.iter().map(|tool| &**tool);
        let rendered = render(&thread, tools, &self.target, &self.options_for(question))?;
        // The size is checked in `encode`, where the body is serialized.
        self.limits.check(self.target.provider, 0, rendered.report.media)?;
        validate(self.target.provider, &rendered.body)?;
        Ok(rendered)
    }

    /// Encodes the request for a question, and keeps for the next one what that repeats: its body is that of
    /// [`request`](Self::request), of which only what is new is rendered and validated.
    pub(crate) fn encode(&self, question: &PolicyRequest) -> Result<EncodedRequest, SendError> {
        let (provider, options) = (self.target.provider, self.options_for(question));
        let system = question.shown.get(0).filter(|message| message.role() == Role::System);
        let system = system.and_then(|message| message.message.parts()).unwrap_or_default();
        let tools = question.options.iter().map(|tool| &**tool).collect();
        let (input, mut report) =
            wire::input(&system.iter().collect::<Vec<_>>(), tools, &self.target, &options)?;
        let known = question.memo.take::<SettledPrefix>();
        let (mut settled, mut rendering) =
            SettledPrefix::render(known, &input, &question.shown, &question.media)?;
        let body = wire::render_body(&input, &mut rendering)?;
        let head = rendering.head();
        report.append(rendering.report);
        self.limits.check(provider, 0, report.media)?;
        validate(provider, &body)?;
        let (body, digest) = settled.encode(&body, wire::messages_field(provider), head);
        question.memo.keep(settled);
        self.limits.check(provider, body.len(), 0)?;
        Ok(EncodedRequest { body, digest, report })
    }

    /// The options for a question: stored media is available, and the output schema of the question takes
    /// precedence. Parts that the server refused are left out.
    fn options_for(&self, question: &PolicyRequest) -> RequestOptions {
        let mut options = self.options.clone();
        if question.output.is_some() {
            options.output_schema.clone_from(&question.output);
        }
        if question.turn > 1 && options.tool_choice.is_forced() {
            // An evaluation ends with an answer without calls.
            options.tool_choice = ToolChoice::Default;
        }
        let refused = question.refusals.iter().filter_map(|message| RefusedPart::of_refusal(message));
        options.refused.extend(refused);
        if !question.media.is_empty() {
            let (held, others) = (question.media.clone(), self.options.bytes.clone());
            options.bytes = Some(Arc::new(move |media: &MediaPart| {
                let of_question = media.url.object_id().and_then(|object| held.get(&object).cloned());
                of_question.or_else(|| others.as_ref()?(media))
            }));
        }
        options
    }

    /// The key and the secrets of headers, the longest first.
    fn held_secrets(&self) -> Vec<&str> {
        let of_headers = self.headers.iter().flat_map(RequestHeader::secrets);
        let mut held: Vec<_> = self.key.iter().map(ApiKey::expose).chain(of_headers).collect();
        held.retain(|secret| !secret.is_empty());
        held.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        held
    }

    fn error(&self, error: ProviderError) -> PolicyError {
        let error = self.held_secrets().into_iter().fold(error, ProviderError::redacted).truncated();
        PolicyError {
            retryable: error.retryable,
            retry_after: error.retry_after,
            request: Box::new(FailedRequest {
                window: error.window,
                unexplained: error.unexplained,
                usage: *error.usage,
            }),
            ..PolicyError::new(self.name.clone(), error.kind.code(), &error.message)
        }
        .caused_by(error)
    }

    pub(crate) fn unsent(&self, unsent: SendError) -> PolicyError {
        PolicyError::new(self.name.clone(), unsent.code(), unsent.to_string()).caused_by(unsent)
    }
}

impl Policy for ModelPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn secrets(&self) -> Secrets {
        Secrets::new(self.held_secrets())
    }

    fn model(&self) -> Option<ModelIdentity> {
        Some(ModelIdentity { provider: self.provider_name(), model: self.target.model.clone() })
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        // A request that cannot be rendered is described without a digest; `decide` returns the error.
        let encoded = self.encode(question).ok();
        let digest = encoded.as_ref().map(|encoded| encoded.digest);
        let (body, report) = encoded.map(|encoded| (encoded.body, encoded.report)).unzip();
        let length = body.as_ref().map_or(0, |body| body.len() as u64);
        let report = report.unwrap_or_default();
        let text = length.saturating_sub(report.media_bytes as u64);
        let media = MEDIA_TOKENS.saturating_mul(report.media as u64);
        let departures = report.departures.into_iter();
        let output_tokens = self.options.max_output_tokens.map_or(0, u64::from);
        RequestInfo {
            provider: self.provider_name(),
            model: self.target.model.clone(),
            digest,
            length,
            renderer: Some(match &question.renderer {
                Some(before) => format!("{before} {RENDERER}"),
                None => RENDERER.to_owned(),
            }),
            // A token has about four bytes. The tokens of media do not depend on its bytes.
            estimate: Amounts { input_tokens: text / 4 + media, output_tokens, ..Amounts::ZERO },
            departures: departures.map(|departure| departure.to_string()).collect(),
            body,
        }
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            let body = match described.body {
                Some(body) => body,
                None => self.encode(&question).map_err(|unsent| self.unsent(unsent))?.body,
            };
            let answer = self.exchange(&question, body).await;
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
