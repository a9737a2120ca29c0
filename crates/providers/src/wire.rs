//! Requests and answers of any provider: each function looks up the provider's dialect and applies it.

use backstitch_core::message::Part;
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::tool::ToolSpec;

use crate::answer::{FinishMeaning, StreamReader};
use crate::dialects::dialect;
use crate::error::{self, ProviderError};
use crate::provider::{ModelTarget, Provider};
use crate::request::{
    Departure, RefusedOption, RefusedPart, RenderError, RenderReport, RenderedRequest, RequestInput,
    RequestLimits, RequestOptions, StructuredOutput, Thread, add_fields, in_words,
};

/// Renders a conversation as a request to a model.
pub fn render<'t>(
    thread: &Thread<'_>,
    tools: impl IntoIterator<Item = &'t ToolSpec>,
    target: &ModelTarget,
    options: &RequestOptions,
) -> Result<RenderedRequest, RenderError> {
    options.check(target.provider)?;
    let dialect = dialect(target.provider);
    let tools: Vec<&ToolSpec> = tools.into_iter().collect();
    let mut report = RenderReport::default();
    let schema = options.output_schema.as_deref();
    let output = schema
        .filter(|_| options.structured == StructuredOutput::Native)
        .filter(|_| !options.refuses(RefusedPart::Schema, &mut report))
        .and_then(|schema| (dialect.output_schema)(schema, target, !tools.is_empty()));
    let added = schema.filter(|_| output.is_none()).map(|schema| Part::text(in_words(schema)));
    if added.is_some() {
        report.note(Departure::OutputInWords);
    }
    let (output, added) = (output.as_ref(), added.as_ref());
    let input = RequestInput { thread, tools: &tools, target, options, output, added };
    let mut body = (dialect.render)(&input, &mut report)?;
    add_fields(&mut body, &options.body);
    Ok(RenderedRequest { body, report })
}

/// Parses an answer that was not streamed.
pub fn parse(body: &str, target: &ModelTarget) -> Result<PolicyAnswer, ProviderError> {
    (dialect(target.provider).parse)(body, target)
}

/// Creates a reader for a streamed answer.
pub fn stream_reader(target: &ModelTarget) -> Box<dyn StreamReader> {
    (dialect(target.provider).stream_reader)(target.clone())
}

/// Reads a response with an error status. `header` looks a header up by its lower-case name.
pub fn of_response<'a>(
    provider: Provider,
    status: u16,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &str,
) -> ProviderError {
    error::of_response(provider, dialect(provider).classify, status, header, body)
}

/// Reads a body as an error, if it is one: servers also send errors with a successful status.
pub(crate) fn error_in_body(provider: Provider, body: &str) -> Option<ProviderError> {
    error::error_in_body(provider, dialect(provider).classify, body)
}

/// The documented finish reasons of a provider.
pub fn finish_reasons(provider: Provider) -> &'static [(&'static str, FinishMeaning)] {
    dialect(provider).finish_reasons
}

impl RequestLimits {
    /// The limits of a provider, as of November 2026.
    pub fn of(provider: Provider) -> Self {
        dialect(provider).limits
    }
}

impl RequestOptions {
    /// Refuses an option that a provider does not support, so that it is neither dropped nor changed
    /// silently.
    pub fn check(&self, provider: Provider) -> Result<(), RefusedOption> {
        let problem = self.refuse_impossible().or_else(|| (dialect(provider).refused_option)(self));
        problem.map_or(Ok(()), |(option, reason)| Err(RefusedOption { provider, option, reason }))
    }
}

impl Provider {
    /// The environment variables that may hold a key for this provider, in order of precedence.
    pub fn key_variables(self) -> &'static [&'static str] {
        dialect(self).address.key_variables
    }

    /// The base URL of the provider's own API.
    pub fn base_url(self) -> &'static str {
        dialect(self).address.base
    }
}
