//! Routes about the server itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::response::Response;
use backstitch::ports::SessionQuery;
use backstitch::report::Version;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use opentelemetry::global;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::OfferedAgents;
use crate::metrics::{Gauges, Metrics, SCOPE};
use crate::problem::Problem;
use crate::state::ServerState;
use crate::table::{Answer, Call, NoFields, Route, json};

/// The form of the text of Prometheus.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a server works.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HealthReport {
    /// Version of the form.
    v: Version,
    /// `ok`, or `ready`.
    status: String,
}

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::read("/health", "Whether the server runs", |_: Call| async { Ok(health("ok")) }),
        Route::read("/ready", "Whether the server can read its store and takes requests", ready),
        Route::get("/metrics", "Counters in the text form of Prometheus", Answer::Other(METRICS), metrics),
        Route::get(
            "/api/v1/openapi.json",
            "The description of this API",
            Answer::Other("application/json"),
            |call: Call| async move {
                Ok(json(StatusCode::OK, call.state.description.get().cloned().unwrap_or_default()))
            },
        ),
        Route::read("/api/v1/server", "What this server may do, and its limits", |call: Call| async move {
            Ok(call.state.report())
        }),
        Route::read("/api/v1/agents", "The agents that can be started by name", |call: Call| async move {
            Ok(OfferedAgents { v: Version, agents: call.state.options.agents.offered() })
        }),
        Route::read(
            "/api/v1/runs",
            "What this server drives or drove, the newest first",
            |call: Call| async move { Ok(call.state.runs.report()) },
        ),
    ]
}

fn health(status: &str) -> HealthReport {
    HealthReport { v: Version, status: status.to_owned() }
}

async fn ready(call: Call) -> Result<HealthReport, Problem> {
    if call.state.ending.is_cancelled() {
        return Err(Problem::busy(StatusCode::SERVICE_UNAVAILABLE, "the server is ending"));
    }
    let read = call.runtime().sessions(SessionQuery::new().with_limit(1)).await;
    match read {
        Ok(_) => Ok(health("ready")),
        // Strangers may ask this, so they do not learn the reason.
        Err(error) => {
            tracing::warn!(%error, "the store cannot be read");
            Err(Problem::busy(StatusCode::SERVICE_UNAVAILABLE, "the store cannot be read"))
        }
    }
}

/// Lets a collector read the values of `/metrics` that are not counted for each request.
pub(crate) fn export_values(state: &Arc<ServerState>) {
    let meter = global::meter(SCOPE);
    // Names of OpenTelemetry have points.
    let name = |name: &str| name.trim_end_matches("_total").replace('_', ".");
    for (index, (gauge, about, _)) in gauges(state).rows().into_iter().enumerate() {
        let state = Arc::downgrade(state);
        let instrument = meter.u64_observable_gauge(name(gauge)).with_description(about);
        let instrument = instrument.with_callback(move |observer| {
            if let Some(state) = state.upgrade() {
                observer.observe(gauges(&state).rows()[index].2 as u64, &[]);
            }
        });
        instrument.build();
    }
    type Counter = fn(&Metrics) -> &AtomicU64;
    let counters: [(&str, Counter); 2] = [
        ("backstitch_events_total", |metrics| &metrics.events),
        ("backstitch_events_missed_total", |metrics| &metrics.missed),
    ];
    for (counter, read) in counters {
        let metrics = Arc::downgrade(&state.metrics);
        let instrument = meter.u64_observable_counter(name(counter)).with_callback(move |observer| {
            if let Some(metrics) = metrics.upgrade() {
                observer.observe(read(&metrics).load(Ordering::Relaxed), &[]);
            }
        });
        instrument.build();
    }
}

fn gauges(state: &ServerState) -> Gauges {
    let (running, failed) = state.runs.count();
    Gauges {
        streams: state.streams.load(Ordering::Relaxed),
        followed: state.feeds.count(),
        running,
        failed,
        free_readers: state.reading.free(),
        free_writers: state.writing.free(),
    }
}

async fn metrics(call: Call<NoFields>) -> Result<Response, Problem> {
    let text = call.state.metrics.text(&gauges(&call.state));
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS));
    Ok(response)
}
