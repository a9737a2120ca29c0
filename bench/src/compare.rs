//! Comparison with an earlier run, as a table of ratios.
//!
//! Lines belong together if they have the same system, metric and unit, and their words agree; among several the one whose
//! other parameters agree best is taken. So parameters that are measured need not be known here.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use crate::count::NAMES;

/// Figures in parameters that are compared like the value, besides counts.
const TIMES: [&str; 2] = ["minimum", "cpu"];

/// Headings of the columns.
const HEADINGS: [&str; 5] = ["metric", "params", "then", "now", "ratio"];

/// Reads the lines of a run. Fails with a reason for people.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let line = |(number, line): (usize, &str)| {
        let value = serde_json::from_str::<Value>(line).ok().filter(|value| value["metric"].is_string());
        value.ok_or_else(|| format!("{}:{}: not a line of a measurement", path.display(), number + 1))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect()
}

/// Renders the table: a row for each value, each time and each count that both runs have.
pub(crate) fn table(then: &[Value], now: &[Value]) -> String {
    let mut left: Vec<&Value> = then.iter().collect();
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for line in now {
        let best = left.iter().enumerate().filter_map(|(index, old)| Some((agreement(old, line)?, index)));
        // Of equally good ones the first.
        let Some((_, index)) = best.min_by_key(|(agreeing, index)| (usize::MAX - agreeing, *index)) else {
            continue;
        };
        rows.extend(compare(left.remove(index), line));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(width);
    let mut table = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let written = match column {
                0 => write!(table, "{cell:<width$}"),
                1 => write!(table, "  {cell:<width$}"),
                _ => write!(table, "  {cell:>width$}"),
            };
            written.expect("invariant: text can be written to memory");
        }
        table.push('\n');
    }
    table
}

/// Returns the number of parameters that agree; `None` if the lines do not belong together.
fn agreement(then: &Value, now: &Value) -> Option<usize> {
    let same = ["system", "metric", "unit"].iter().all(|name| then[name] == now[name]);
    let (then, now) = (params(then)?, params(now)?);
    let is_word = |name: &str, value: &Value| value.is_string() && name != "outcome";
    let words = |params: &Map<String, Value>| {
        let words = params.iter().filter(|(name, value)| is_word(name, value));
        words.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
    };
    (same && words(then) == words(now)).then(|| shared(then, now).count())
}

fn params(line: &Value) -> Option<&Map<String, Value>> {
    line["params"].as_object()
}

/// Parameters that both lines have with the same value, apart from those that are figures.
fn shared<'a>(
    then: &'a Map<String, Value>,
    now: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let is_figure = |name: &str| TIMES.contains(&name) || NAMES.contains(&name);
    now.iter().filter(move |(name, value)| then.get(*name) == Some(*value) && !is_figure(name))
}

/// The rows of two lines that belong together.
fn compare(then: &Value, now: &Value) -> Vec<[String; HEADINGS.len()]> {
    let metric = now["metric"].as_str().unwrap_or_default();
    let (Some(old), Some(new)) = (params(then), params(now)) else { return Vec::new() };
    let is_effort = |name: &str| matches!(name, "samples" | "per_sample" | "aim" | "outcome");
    let shown: Vec<String> = shared(old, new)
        .filter(|(name, _)| !is_effort(name))
        .map(|(name, value)| {
            format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    let unit = now["unit"].as_str().unwrap_or_default();
    let value = [(format!("{metric} ({unit})"), &then["value"], &now["value"])];
    let figures = TIMES
        .iter()
        .chain(&NAMES)
        .filter_map(|name| Some((format!("{metric} {name}"), old.get(*name)?, new.get(*name)?)));
    let row = |(metric, then, now): (String, &Value, &Value)| {
        let (before, after) = (then.as_f64()?, now.as_f64()?);
        let ratio = if before == after { 1.0 } else { after / before };
        Some([metric, shown.join(" "), then.to_string(), now.to_string(), format!("{ratio:.2}")])
    };
    value.into_iter().chain(figures).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(metric: &str, params: Value, value: f64) -> Value {
        json!({"system": "backstitch", "metric": metric, "params": params, "value": value, "unit": "ns"})
    }

    #[test]
    fn lines_are_compared_with_those_of_the_same_case() {
        let then = [
            line("fold", json!({"turns": 100, "samples": 9, "cpu": 50.0, "of": "all"}), 60.0),
            line("fold", json!({"turns": 500, "samples": 9, "cpu": 80.0, "of": "all"}), 90.0),
            line("fold", json!({"turns": 500, "samples": 9, "cpu": 1.0, "of": "some"}), 2.0),
            line("gone", json!({}), 1.0),
        ];
        let now = [
            line(
                "fold",
                json!({"turns": 500, "samples": 9, "cpu": 40.0, "allocations": 3, "of": "all"}),
                90.0,
            ),
            line("new", json!({}), 1.0),
            line("fold", json!({"turns": 100, "samples": 9, "cpu": 100.0, "of": "all"}), 30.0),
        ];
        let table = table(&then, &now);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [
                &["metric", "params", "then", "now", "ratio"][..],
                &["fold", "(ns)", "turns=500", "of=all", "90.0", "90.0", "1.00"],
                &["fold", "cpu", "turns=500", "of=all", "80.0", "40.0", "0.50"],
                &["fold", "(ns)", "turns=100", "of=all", "60.0", "30.0", "0.50"],
                &["fold", "cpu", "turns=100", "of=all", "50.0", "100.0", "2.00"],
            ]
        );
    }

    #[test]
    fn what_is_not_a_run_is_refused_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        std::fs::write(&path, format!("{}\n\nnonsense\n", line("fold", json!({}), 1.0))).unwrap();
        assert!(read(&path).unwrap_err().ends_with("run:3: not a line of a measurement"));
        assert!(read(&directory.path().join("none")).is_err());
    }
}
