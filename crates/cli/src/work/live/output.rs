//! Live output of calls, limited to a number of lines per call.

use std::collections::HashMap;

use backstitch::id::CallId;

/// Number of lines of a call that are shown as they arrive. The others are counted.
const MOST_LINES: usize = 12;

/// Lines of output of the calls that run.
#[derive(Default)]
pub(super) struct OutputLines(HashMap<CallId, usize>);

impl OutputLines {
    /// Returns the lines of a piece of output that are shown.
    pub(super) fn visible_lines<'a>(&mut self, call: CallId, text: &'a str) -> Vec<&'a str> {
        let count = self.0.entry(call).or_default();
        let mut shown = Vec::new();
        for line in text.lines() {
            *count += 1;
            if *count <= MOST_LINES {
                shown.push(line);
            }
        }
        shown
    }

    /// Forgets a call whose output has a gap, so that its result is printed instead.
    pub(super) fn forget(&mut self, call: CallId) {
        self.0.remove(&call);
    }

    /// Forgets a call that has ended, and returns the number of its lines that were not shown. `None` if it had no
    /// output.
    pub(super) fn rest(&mut self, call: CallId) -> Option<usize> {
        Some(self.0.remove(&call)?.saturating_sub(MOST_LINES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_are_shown_and_the_rest_is_counted() {
        let ids = backstitch::host::entropy::fresh_ids(std::sync::Arc::new(backstitch::SystemClock::new()))
            .unwrap();
        let (loud, quiet): (CallId, CallId) = (ids.next(), ids.next());
        let mut lines = OutputLines::default();
        assert_eq!(lines.visible_lines(loud, &"x\n".repeat(10)).len(), 10);
        assert_eq!(lines.visible_lines(loud, &"y\n".repeat(10)), ["y", "y"]);
        assert_eq!(lines.visible_lines(loud, "z\n"), Vec::<&str>::new());
        assert_eq!(lines.visible_lines(quiet, "one\ntwo"), ["one", "two"]);
        assert_eq!((lines.rest(loud), lines.rest(quiet), lines.rest(quiet)), (Some(9), Some(0), None));
    }
}
