//! The metrics, read by a strict parser of the text form of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use crate::stage::Stage;

/// A sample: its name, its labels and its value.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Reads a name, and returns it with the rest.
fn read_name(text: &str) -> (&str, &str) {
    let is_first = |character: char| character.is_ascii_alphabetic() || character == '_' || character == ':';
    let end = text
        .find(|character: char| !is_first(character) && !character.is_ascii_digit())
        .unwrap_or(text.len());
    assert!(end > 0 && text.starts_with(is_first), "not a name: {text:?}");
    text.split_at(end)
}

/// Reads labels up to the closing brace.
fn read_labels(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, rest) = read_name(text);
        let mut rest = rest.strip_prefix("=\"").expect("a value follows").char_indices();
        let mut value = String::new();
        let end = loop {
            match rest.next().expect("the value ends") {
                (at, '"') => break at,
                (_, '\\') => value.push(match rest.next().expect("something is escaped").1 {
                    'n' => '\n',
                    escaped @ ('\\' | '"') => escaped,
                    other => panic!("\\{other} is not an escape"),
                }),
                (_, character) => value.push(character),
            }
        };
        assert_eq!(labels.insert(name.to_owned(), value), None, "a label is given twice");
        let after = &text[name.len() + 2 + end + 1..];
        match after.strip_prefix(',') {
            Some(more) => text = more,
            None => return (labels, after.strip_prefix('}').expect("the labels end")),
        }
    }
}

fn read_sample(line: &str) -> Sample {
    let (name, rest) = read_name(line);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => read_labels(rest),
        None => (BTreeMap::new(), rest),
    };
    let value = rest.strip_prefix(' ').expect("a value follows").parse().expect("it is a number");
    Sample { name: name.to_owned(), labels, value }
}

/// Reads the whole text. Each family has its help and its type before its samples, and stands together.
fn read(text: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
    assert!(text.ends_with('\n'));
    let (mut kinds, mut samples, mut current) = (BTreeMap::new(), Vec::new(), String::new());
    let mut helped = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, about) = read_name(rest);
            assert!(helped.insert(name.to_owned()) && about.len() > 1, "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = read_name(rest);
            assert!(["counter", "gauge", "histogram"].contains(&kind.trim()), "{line}");
            assert!(helped.contains(name), "{line}");
            assert_eq!(kinds.insert(name.to_owned(), kind.trim().to_owned()), None, "{line}");
            current = name.to_owned();
        } else {
            let sample = read_sample(line);
            let is_histogram = kinds.get(&current).is_some_and(|kind| kind == "histogram");
            let ends: &[&str] = if is_histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(ends.iter().any(|end| sample.name == format!("{current}{end}")), "{line} in {current}");
            let is_same = |other: &Sample| other.name == sample.name && other.labels == sample.labels;
            assert!(!samples.iter().any(is_same), "{line} is there twice");
            samples.push(sample);
        }
    }
    (kinds, samples)
}

#[test]
fn metrics_have_the_form_of_prometheus() {
    let stage = Stage::with_texts(&["Done."]);
    let session = stage.started("Sew.");
    for path in ["/api/v1/sessions", "/nothing-here", &format!("/api/v1/sessions/{session}/calls")] {
        stage.client.send("GET", path, &[], b"");
    }
    let answer = stage.client.send("GET", "/metrics", &[], b"");
    assert_eq!(answer.header("content-type").as_deref(), Some("text/plain; version=0.0.4; charset=utf-8"));
    let (kinds, samples) = read(&answer.text());
    assert_eq!(kinds["backstitch_http_request_seconds"], "histogram");
    assert_eq!(kinds["backstitch_events_total"], "counter");
    assert_eq!(kinds["backstitch_streams_open"], "gauge");
    // A class holds all shorter times, and the last one everything.
    let counts = samples.iter().filter(|sample| sample.name == "backstitch_http_request_seconds_count");
    let mut seen = 0;
    for count in counts {
        let is_of = |bucket: &&Sample| {
            bucket.name == "backstitch_http_request_seconds_bucket"
                && count.labels.iter().all(|(name, value)| bucket.labels.get(name) == Some(value))
        };
        let buckets: Vec<&Sample> = samples.iter().filter(is_of).collect();
        assert!(buckets.is_sorted_by(|one, other| one.value <= other.value), "{buckets:?}");
        let last = buckets.last().unwrap();
        assert_eq!((last.labels["le"].as_str(), last.value), ("+Inf", count.value));
        seen += 1;
    }
    assert!(seen >= 3, "{samples:?}");
    // No path of a client becomes a label.
    let routes: BTreeSet<&String> = samples.iter().filter_map(|sample| sample.labels.get("route")).collect();
    assert!(routes.iter().all(|route| !route.contains(&session) && !route.contains("nothing")), "{routes:?}");
}
