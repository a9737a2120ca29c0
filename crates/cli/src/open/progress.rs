//! Progress of work that takes long, on standard error.

use std::time::{Duration, Instant};

use crate::terminal;

/// How long work takes before it is reported, and between two reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// Prints a line now and then, and nothing for work that is done soon.
pub(crate) struct ProgressLines {
    verb: &'static str,
    what: &'static str,
    last: Instant,
}

impl ProgressLines {
    /// Reports as in `indexed 200 of 10000 sessions`.
    pub(crate) fn new(verb: &'static str, what: &'static str) -> Self {
        Self { verb, what, last: Instant::now() }
    }

    pub(crate) fn report(&mut self, done: usize, total: usize) {
        if self.last.elapsed() >= INTERVAL && !terminal::is_quiet() {
            self.last = Instant::now();
            eprintln!("{} {done} of {total} {}", self.verb, self.what);
        }
    }
}
