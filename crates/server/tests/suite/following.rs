//! Streams of events: nothing is missed, many cost little, and each ends with a word.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use backstitch::ports::{ErasureMode, ForkRemoval};
use backstitch_server::ServerLimits;
use backstitch_testkit::api::StreamEvent;
use serde_json::{Value, json};

use crate::stage::{Stage, StageOptions, script, writing_script};

/// Reads events until one satisfies a condition, and returns all of them.
fn until(
    events: &mut impl Iterator<Item = StreamEvent>,
    is_last: impl Fn(&StreamEvent) -> bool,
) -> Vec<StreamEvent> {
    let mut all = Vec::new();
    for event in events {
        all.push(event);
        if all.last().is_some_and(&is_last) {
            return all;
        }
    }
    panic!("the stream ended: {:?}", all.last());
}

fn is_answered(event: &StreamEvent) -> bool {
    event.data["kind"] == "evaluation_finished"
}

/// The positions of the records among events, which are dense.
fn positions(events: &[StreamEvent]) -> Vec<u64> {
    events.iter().filter_map(|event| event.id).collect()
}

#[test]
fn a_stream_has_every_record_in_order_and_the_pieces_of_the_answer() {
    let stage = Stage::with_texts(&["The hem is twelve centimetres long.", "Red."]);
    let session = stage.started("How long is the hem?");
    let path = format!("/api/v1/sessions/{session}/events");
    let mut events = stage.client.events(&path, None);
    let first = until(&mut events, is_answered);
    assert_eq!((first[0].name.as_str(), &first[0].data["from"]), ("begin", &json!(0)));
    let known: Vec<u64> = (0..first.len() as u64 - 1).collect();
    assert_eq!(positions(&first), known);
    stage.client.post(&format!("/api/v1/sessions/{session}/ask"), &json!({ "text": "Which colour?" }));
    let second = until(&mut events, is_answered);
    let after: Vec<u64> = (known.len() as u64..).take(positions(&second).len()).collect();
    assert_eq!(positions(&second), after);
    let pieces: String = second
        .iter()
        .filter(|event| event.name == "live" && event.data["kind"] == "text")
        .map(|event| event.data["text"].as_str().unwrap())
        .collect();
    assert_eq!(pieces, "Red.");
    assert!(second.iter().all(|event| event.name != "missed"), "{second:?}");
}

#[test]
fn a_client_that_reconnects_continues_after_the_last_event_that_it_has() {
    let stage = Stage::new(StageOptions { script: writing_script(), ..StageOptions::default() });
    let session = stage.started("Sew the hem.");
    let path = format!("/api/v1/sessions/{session}/events");
    let all = until(&mut stage.client.events(&path, None), is_answered);
    let last = positions(&all).len() as u64 - 1;
    for from in [0, 3, last - 1] {
        let again = until(&mut stage.client.events(&path, Some(from)), is_answered);
        assert_eq!(positions(&again), (from + 1..=last).collect::<Vec<_>>());
        // The header is stronger than the parameter.
        let both = until(&mut stage.client.events(&format!("{path}?from=head"), Some(from)), is_answered);
        assert_eq!(both, again);
        let asked = until(&mut stage.client.events(&format!("{path}?from={}", from + 1), None), is_answered);
        assert_eq!(positions(&asked), positions(&again));
    }
    let mut new = stage.client.events(&format!("{path}?from=head"), None);
    assert_eq!(new.next().unwrap().data["from"], json!(last + 1));
    stage.client.post(&format!("/api/v1/sessions/{session}/ask"), &json!({ "text": "And now?" }));
    assert_eq!(positions(&until(&mut new, is_answered))[0], last + 1);
    for wrong in ["from=-1", "from=x", "odd=1"] {
        assert_eq!(stage.client.try_get(&format!("{path}?{wrong}")).0, 400, "{wrong}");
    }
    assert_eq!(stage.client.send("GET", &path, &["last-event-id: x"], b"").status, 400);
    let missing = "/api/v1/sessions/0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d/events";
    assert_eq!(stage.client.try_get(missing).0, 404);
}

#[test]
fn records_of_other_processes_are_seen_and_a_removal_ends_the_stream() {
    let stage = Stage::with_texts(&["Done."]);
    let session = stage.started("Sew.");
    let mut events = stage.client.events(&format!("/api/v1/sessions/{session}/events"), None);
    until(&mut events, is_answered);
    // The store is the same, the runtime is not.
    let other = backstitch::Runtime::over(stage.runtime.opened_store().clone());
    let id = session.parse().unwrap();
    stage.block_on(other.rewind(id, backstitch::PointSpec::Start)).unwrap();
    until(&mut events, |event| event.data["kind"] == "rewound");
    let options = backstitch::host::RemoveOptions { forks: ForkRemoval::Include, mode: ErasureMode::Now };
    stage.block_on(other.remove([id], options)).unwrap();
    let last = until(&mut events, |event| event.name == "end");
    assert_eq!(last.last().unwrap().data["reason"], "removed");
    assert_eq!(events.next(), None);
}

#[test]
fn streams_end_with_the_server_and_sessions_can_be_resumed() {
    let mut stage = Stage::with_texts(&["Done."]);
    let session = stage.started("Sew.");
    let mut events = stage.client.events(&format!("/api/v1/sessions/{session}/events"), None);
    until(&mut events, is_answered);
    stage.end();
    let last = until(&mut events, |event| event.name == "end");
    assert_eq!(last.last().unwrap().data["reason"], "shutdown");
}

