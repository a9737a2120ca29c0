//! Counters of the server, in the text form of Prometheus, and for a collector of OpenTelemetry where the program has set one up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::metrics::Histogram;
use opentelemetry::{KeyValue, global};

/// Upper bounds of the classes of times, in seconds.
const BOUNDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// Name of the instruments.
pub(crate) const SCOPE: &str = "backstitch";

/// Counters of a server.
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<RequestKey, RequestTimes>>,
    durations: Histogram<f64>,
    pub(crate) events: AtomicU64,
    pub(crate) missed: AtomicU64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    method: String,
    route: String,
    status: u16,
}

#[derive(Default)]
struct RequestTimes {
    classes: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

/// Values that are counted elsewhere.
pub(crate) struct Gauges {
    pub(crate) streams: usize,
    pub(crate) followed: usize,
    pub(crate) running: usize,
    pub(crate) failed: usize,
    pub(crate) free_readers: usize,
    pub(crate) free_writers: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = global::meter(SCOPE)
            .f64_histogram("http.server.request.duration")
            .with_unit("s")
            .with_description("Time until the head of an answer.")
            .build();
        Self { requests: Mutex::default(), durations, events: AtomicU64::new(0), missed: AtomicU64::new(0) }
    }
}

impl Gauges {
    /// Lists all of them, with their names and what they are.
    pub(crate) fn rows(&self) -> [(&'static str, &'static str, usize); 6] {
        [
            ("backstitch_streams_open", "Open streams of events.", self.streams),
            ("backstitch_sessions_followed", "Sessions with open streams.", self.followed),
            ("backstitch_runs_running", "Sessions that the server drives.", self.running),
            ("backstitch_runs_failed", "Runs of the list that failed.", self.failed),
            ("backstitch_readers_free", "Free places for requests that read.", self.free_readers),
            ("backstitch_writers_free", "Free places for requests that change.", self.free_writers),
        ]
    }
}

impl Metrics {
    /// Counts a request. The route is a pattern of the table, so that clients cannot make up others.
    pub(crate) fn count_request(&self, method: &str, route: &str, status: u16, time: Duration) {
        let key = RequestKey { method: method.to_owned(), route: route.to_owned(), status };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let times = requests.entry(key).or_default();
        let seconds = time.as_secs_f64();
        for (class, bound) in times.classes.iter_mut().zip(BOUNDS) {
            *class += u64::from(seconds <= bound);
        }
        times.count += 1;
        times.seconds += seconds;
        drop(requests);
        let attributes = [
            KeyValue::new("http.request.method", method.to_owned()),
            KeyValue::new("http.route", route.to_owned()),
            KeyValue::new("http.response.status_code", i64::from(status)),
        ];
        self.durations.record(seconds, &attributes);
    }

    /// Writes all values.
    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        let mut text = String::new();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "backstitch_http_request_seconds";
        let _ = writeln!(text, "# HELP {name} Time until the head of an answer.\n# TYPE {name} histogram");
        for (RequestKey { method, route, status }, times) in &*requests {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            for (class, bound) in times.classes.iter().zip(BOUNDS) {
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {class}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", times.count);
            let _ = writeln!(text, "{name}_sum{{{labels}}} {}", times.seconds);
            let _ = writeln!(text, "{name}_count{{{labels}}} {}", times.count);
        }
        drop(requests);
        let counters = [
            ("backstitch_events_total", "Events that were sent to streams.", &self.events),
            ("backstitch_events_missed_total", "Times that a stream skipped live events.", &self.missed),
        ];
        for (name, help, value) in counters {
            let value = value.load(Ordering::Relaxed);
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
        }
        for (name, help, value) in gauges.rows() {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let metrics = Metrics::default();
        metrics.count_request("GET", "/health", 200, Duration::from_millis(2));
        metrics.count_request("GET", "/health", 200, Duration::from_secs(100));
        let gauges =
            Gauges { streams: 3, followed: 1, running: 2, failed: 0, free_readers: 8, free_writers: 8 };
        let text = metrics.text(&gauges);
        let labels = "method=\"GET\",route=\"/health\",status=\"200\"";
        for line in [
            format!("backstitch_http_request_seconds_bucket{{{labels},le=\"0.001\"}} 0"),
            format!("backstitch_http_request_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("backstitch_http_request_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("backstitch_http_request_seconds_count{{{labels}}} 2"),
            "backstitch_streams_open 3".to_owned(),
            "# TYPE backstitch_events_total counter".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
