//! What a session waits for, and when a heartbeat about it is due.
//!
//! A heartbeat follows every ten seconds without other output. It names the call that has run longest, or the
//! model, with the time since that call or the request began; before a retry, the reason of the backoff. A call that waits for a person does not run.

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
    /// Why a request is retried, and when.
    retry: Option<(String, Instant)>,
}

/// What a session waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) what: String,
    pub(super) seconds: u64,
}

impl Heartbeat {
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now, request: None, calls: BTreeMap::new(), retry: None }
    }

    /// Something was printed.
    pub(super) fn touch(&mut self, now: Instant) {
        self.last = now;
    }

    /// A request is sent to the model.
    pub(super) fn note_request(&mut self, now: Instant) {
        (self.request, self.retry) = (Some(now), None);
    }

    /// A request is sent again at a time.
    pub(super) fn note_retry(&mut self, reason: &str, at: Instant) {
        self.retry = Some((reason.to_owned(), at));
    }

    /// The model has answered.
    pub(super) fn note_answer(&mut self) {
        (self.request, self.retry) = (None, None);
    }

    pub(super) fn note_call(&mut self, call: CallId, name: &str, now: Instant) {
        self.calls.insert(call, (name.to_owned(), now));
    }

    /// Whether a call has not ended.
    pub(super) fn has_call(&self, call: CallId) -> bool {
        self.calls.contains_key(&call)
    }

    /// A call waits for a person.
    pub(super) fn note_question(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    /// The time since the last output.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last)
    }

    /// Returns what the session waits for.
    pub(super) fn wait(&self, now: Instant) -> Wait {
        let longest = self.calls.values().min_by_key(|(_, began)| *began);
        let (what, began) = match (longest, &self.retry) {
            (Some((name, began)), _) => (name.clone(), *began),
            (None, Some((reason, at))) if *at > now => {
                let seconds = at.saturating_duration_since(now).as_secs();
                return Wait { what: format!("the next attempt ({reason})"), seconds };
            }
            _ => ("the model".to_owned(), self.request.unwrap_or(self.last)),
        };
        Wait { what, seconds: now.saturating_duration_since(began).as_secs() }
    }

    /// Returns how long the call ran.
    pub(super) fn end_call(&mut self, call: CallId, now: Instant) -> Option<Duration> {
        self.calls.remove(&call).map(|(_, began)| now.saturating_duration_since(began))
    }

    /// Returns what to print now, if it is time.
    pub(super) fn due(&mut self, now: Instant) -> Option<Wait> {
        if self.silence(now) < SILENCE {
            return None;
        }
        let wait = self.wait(now);
        self.last = now;
        Some(wait)
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

    #[test]
    fn a_call_that_waits_for_a_person_does_not_run() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        let ids = backstitch::host::entropy::fresh_ids(std::sync::Arc::new(backstitch::SystemClock::new()))
            .unwrap();
        let call: CallId = ids.next();
        heartbeat.note_call(call, "shell", start);
        heartbeat.note_question(call);
        assert_eq!(heartbeat.end_call(call, start + Duration::from_secs(3)), None);
    }

    #[test]
    fn a_backoff_has_the_time_that_is_left() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        heartbeat.note_request(start);
        heartbeat.note_retry("rate_limit", start + Duration::from_secs(8));
        let left = wait("the next attempt (rate_limit)", 3);
        assert_eq!(heartbeat.wait(start + Duration::from_secs(5)), left);
        assert_eq!(heartbeat.wait(start + Duration::from_secs(9)), wait("the model", 9));
    }
}
