//! What is exported, and when.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_http::HttpClient;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use percent_encoding::percent_decode_str;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{Layer, Registry};

use super::client::CollectorClient;
use super::usage::UsageMetrics;
use crate::keys;

/// Name of the spans and instruments.
const SCOPE: &str = "backstitch";

/// How long the end of the command waits until everything is sent.
const LAST: Duration = Duration::from_secs(3);

/// What is sent to a collector while the command runs.
#[derive(Default)]
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

/// Traces or metrics.
struct Signal {
    /// Its part of the names of variables.
    name: &'static str,
}

const TRACES: Signal = Signal { name: "TRACES" };
const METRICS: Signal = Signal { name: "METRICS" };

impl Telemetry {
    /// Starts to export what variables name an endpoint for. They may be meant for another program too, so a value that cannot be used here is only
    /// a warning.
    pub(crate) fn start(is_quiet: bool) -> Self {
        Self::try_start().unwrap_or_else(|error| {
            if !is_quiet {
                eprintln!("warning: no traces and metrics are exported: {error:#}");
            }
            Self::default()
        })
    }

    fn try_start() -> anyhow::Result<Self> {
        if variable("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(Self::default());
        }
        let (has_traces, has_metrics) = (TRACES.is_wanted()?, METRICS.is_wanted()?);
        if !has_traces && !has_metrics {
            return Ok(Self::default());
        }
        let client: Arc<dyn HttpClient> = Arc::new(CollectorClient::new()?);
        let metrics = if has_metrics {
            let exporter = MetricExporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_shared_http_client(client.clone())
                .with_headers(METRICS.headers())
                .build()?;
            let provider = SdkMeterProvider::builder()
                .with_resource(resource())
                .with_periodic_exporter(exporter)
                .build();
            // The server finds it there.
            global::set_meter_provider(provider.clone());
            Some(provider)
        } else {
            None
        };
        // Metrics of models and tools are taken from spans, so there are spans for both.
        let mut traces = SdkTracerProvider::builder().with_resource(resource());
        if has_traces {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_shared_http_client(client)
                .with_headers(TRACES.headers())
                .build()?;
            traces = traces.with_batch_exporter(exporter);
        }
        if has_metrics {
            traces = traces.with_span_processor(UsageMetrics::new(&global::meter(SCOPE)));
        }
        Ok(Self { traces: Some(traces.build()), metrics })
    }

    /// Returns the layer that spans of this project are exported by. Lines of the log are not: they may quote files and servers.
    pub(crate) fn layer(&self) -> Option<impl Layer<Registry> + Send + Sync + use<>> {
        let tracer = self.traces.as_ref()?.tracer(SCOPE);
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let own = filter_fn(|metadata| {
            metadata.is_span()
                && *metadata.level() <= LevelFilter::INFO
                && metadata.target().starts_with("backstitch")
        });
        Some(layer.with_filter(own))
    }

    /// Sends what is left, as far as the collector takes it soon.
    pub(crate) fn end(self) {
        let Self { traces, metrics } = self;
        if traces.is_none() && metrics.is_none() {
            return;
        }
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = traces.map(|traces| traces.shutdown());
            let _ = metrics.map(|metrics| metrics.shutdown());
            let _ = done.send(());
        });
        let _ = ended.recv_timeout(LAST);
    }
}

impl Signal {
    /// Returns whether a variable names an endpoint, and none turns it off.
    fn is_wanted(&self) -> anyhow::Result<bool> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", self.name);
        if variable(&own).is_none() && variable("OTEL_EXPORTER_OTLP_ENDPOINT").is_none() {
            return Ok(false);
        }
        let exporter = format!("OTEL_{}_EXPORTER", self.name);
        match variable(&exporter).as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(false),
            Some(other) => {
                anyhow::bail!("{exporter}={other:?} is not known here: use otlp or none");
            }
        }
        let protocol = format!("OTEL_EXPORTER_OTLP_{}_PROTOCOL", self.name);
        for name in [protocol.as_str(), "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(other) = variable(name).filter(|protocol| protocol != "http/protobuf") {
                anyhow::bail!(
                    "{name}={other:?} is not spoken here: use http/protobuf, mostly at port 4318 of a collector"
                );
            }
        }
        Ok(true)
    }

    /// Reads the headers that a variable lists. They may be keys, so they are not in the environment any more.
    fn headers(&self) -> HashMap<String, String> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_HEADERS", self.name);
        let text = keys::key(&own).or_else(|| keys::key("OTEL_EXPORTER_OTLP_HEADERS")).unwrap_or_default();
        read_headers(&text)
    }
}

fn read_headers(text: &str) -> HashMap<String, String> {
    let decode = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// Returns a variable that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Describes this program. Variables (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`) are stronger.
fn resource() -> Resource {
    let builder = Resource::builder();
    let builder = match variable("OTEL_SERVICE_NAME") {
        None if !variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.name=")) => {
            builder.with_service_name("backstitch")
        }
        _ => builder,
    };
    builder.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_with_encoded_values() {
        let headers = read_headers("authorization=Bearer%20abc%3D, x-team = a ,odd");
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["authorization"], "Bearer abc=");
        assert_eq!(headers["x-team"], "a");
        assert!(read_headers("").is_empty());
    }
}
