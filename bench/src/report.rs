//! Measurements as JSON lines.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::count::NAMES;
use crate::measure::Timing;

/// All lines that were printed.
static LINES: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Returns the lines that were printed so far.
pub(crate) fn lines() -> Vec<Value> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Prints a line.
pub(crate) fn print(line: Value) {
    println!("{line}");
    LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line);
}

/// Prints measurements.
pub(crate) struct Report {
    system: &'static str,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self::of("backstitch")
    }

    /// Prints measurements of another system.
    pub(crate) fn of(system: &'static str) -> Self {
        Self { system }
    }

    /// Prints a time, in nanoseconds, with the counts of a run. `params` say what was measured.
    pub(crate) fn time(&mut self, metric: &str, params: Value, timing: &Timing) {
        let mut all = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        all.insert("minimum".into(), rounded(timing.minimum));
        all.insert("cpu".into(), rounded(timing.cpu));
        for (name, count) in NAMES.into_iter().zip(timing.counts.0) {
            if let Some(count) = count {
                all.insert(name.into(), rounded(count));
            }
        }
        all.insert("samples".into(), timing.samples.into());
        all.insert("per_sample".into(), timing.per_sample.into());
        self.value(metric, Value::Object(all), timing.median, "ns");
    }

    /// Prints a ratio, to the hundredth.
    pub(crate) fn ratio(&mut self, metric: &str, params: Value, value: f64) {
        self.precise(metric, params, value, "ratio");
    }

    /// Prints a number of any unit, to the hundredth.
    pub(crate) fn precise(&mut self, metric: &str, params: Value, value: f64, unit: &str) {
        self.line(metric, params, json!(ratio(value)), unit);
    }

    /// Prints a number of any unit, to the tenth.
    pub(crate) fn value(&mut self, metric: &str, params: Value, value: f64, unit: &str) {
        self.line(metric, params, rounded(value), unit);
    }

    fn line(&mut self, metric: &str, params: Value, value: Value, unit: &str) {
        let system = self.system;
        print(json!({ "system": system, "metric": metric, "params": params, "value": value, "unit": unit }));
    }
}

/// Rounds to the hundredth.
pub(crate) fn ratio(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Rounds to the tenth: no measurement here is more precise.
fn rounded(value: f64) -> Value {
    json!((value * 10.0).round() / 10.0)
}
