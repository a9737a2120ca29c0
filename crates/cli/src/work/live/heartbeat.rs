//! When a heartbeat is due during a long wait, and what it says.
//!
//! A heartbeat follows every ten seconds without other output. It names the call that has run longest, or the
//! model, with the time since that call or the request began.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backstitch::id::CallId;

/// Time without output after which a heartbeat is printed, and between two of them.
const SILENCE: Duration = Duration::from_secs(10);

/// The open request and calls of a session, and the time of the last output.
pub(super) struct Heartbeat {
    /// Time of the last output or heartbeat.
    last: Instant,
    /// Start of the open request.
    request: Option<Instant>,
    /// Names and start times of the calls that have not ended.
    calls: BTreeMap<CallId, (String, Instant)>,
}

/// What a session waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) what: String,
    pub(super) seconds: u64,
}

impl Heartbeat {
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now, request: None, calls: BTreeMap::new() }
    }

    /// Something was printed.
    pub(super) fn touch(&mut self, now: Instant) {
        self.last = now;
    }

    /// A request is sent to the model.
    pub(super) fn note_request(&mut self, now: Instant) {
        self.request = Some(now);
    }

    /// The model has answered.
    pub(super) fn note_answer(&mut self) {
        self.request = None;
    }

    pub(super) fn note_call(&mut self, call: CallId, name: &str, now: Instant) {
        self.calls.insert(call, (name.to_owned(), now));
    }

    /// Returns how long the call ran.
    pub(super) fn end_call(&mut self, call: CallId, now: Instant) -> Option<Duration> {
        self.calls.remove(&call).map(|(_, began)| now.saturating_duration_since(began))
    }

    /// Returns what to print now, if it is time.
    pub(super) fn due(&mut self, now: Instant) -> Option<Wait> {
        if now.saturating_duration_since(self.last) < SILENCE {
            return None;
        }
        let longest = self.calls.values().min_by_key(|(_, began)| *began);
        let (what, began) = match longest {
            Some((name, began)) => (name.clone(), *began),
            None => ("the model".to_owned(), self.request.unwrap_or(self.last)),
        };
        self.last = now;
        Some(Wait { what, seconds: now.saturating_duration_since(began).as_secs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the heartbeats of the seconds from 1 to `seconds`.
    fn beats(heartbeat: &mut Heartbeat, start: Instant, seconds: u64) -> Vec<Wait> {
        (1..=seconds).filter_map(|second| heartbeat.due(start + Duration::from_secs(second))).collect()
    }

    fn wait(what: &str, seconds: u64) -> Wait {
        Wait { what: what.to_owned(), seconds }
    }

    #[test]
    fn heartbeats_report_the_time_since_the_request() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        heartbeat.note_request(start);
        let model = |seconds| wait("the model", seconds);
        assert_eq!(beats(&mut heartbeat, start, 35), [model(10), model(20), model(30)]);
    }

    #[test]
    fn output_delays_a_heartbeat_and_does_not_reset_its_time() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        heartbeat.note_request(start);
        heartbeat.touch(start + Duration::from_secs(5));
        assert_eq!(beats(&mut heartbeat, start, 25), [wait("the model", 15), wait("the model", 25)]);
    }

    #[test]
    fn the_call_that_has_run_longest_is_named() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        let ids = backstitch::host::entropy::fresh_ids(std::sync::Arc::new(backstitch::SystemClock::new()))
            .unwrap();
        let (first, second): (CallId, CallId) = (ids.next(), ids.next());
        heartbeat.note_call(first, "shell", start);
        heartbeat.note_call(second, "grep", start + Duration::from_secs(2));
        assert_eq!(beats(&mut heartbeat, start, 10), [wait("shell", 10)]);
        let end = start + Duration::from_secs(12);
        assert_eq!(heartbeat.end_call(first, end), Some(Duration::from_secs(12)));
        assert_eq!(heartbeat.due(start + Duration::from_secs(20)), Some(wait("grep", 18)));
    }
}