#[test]
fn there_are_only_so_many_streams_and_places_are_free_again() {
    let limits = ServerLimits { streams: 3, ..ServerLimits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() });
    let session = stage.started("Sew.");
    let path = format!("/api/v1/sessions/{session}/events");
    let mut open: Vec<_> = (0..3).map(|_| stage.client.events(&path, None)).collect();
    let (status, problem) = stage.client.try_get(&path);
    assert_eq!((status, &problem["code"]), (429, &json!("server_busy")));
    until(&mut open[0], is_answered);
    drop(open.pop());
    // The server notices it with the next event for the closed one.
    stage.client.post(&format!("/api/v1/sessions/{session}/send"), &json!({ "text": "Hurry." }));
    for _ in 0..3_000 {
        let answer = stage.client.send("GET", &path, &[], b"");
        if answer.status == 200 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the place of a closed stream is still taken");
}

#[test]
fn a_slow_reader_gets_every_record_once_it_reads() {
    let long = "needle ".repeat(4_000);
    let texts = vec![long.as_str(); 30];
    let limits = ServerLimits { write_seconds: 3_600, ..ServerLimits::default() };
    let stage = Stage::new(StageOptions { script: script(&texts), limits, ..StageOptions::default() });
    let session = stage.started("Sew.");
    let path = format!("/api/v1/sessions/{session}/events");
    let mut slow = stage.client.events(&path, None);
    let mut all = until(&mut slow, is_answered);
    // More than its connection and the feed hold, while it does not read.
    for _ in 1..texts.len() {
        stage.client.post(&format!("/api/v1/sessions/{session}/ask"), &json!({ "text": "More." }));
        stage.settle(&session);
    }
    for _ in 1..texts.len() {
        all.extend(until(&mut slow, is_answered));
    }
    let head = stage.client.get(&format!("/api/v1/sessions/{session}"))["records"].as_u64().unwrap();
    let known = positions(&all);
    assert_eq!(known, (0..known.len() as u64).collect::<Vec<u64>>(), "dense, and each once");
    assert!(known.len() as u64 <= head);
}

#[test]
fn the_list_of_sessions_is_followed() {
    let mut stage = Stage::with_texts(&["Done."]);
    let first = stage.started("Sew.");
    let mut events = stage.client.events("/api/v1/sessions/events", None);
    assert_eq!(events.next().unwrap().name, "begin");
    // A new one, a change of one that was there, and one that is removed.
    let second = stage.started("Mend.");
    until(&mut events, |event| event.name == "session" && event.data["session"] == second.as_str());
    let tags = json!({ "set": { "team": "a" } });
    stage.client.post(&format!("/api/v1/sessions/{first}/tag"), &tags);
    until(&mut events, |event| {
        event.data["session"] == first.as_str() && event.data["tags"] == json!({ "team": "a" })
    });
    assert_eq!(stage.client.try_delete(&format!("/api/v1/sessions/{second}")).0, 200);
    until(&mut events, |event| event.name == "removed" && event.data["session"] == second.as_str());
    stage.end();
    let last = until(&mut events, |event| event.name == "end");
    assert_eq!(last.last().unwrap().data["reason"], "shutdown");
}

/// The memory of this process that is in use, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

#[test]
fn a_thousand_streams_cost_little_and_all_of_them_see_the_answer() {
    let texts = ["Done.", "And done again."];
    let stage = Stage::new(StageOptions {
        script: script(&texts),
        limits: ServerLimits { requests_per_second: 100_000, ..ServerLimits::default() },
        ..StageOptions::default()
    });
    let session = stage.started("Sew.");
    let before = memory();
    let path = format!("/api/v1/sessions/{session}/events");
    let mut streams: Vec<_> = (0..1_000).map(|_| stage.client.events(&path, None)).collect();
    let metrics = stage.client.send("GET", "/metrics", &[], b"").text();
    assert!(metrics.contains("\nbackstitch_streams_open 1000\n"), "{metrics}");
    assert!(metrics.contains("\nbackstitch_sessions_followed 1\n"), "{metrics}");
    stage.client.post(&format!("/api/v1/sessions/{session}/ask"), &json!({ "text": "Again." }));
    for stream in &mut streams {
        until(stream, is_answered);
        until(stream, is_answered);
    }
    let used = memory().saturating_sub(before);
    assert!(used < 200 * 1024, "{used} KiB");
}

#[test]
fn a_stopped_reader_holds_nobody_up() {
    let limits = ServerLimits { write_seconds: 1, ..ServerLimits::default() };
    // A turn has one piece and one record, and no stream skips a record. The buffers of a connection hold four megabytes by default.
    let long = "needle".repeat(50_000);
    let texts = vec![long.as_str(); 48];
    let stage = Stage::new(StageOptions { script: script(&texts), limits, ..StageOptions::default() });
    let session = stage.started("Sew.");
    let path = format!("/api/v1/sessions/{session}/events");
    // It reads nothing of its answer.
    let mut stopped = TcpStream::connect(&stage.client.address).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        stage.client.address, stage.client.token
    );
    stopped.write_all(head.as_bytes()).unwrap();
    // Its answer has begun, so it counts as open.
    stopped.peek(&mut [0; 1]).unwrap();
    let mut reader = stage.client.events(&path, None);
    until(&mut reader, is_answered);
    let mut turns = 1;
    for _ in 0..6_000 {
        // The server closes its connection, and the session is unharmed.
        if stage.client.send("GET", "/metrics", &[], b"").text().contains("\nbackstitch_streams_open 1\n") {
            let status: Value = stage.client.get(&format!("/api/v1/sessions/{session}"));
            assert_eq!(status["status"], "idle");
            let _ = stopped.read(&mut [0; 1]);
            return;
        }
        if turns < texts.len() {
            stage.client.post(&format!("/api/v1/sessions/{session}/ask"), &json!({ "text": "More." }));
            until(&mut reader, is_answered);
            stage.settle(&session);
            turns += 1;
        } else {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    panic!("the stopped reader is still served after {turns} turns");
}
