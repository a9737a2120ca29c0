//! `tracing` spans of evaluations, requests, calls and appends.
//!
//! With the feature `otel`, fields have the names of OpenTelemetry's conventions for generative AI (version
//! 1.38). These are still in development, so all names are defined in this module. A layer that forwards
//! spans to an OpenTelemetry SDK needs nothing else. Contents (texts, arguments, results) are included only
//! on request. Secrets are never included, since no content has them.

use std::fmt::Display;

use backstitch_core::budget::Amounts;
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::InnerMessage;
use backstitch_core::message::Arguments;
use backstitch_core::ports::{PolicyAnswer, RequestInfo};
use tracing::Span;
use tracing::field::Empty;

/// Names of fields.
pub(crate) mod names {
    const fn either(plain: &'static str, otel: &'static str) -> &'static str {
        if cfg!(feature = "otel") { otel } else { plain }
    }

    pub(crate) const OPERATION: &str = either("operation", "gen_ai.operation.name");
    pub(crate) const SESSION: &str = either("session", "gen_ai.conversation.id");
    pub(crate) const AGENT: &str = either("agent", "gen_ai.agent.name");
    pub(crate) const PROVIDER: &str = either("provider", "gen_ai.provider.name");
    pub(crate) const MODEL: &str = either("model", "gen_ai.request.model");
    pub(crate) const RESPONSE_MODEL: &str = either("response_model", "gen_ai.response.model");
    pub(crate) const INPUT_TOKENS: &str = either("input_tokens", "gen_ai.usage.input_tokens");
    pub(crate) const CACHE_READ_TOKENS: &str =
        either("cache_read_tokens", "gen_ai.usage.cache_read.input_tokens");
    pub(crate) const CACHE_WRITE_TOKENS: &str =
        either("cache_write_tokens", "gen_ai.usage.cache_creation.input_tokens");
    pub(crate) const OUTPUT_TOKENS: &str = either("output_tokens", "gen_ai.usage.output_tokens");
    pub(crate) const FINISH_REASONS: &str = either("finish_reason", "gen_ai.response.finish_reasons");
    pub(crate) const OUTPUT_MESSAGES: &str = either("output", "gen_ai.output.messages");
    pub(crate) const TOOL: &str = either("tool", "gen_ai.tool.name");
    pub(crate) const CALL: &str = either("call", "gen_ai.tool.call.id");
    pub(crate) const ARGUMENTS: &str = either("arguments", "gen_ai.tool.call.arguments");
    pub(crate) const RESULT: &str = either("result", "gen_ai.tool.call.result");
    pub(crate) const ERROR: &str = either("error", "error.type");
}

/// Whether spans include contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Included,
    LeftOut,
}

/// Creates the span of an evaluation.
pub(crate) fn evaluation(session: SessionId, evaluation: EvaluationId, agent: &str) -> Span {
    let span = tracing::info_span!(
        "invoke_agent",
        otel.name = Empty,
        { names::OPERATION } = "invoke_agent",
        { names::AGENT } = agent,
        { names::SESSION } = %session,
        evaluation = %evaluation,
        { names::ERROR } = Empty,
    );
    set_name(&span, "invoke_agent", agent);
    span
}

/// Creates the span of a request.
pub(crate) fn request(session: SessionId, turn: u64, info: &RequestInfo) -> Span {
    let span = tracing::info_span!(
        "chat",
        otel.name = Empty,
        otel.kind = Empty,
        { names::OPERATION } = "chat",
        { names::SESSION } = %session,
        { names::PROVIDER } = %info.provider,
        { names::MODEL } = %info.model,
        turn = turn.cast_signed(),
        { names::RESPONSE_MODEL } = Empty,
        { names::INPUT_TOKENS } = Empty,
        { names::CACHE_READ_TOKENS } = Empty,
        { names::CACHE_WRITE_TOKENS } = Empty,
        { names::OUTPUT_TOKENS } = Empty,
        { names::FINISH_REASONS } = Empty,
        { names::OUTPUT_MESSAGES } = Empty,
        { names::ERROR } = Empty,
    );
    set_name(&span, "chat", &info.model);
    if cfg!(feature = "otel") {
        span.record("otel.kind", "client");
    }
    span
}

/// Records the answer of a request.
pub(crate) fn record_answer(span: &Span, answer: &PolicyAnswer, contents: Contents) {
    if span.is_disabled() {
        return;
    }
    let Amounts { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, .. } = answer.usage;
    // Attributes of OpenTelemetry are signed, and other numbers would become texts.
    for (name, tokens, is_always) in [
        (names::INPUT_TOKENS, input_tokens, true),
        (names::OUTPUT_TOKENS, output_tokens, true),
        (names::CACHE_READ_TOKENS, cache_read_tokens, false),
        (names::CACHE_WRITE_TOKENS, cache_write_tokens, false),
    ] {
        if is_always || tokens > 0 {
            span.record(name, tokens.cast_signed());
        }
    }
    if let Some(sidecar) = &answer.provider {
        span.record(names::RESPONSE_MODEL, sidecar.model.as_str());
        if let Some(reason) = &sidecar.finish_reason {
            span.record(names::FINISH_REASONS, reason.as_str());
        }
    }
    if contents == Contents::Included {
        let output_texts: Vec<_> = answer
            .parts
            .iter()
            .filter_map(|part| part.as_text()?.text.inline())
            .map(|text| &**text)
            .collect();
        span.record(names::OUTPUT_MESSAGES, output_texts.concat().as_str());
    }
}

/// Creates the span of an attempt of a call.
pub(crate) fn call(
    session: SessionId,
    (name, call): (&str, CallId),
    attempt: u32,
    arguments: &Arguments,
    contents: Contents,
) -> Span {
    let span = tracing::info_span!(
        "execute_tool",
        otel.name = Empty,
        { names::OPERATION } = "execute_tool",
        { names::SESSION } = %session,
        { names::TOOL } = %name,
        { names::CALL } = %call,
        attempt = i64::from(attempt),
        { names::ARGUMENTS } = Empty,
        { names::RESULT } = Empty,
        { names::ERROR } = Empty,
    );
    set_name(&span, "execute_tool", name);
    if contents == Contents::Included {
        span.record(names::ARGUMENTS, &*arguments.text());
    }
    span
}

/// Records the result of a call.
pub(crate) fn record_result(span: &Span, result: &InnerMessage, contents: Contents) {
    if span.is_disabled() {
        return;
    }
    if let Some(kind) = result.message.option_result().and_then(|result| result.error_type.as_deref()) {
        record_failure(span, kind);
    }
    if contents == Contents::Included {
        span.record(names::RESULT, result.content().as_str());
    }
}

/// Records a failure by the stable word of its kind.
pub(crate) fn record_failure(span: &Span, kind: &str) {
    span.record(names::ERROR, kind);
}

/// Creates the span of an append.
pub(crate) fn append(session: SessionId, records: usize) -> Span {
    tracing::debug_span!("append", %session, records)
}

fn set_name(span: &Span, operation: &str, of: impl Display) {
    if cfg!(feature = "otel") && !span.is_disabled() {
        span.record("otel.name", format!("{operation} {of}").as_str());
    }
}
