//! Processes that kill themselves where they are told to.
//!
//! A test starts a process with [`VARIABLE`] set to a [`Crash`]; that process calls [`arm`], and dies by SIGKILL when it
//! reaches the named crash point for the given time: nothing is flushed, nothing is dropped, no handler runs. Without the
//! variable it only counts, so that a run without a crash tells which points there are to die at, and how often
//! ([`hits`]).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use backstitch_core::crash::{POINTS, at_every_point};
use rustix::process::{Signal, getpid, kill_process};

/// The variable that says where the process dies.
pub const VARIABLE: &str = "BACKSTITCH_CRASH";

/// Where a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crash {
    /// The point; without one, all of them count.
    pub point: Option<&'static str>,
    /// At which time that it is reached, from 1.
    pub hit: u64,
}

impl Crash {
    /// Dies when a point is reached for this time.
    pub fn at(point: &str, hit: u64) -> Self {
        let known = POINTS.iter().find(|known| **known == point);
        Self { point: Some(known.unwrap_or_else(|| panic!("there is no crash point {point:?}"))), hit }
    }

    /// Dies when this many points were reached, whichever they are.
    pub fn after_points(hit: u64) -> Self {
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
            _ => Err(format!("{text:?} names no crash: say POINT#HIT, or *#HIT")),
        }
    }
}

static CRASH: OnceLock<Option<Crash>> = OnceLock::new();
static HITS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// From now on this process counts the crash points that it reaches, and dies where [`VARIABLE`] says.
pub fn arm() {
    let told = std::env::var(VARIABLE).ok();
    let crash = told.map(|told| told.parse().unwrap_or_else(|error: String| panic!("{error}")));
    CRASH.set(crash).expect("a process is armed once");
    at_every_point(reached);
}

/// How often this process has reached each point since it was armed.
pub fn hits() -> BTreeMap<&'static str, u64> {
    lock().clone()
}

fn reached(point: &'static str) {
    // Held while dying, so that no other thread gets past a point that this one dies at.
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

/// Ends this process at once, as a loss of power would.
pub fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    loop {
        std::thread::park();
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<&'static str, u64>> {
    HITS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_written_and_read() {
        for crash in [Crash::at("append.before", 3), Crash::after_points(17)] {
            assert_eq!(crash.to_string().parse(), Ok(crash));
        }
        for wrong in ["append.before", "append.during#1", "append.before#x", ""] {
            assert!(wrong.parse::<Crash>().is_err(), "{wrong}");
        }
    }
}
