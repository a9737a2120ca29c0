//! When a boundary is due.

use std::time::{Duration, Instant};

/// Follows changes, and decides when files are captured.
#[derive(Debug)]
pub(super) struct QuietTracker {
    quiet_for: Duration,
    at_least_every: Duration,
    /// The first and the last change that no capture has seen.
    unseen: Option<(Instant, Instant)>,
}

/// Why files are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing has changed for a moment.
    Quiet,
    /// They have been changing for so long that a capture cannot wait.
    Busy,
}

impl QuietTracker {
    pub(super) fn new(quiet_for: Duration, at_least_every: Duration) -> Self {
        Self { quiet_for, at_least_every, unseen: None }
    }

    /// Notes that something has changed.
    pub(super) fn note_change(&mut self, now: Instant) {
        self.unseen = Some((self.unseen.map_or(now, |(first, _)| first), now));
    }

    /// Returns when the next capture is due, if nothing changes until then.
    pub(super) fn next(&self) -> Option<Instant> {
        let (first, last) = self.unseen?;
        Some((last + self.quiet_for).min(first + self.at_least_every))
    }

    /// Returns why a capture is due now, if it is. All changes until now count as seen from then on.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        let (first, last) = self.unseen?;
        let due = if now >= last + self.quiet_for {
            Due::Quiet
        } else if now >= first + self.at_least_every {
            Due::Busy
        } else {
            return None;
        };
        self.unseen = None;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_waits_for_quiet_and_not_for_ever() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut tracker = QuietTracker::new(Duration::from_secs(2), Duration::from_secs(10));
        assert_eq!((tracker.next(), tracker.take_due(at(100))), (None, None));
        tracker.note_change(at(0));
        tracker.note_change(at(1));
        assert_eq!((tracker.next(), tracker.take_due(at(2))), (Some(at(3)), None));
        assert_eq!(tracker.take_due(at(3)), Some(Due::Quiet));
        assert_eq!(tracker.take_due(at(9)), None);
        for second in 20..30 {
            tracker.note_change(at(second));
            assert_eq!(tracker.take_due(at(second)), None);
        }
        tracker.note_change(at(30));
        assert_eq!((tracker.next(), tracker.take_due(at(30))), (Some(at(30)), Some(Due::Busy)));
    }
}
