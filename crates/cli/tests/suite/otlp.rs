//! Traces and metrics over OTLP, read by a receiver that decodes the protocol.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;

use crate::serve::Served;
use crate::stage::{Stage, ended, scripted, signal, wait_until};

/// What a collector received.
#[derive(Default)]
struct ReceivedRequests {
    traces: Vec<ExportTraceServiceRequest>,
    metrics: Vec<ExportMetricsServiceRequest>,
    /// The header `x-key` of each request.
    keys: BTreeSet<String>,
    bytes: Vec<u8>,
}

/// A collector on loopback.
struct Collector {
    url: String,
    received: Arc<Mutex<ReceivedRequests>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(ReceivedRequests::default()));
        let kept = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept.clone();
                std::thread::spawn(move || while receive(&stream, &kept).is_some() {});
            }
        });
        Self { url, received }
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let resources = received.traces.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|one| &one.scope_spans).flat_map(|one| one.spans.clone()).collect()
    }

    /// The names of all metrics.
    fn metrics(&self) -> BTreeSet<String> {
        self.values().into_iter().map(|(name, _)| name).collect()
    }

    /// All metrics with their data.
    fn values(&self) -> Vec<(String, Data)> {
        let received = self.received.lock().unwrap();
        let resources = received.metrics.iter().flat_map(|request| &request.resource_metrics);
        let metrics = resources.flat_map(|one| &one.scope_metrics).flat_map(|one| &one.metrics);
        metrics.filter_map(|metric| Some((metric.name.clone(), metric.data.clone()?))).collect()
    }

    fn stage(&self) -> Stage {
        Stage::new()
            .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &self.url)
            .with_variable("OTEL_EXPORTER_OTLP_HEADERS", "x-key=silk%20thread")
            .with_variable("OTEL_METRIC_EXPORT_INTERVAL", "100")
            .with_variable("OTEL_BSP_SCHEDULE_DELAY", "100")
    }
}

/// Reads a request of a connection, and answers it. `None` at its end.
fn receive(stream: &TcpStream, kept: &Mutex<ReceivedRequests>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut kind, mut key) = (0, String::new(), None);
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "content-type" => kind = value.to_owned(),
            "x-key" => key = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    assert_eq!(kind, "application/x-protobuf");
    let mut received = kept.lock().unwrap();
    match path.as_str() {
        "/v1/traces" => received.traces.push(ExportTraceServiceRequest::decode(&*body).unwrap()),
        "/v1/metrics" => received.metrics.push(ExportMetricsServiceRequest::decode(&*body).unwrap()),
        other => panic!("unknown path {other}"),
    }
    received.keys.extend(key);
    received.bytes.extend(body);
    drop(received);
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
    (&mut &*stream).write_all(answer).ok()
}

fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn a_run_exports_its_spans_and_what_it_used_without_contents() {
    let collector = Collector::start();
    let stage = collector.stage();
    let call =
        json!({"name": "shell", "arguments": {"command": "echo needle-in-a-command; env > variables"}});
    let model = scripted(&stage, &json!([{"call": [call]}, {"text": "The needle-in-an-answer is sharp."}]));
    stage.run(&["run", "Find the needle-in-a-mission", "--model", &model]).worked_quietly();

    let spans = collector.spans();
    let of = |operation: &str| -> Vec<&Span> {
        let is_it =
            |span: &&Span| text(&span.attributes, "gen_ai.operation.name").as_deref() == Some(operation);
        spans.iter().filter(is_it).collect()
    };
    let evaluation = of("invoke_agent")[0];
    assert_eq!((of("chat").len(), of("execute_tool").len()), (2, 1), "{spans:#?}");
    assert_eq!(text(&of("execute_tool")[0].attributes, "gen_ai.tool.name").as_deref(), Some("shell"));
    let session = text(&evaluation.attributes, "gen_ai.conversation.id");
    assert_eq!(session, Some(stage.session()));
    for span in of("chat").into_iter().chain(of("execute_tool")) {
        assert_eq!(span.trace_id, evaluation.trace_id);
        assert!(span.events.is_empty(), "no line of the log: {span:?}");
    }
    let metrics = collector.metrics();
    for name in ["gen_ai.client.operation.duration", "gen_ai.client.token.usage"] {
        assert!(metrics.contains(name), "{metrics:?}");
    }
    let received = collector.received.lock().unwrap();
    let resource = received.traces[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(text(&resource.attributes, "service.name").as_deref(), Some("backstitch"));
    // The key is sent to the collector, and is hidden from commands of the agent. No content is sent.
    assert_eq!(received.keys, BTreeSet::from(["silk thread".to_owned()]));
    assert!(!stage.file("variables").unwrap().contains("OTEL_EXPORTER_OTLP_HEADERS"));
    assert!(!String::from_utf8_lossy(&received.bytes).contains("needle"));
}

#[test]
fn a_server_exports_its_requests_and_runs() {
    let collector = Collector::start();
    let stage = collector.stage();
    stage.run(&["run", "Sew", "--model", &scripted(&stage, &json!([{"text": "Sewn."}]))]).worked_quietly();
    let served = Served::start(&stage, &[]);
    for _ in 0..3 {
        served.client.get("/api/v1/sessions");
    }
    let requests = || {
        let durations =
            collector.values().into_iter().filter(|(name, _)| name == "http.server.request.duration");
        let points = durations.flat_map(|(_, data)| match data {
            Data::Histogram(histogram) => histogram.data_points,
            other => panic!("{other:?}"),
        });
        let of_list = points
            .filter(|point| text(&point.attributes, "http.route").as_deref() == Some("/api/v1/sessions"));
        of_list.map(|point| point.count).max()
    };
    wait_until("the requests are counted", || requests() == Some(3));
    // An earlier one may have been exported while a request read.
    let are_free = || {
        let last = collector.values().into_iter().rfind(|(name, _)| name == "backstitch.readers.free");
        let Some((_, Data::Gauge(gauge))) = last else { return false };
        gauge.data_points[0].value == Some(number_data_point::Value::AsInt(8))
    };
    wait_until("all readers are free", are_free);
    assert_eq!(served.end(), Some(130));
}

#[test]
fn a_worker_exports_what_it_drives() {
    let collector = Collector::start();
    let stage = collector.stage();
    let model = scripted(&stage, &json!([{"text": "Mended."}]));
    stage.run(&["enqueue", "Mend the coat.", "--model", &model]).worked_quietly();
    let worker = stage.command(&["worker", "--json"]).stdout(Stdio::null()).spawn().unwrap();
    let is_evaluation =
        |span: &Span| text(&span.attributes, "gen_ai.operation.name").as_deref() == Some("invoke_agent");
    wait_until("the spans", || collector.spans().iter().any(is_evaluation));
    signal(&worker, "TERM");
    assert_eq!(ended(worker).code, Some(0));
}

#[test]
fn a_collector_that_is_gone_or_wrong_settings_harm_nothing() {
    let stage = Stage::new().with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let model = scripted(&stage, &json!([{"text": "Sewn."}]));
    assert_eq!(stage.run(&["run", "Sew", "--model", &model]).worked_quietly(), "Sewn.\n");
    let stage = stage.with_variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert!(ran.errors.contains("http/protobuf"), "{}", ran.errors);
    assert_eq!(ran.worked_quietly(), "Sewn.\n");
    // Commands that drive nothing export nothing, and say nothing.
    assert!(!stage.run(&["ls"]).errors.contains("http/protobuf"));
    let stage = stage.with_variable("OTEL_SDK_DISABLED", "true");
    assert!(!stage.run(&["run", "Sew", "--model", &model]).errors.contains("http/protobuf"));
    assert_eq!(stage.run(&["run", "Sew", "--model", &model]).worked_quietly(), "Sewn.\n");
}
