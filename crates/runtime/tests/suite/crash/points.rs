//! Processes that kill themselves at a given crash point.
//!
//! A test starts a process with [`VARIABLE`] set to a [`Crash`]. That process calls [`arm`], and kills itself
//! with SIGKILL at the given hit of the named crash point: nothing is flushed, nothing is dropped, no handler
//! runs. Without the variable it only counts, so that a run without a crash shows which points it reaches,
//! and how often ([`hits`]).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use backstitch_core::crash::{POINTS, at_every_point};
use rustix::process::{Signal, getpid, kill_process};

/// The environment variable with the [`Crash`] of the process.
pub(crate) const VARIABLE: &str = "BACKSTITCH_CRASH";

/// The crash point, and its hit, at which a process kills itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crash {
    /// The crash point. If `None`, the hits of all points are added up.
    pub(crate) point: Option<&'static str>,
    /// The number of the hit, from 1.
    pub(crate) hit: u64,
}

impl Crash {
    /// A crash at this hit of a point. Panics if there is no such point.
    pub(crate) fn at(point: &str, hit: u64) -> Self {
        let known = POINTS.iter().find(|known| **known == point);
        Self { point: Some(known.unwrap_or_else(|| panic!("there is no crash point {point:?}"))), hit }
    }

    /// A crash once this many points were reached, whichever they are.
    pub(crate) fn after_points(hit: u64) -> Self {
        Self { point: None, hit }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}#{}", self.point.unwrap_or("*"), self.hit)
    }
}

impl FromStr for Crash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('#').and_then(|(point, hit)| Some((point, hit.parse().ok()?)));
        match parts {
            Some(("*", hit)) => Ok(Self::after_points(hit)),
            Some((point, hit)) if POINTS.contains(&point) => Ok(Self::at(point, hit)),
            _ => Err(format!("{text:?} is not a crash: expected POINT#HIT or *#HIT")),
        }
    }
}

static CRASH: OnceLock<Option<Crash>> = OnceLock::new();
static HITS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Makes this process count the crash points that it reaches, and kill itself at the one in [`VARIABLE`].
pub(crate) fn arm() {
    let told = std::env::var(VARIABLE).ok();
    let crash = told.map(|told| told.parse().unwrap_or_else(|error: String| panic!("{error}")));
    CRASH.set(crash).expect("a process is armed once");
    at_every_point(count_hit);
}

/// How often this process has reached each point since it was armed.
pub(crate) fn hits() -> BTreeMap<&'static str, u64> {
    lock().clone()
}

fn count_hit(point: &'static str) {
    // Held until the process is dead, so that no other thread passes a point after this one was hit.
    let mut hits = lock();
    *hits.entry(point).or_default() += 1;
    let Some(Some(crash)) = CRASH.get() else { return };
    let reached = match crash.point {
        Some(wanted) if wanted == point => hits[point],
        Some(_) => return,
        None => hits.values().sum(),
    };
    if reached == crash.hit {
        die();
    }
}

/// Ends this process at once with SIGKILL.
pub(crate) fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    loop {
        std::thread::park();
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<&'static str, u64>> {
    HITS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_crash_is_written_and_read() {
    for crash in [Crash::at("append.before", 3), Crash::after_points(17)] {
        assert_eq!(crash.to_string().parse(), Ok(crash));
    }
    for wrong in ["append.before", "append.during#1", "append.before#x", ""] {
        assert!(wrong.parse::<Crash>().is_err(), "{wrong}");
    }
}
