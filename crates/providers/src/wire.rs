//! Requests and answers of any provider: each function looks up the provider's dialect and applies it.

use backstitch_core::message::Part;
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::tool::ToolSpec;
use serde_json::Value;

use crate::answer::{FinishMeaning, StreamReader};
use crate::dialects::dialect;
use crate::error::{self, ProviderError};
use crate::provider::{ModelTarget, Provider};
use crate::request::{
    Departure, RefusedOption, RefusedPart, RenderError, RenderReport, RenderState, RenderedRequest,
    RequestInput, RequestLimits, RequestOptions, StructuredOutput, Thread, ThreadEntry, add_fields, in_words,
    plan_turn, words,
};

/// Renders a conversation as a request to a model.
pub fn render<'t>(
    thread: &Thread<'_>,
    tools: impl IntoIterator<Item = &'t ToolSpec>,
    target: &ModelTarget,
    options: &RequestOptions,
) -> Result<RenderedRequest, RenderError> {
    let (input, mut report) = input(&thread.system, tools.into_iter().collect(), target, options)?;
    let mut rendering = RenderState::default();
    render_thread(thread, &input, &mut rendering)?;
    let body = render_body(&input, &mut rendering)?;
    report.append(rendering.report);
    Ok(RenderedRequest { body, report })
}

/// All inputs of a renderer but the conversation, and how they depart from what was asked for.
pub(crate) fn input<'a>(
    system: &[&Part],
    tools: Vec<&'a ToolSpec>,
    target: &'a ModelTarget,
    options: &'a RequestOptions,
) -> Result<(RequestInput<'a>, RenderReport), RenderError> {
    options.check(target.provider)?;
    let mut report = RenderReport::default();
    let schema = options.output_schema.as_deref();
    let output = schema
        .filter(|_| options.structured == StructuredOutput::Native)
        .filter(|_| !options.refuses(RefusedPart::Schema, &mut report))
        .and_then(|schema| (dialect(target.provider).output_schema)(schema, target, !tools.is_empty()));
    let added = schema.filter(|_| output.is_none()).map(|schema| Part::text(in_words(schema)));
    if added.is_some() {
        report.note(Departure::OutputInWords);
    }
    let system = words(system.iter().copied().chain(&added), &mut report)?;
    Ok((RequestInput { tools, target, options, output, system }, report))
}

/// Renders the entries of a thread.
pub(crate) fn render_thread(
    thread: &Thread<'_>,
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<(), RenderError> {
    let dialect = dialect(input.target.provider);
    for call in &thread.orphans {
        rendering.report.note(Departure::OrphanResult { call: *call });
    }
    for entry in &thread.entries {
        match entry {
            ThreadEntry::Input(message) => (dialect.render_input)(message, input, rendering)?,
            ThreadEntry::Turn(turn) => {
                let turn = plan_turn(turn, input, dialect.raw_calls, rendering)?;
                (dialect.render_turn)(turn, input, rendering)?;
            }
        }
    }
    Ok(())
}

/// Renders the body, with the messages that are not encoded.
pub(crate) fn render_body(
    input: &RequestInput<'_>,
    rendering: &mut RenderState,
) -> Result<Value, RenderError> {
    let mut body = (dialect(input.target.provider).render_body)(input, rendering)?;
    add_fields(&mut body, &input.options.body);
    Ok(body)
}

/// The field of a request that lists the messages.
pub(crate) fn messages_field(provider: Provider) -> &'static str {
    dialect(provider).messages
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
