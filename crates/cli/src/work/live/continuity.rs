//! Which live pieces follow those before them without a gap.
//!
//! A command whose output is slow, such as one on a stopped terminal, misses live pieces. What follows a gap is not
//! printed: an answer stops where the gap is, and its record, which is never missed, has the rest. A request or a call
//! that starts after a gap is whole again. Records of sub-agents can be missed like live pieces, so their answers are not
//! completed; a line says so.

use std::collections::HashMap;

use backstitch::id::{CallId, SessionId};
use backstitch::journal::RecordBody;

/// The gaps in the live events of a session and its sub-agents.
#[derive(Default)]
pub(super) struct Continuity {
    /// How often live events were missed.
    gaps: u64,
    /// The gaps before the latest attempt of a request, by session.
    answers: HashMap<SessionId, u64>,
    /// The gaps before the start of a call that runs.
    calls: HashMap<CallId, u64>,
}

impl Continuity {
    /// Notes that live events were missed.
    pub(super) fn note_gap(&mut self) {
        self.gaps += 1;
    }

    /// Notes a record of a session: what starts with it has no gap yet.
    pub(super) fn note_record(&mut self, session: SessionId, body: &RecordBody) {
        match body {
            RecordBody::RequestStarted(_) | RecordBody::RequestFailed(_) => {
                self.answers.insert(session, self.gaps);
            }
            RecordBody::CallStarted(started) => {
                self.calls.insert(started.call_id, self.gaps);
            }
            RecordBody::CallFinished(finished) => {
                self.calls.remove(&finished.call_id);
            }
            _ => {}
        }
    }

    /// Whether all pieces of the answer that streams in a session have arrived so far.
    pub(super) fn is_answer_whole(&self, session: SessionId) -> bool {
        self.answers.get(&session).copied().unwrap_or_default() == self.gaps
    }

    /// Whether all output of a call has arrived so far.
    pub(super) fn is_output_whole(&self, call: CallId) -> bool {
        self.calls.get(&call).copied().unwrap_or_default() == self.gaps
    }
}

/// The text of an answer that was printed as it arrived.
pub(super) struct StreamedText {
    session: SessionId,
    turn: u64,
    pub(super) text: String,
    /// Whether pieces of it were left out after a gap.
    pub(super) is_cut: bool,
}

impl StreamedText {
    pub(super) fn new(session: SessionId, turn: u64) -> Self {
        Self { session, turn, text: String::new(), is_cut: false }
    }

    /// Whether this is text of an answer.
    pub(super) fn is_of(&self, session: SessionId, turn: u64) -> bool {
        (self.session, self.turn) == (session, turn)
    }

    /// Whether some of an answer of another session was printed.
    pub(super) fn is_begun_outside(&self, session: SessionId) -> bool {
        self.session != session && !self.text.is_empty()
    }

    /// Returns the part of the whole answer that was not printed. An answer that was cut, and does not begin as it
    /// was printed, is returned as a whole.
    pub(super) fn rest<'a>(&self, whole: &'a str) -> &'a str {
        match whole.strip_prefix(self.text.as_str()) {
            Some(rest) => rest,
            None if self.is_cut => whole,
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use backstitch::journal::RequestStarted;

    use super::*;

    fn session() -> SessionId {
        let clock = std::sync::Arc::new(backstitch::SystemClock::new());
        backstitch::host::entropy::fresh_ids(clock).unwrap().next()
    }

    #[test]
    fn an_answer_is_whole_again_with_the_next_request() {
        let ids = backstitch::host::entropy::fresh_ids(std::sync::Arc::new(backstitch::SystemClock::new()))
            .unwrap();
        let (own, other): (SessionId, SessionId) = (ids.next(), ids.next());
        let started = RecordBody::from(RequestStarted {
            evaluation_id: ids.next(),
            turn: 1,
            provider: "tests".to_owned(),
            model: "tests".to_owned(),
            digest: None,
            length: 0,
            renderer: None,
            reservation: None,
            extra: Default::default(),
        });
        let mut continuity = Continuity::default();
        assert!(continuity.is_answer_whole(own) && continuity.is_answer_whole(other));
        continuity.note_record(own, &started);
        continuity.note_gap();
        assert!(!continuity.is_answer_whole(own) && !continuity.is_answer_whole(other));
        continuity.note_record(own, &started);
        assert!(continuity.is_answer_whole(own) && !continuity.is_answer_whole(other));
    }

    #[test]
    fn the_rest_of_an_answer_follows_what_was_printed() {
        let mut streamed = StreamedText::new(session(), 1);
        assert_eq!(streamed.rest("one two"), "one two");
        streamed.text.push_str("one");
        assert_eq!(streamed.rest("one two"), " two");
        assert_eq!(streamed.rest("one"), "");
        assert_eq!(streamed.rest("***"), "", "a text that was replaced when it was recorded");
        streamed.is_cut = true;
        assert_eq!(streamed.rest("***"), "***");
    }
}
