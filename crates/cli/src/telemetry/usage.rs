//! Metrics of models and tools, taken from their spans when these end.

use std::time::Duration;

use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

/// The operation of a span, in the conventions for generative AI. Spans without one are not counted.
const OPERATION: &str = "gen_ai.operation.name";

/// Attributes of a span that metrics have too. None of them is as different as the sessions are.
const SHARED: [&str; 6] = [
    OPERATION,
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.agent.name",
    "gen_ai.tool.name",
    "error.type",
];

/// Numbers of tokens, and the words for them.
const TOKENS: [(&str, &str); 2] =
    [("gen_ai.usage.input_tokens", "input"), ("gen_ai.usage.output_tokens", "output")];

#[derive(Debug)]
pub(super) struct UsageMetrics {
    durations: Histogram<f64>,
    tokens: Histogram<u64>,
}

impl UsageMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        let durations = meter
            .f64_histogram("gen_ai.client.operation.duration")
            .with_unit("s")
            .with_description("Time of evaluations, requests and calls.");
        let tokens = meter
            .u64_histogram("gen_ai.client.token.usage")
            .with_unit("{token}")
            .with_description("Tokens of a request.");
        Self { durations: durations.build(), tokens: tokens.build() }
    }
}

impl SpanProcessor for UsageMetrics {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let find = |name: &str| {
            let mut attributes = span.attributes.iter();
            attributes
                .find(|attribute| attribute.key.as_str() == name)
                .map(|attribute| attribute.value.clone())
        };
        if find(OPERATION).is_none() {
            return;
        }
        let mut shared: Vec<KeyValue> =
            SHARED.iter().filter_map(|name| Some(KeyValue::new(*name, find(name)?))).collect();
        let time = span.end_time.duration_since(span.start_time).unwrap_or_default();
        self.durations.record(time.as_secs_f64(), &shared);
        for (name, kind) in TOKENS {
            let Some(Value::I64(tokens)) = find(name) else { continue };
            shared.push(KeyValue::new("gen_ai.token.type", kind));
            self.tokens.record(tokens.max(0).cast_unsigned(), &shared);
            shared.pop();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
