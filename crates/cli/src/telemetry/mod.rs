//! Traces and metrics for a collector, over OTLP, as the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and others) say.
//!
//! Nothing is sent unless a variable names an endpoint. Spans are those of evaluations, requests and calls, with the names of OpenTelemetry's conventions for
//! generative AI, and without contents: no texts, arguments or results, and no lines of the log. They are sent on threads of their own. A collector that cannot be
//! reached fails nothing: the end of the command waits for it for a few seconds.

#[cfg(feature = "otlp")]
mod client;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod usage;

#[cfg(feature = "otlp")]
pub(crate) use export::Telemetry;
#[cfg(not(feature = "otlp"))]
pub(crate) use none::Telemetry;

/// The command without the feature.
#[cfg(not(feature = "otlp"))]
mod none {
    use tracing_subscriber::layer::Identity;

    #[derive(Default)]
    pub(crate) struct Telemetry;

    impl Telemetry {
        pub(crate) fn start(_: bool) -> Self {
            Self
        }

        pub(crate) fn layer(&self) -> Option<Identity> {
            None
        }

        pub(crate) fn end(self) {}
    }
}
