//! Processes that are killed at random, several in one session.
//!
//! All random choices follow from a seed, which a failure reports. `BACKSTITCH_CRASH_RUNS` is the number of
//! sessions, and `BACKSTITCH_CRASH_SEED` the seed of the first.

use std::time::Duration;

use backstitch_core::rng::{Rng, Seed};

use super::child::{Death, Role};
use super::matrix::{Reference, resumed};
use super::points::Crash;
use super::session::Unseen;
use super::stage::{Place, Stage};

const RUNS: u64 = 6;
const MOST_KILLS: u64 = 4;

/// Upper bound of the crash point. A session that reaches fewer points would not be killed.
const MOST_POINTS: u64 = 230;

/// About the duration of a session on a busy machine.
const MOST_MILLIS: u64 = 350;

fn told(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|told| told.parse().ok()).unwrap_or(otherwise)
}

/// Starts a process and kills it at a random point or after a random time. Returns a description, and whether
/// it was killed: it may not reach the point, or end before.
fn kill_one(stage: &Stage, rng: &mut Rng) -> (String, bool) {
    if rng.below(2) == 0 {
        let crash = Crash::after_points(1 + rng.below(MOST_POINTS));
        let died = stage.play(Role::End, &Death::At(crash));
        return (format!("point {}{}", crash.hit, if died { "" } else { ", not reached" }), died);
    }
    let millis = rng.below(MOST_MILLIS);
    let mut child = stage.start(Role::End, &Death::None);
    std::thread::sleep(Duration::from_millis(millis));
    let _ = child.kill();
    let died = stage.died(child.wait().unwrap(), "a process that is killed from outside");
    (format!("{millis} ms{}", if died { "" } else { ", which was too late" }), died)
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "long runs report how many processes really died")]
async fn killed_at_random() {
    let (host, memory) = (Reference::of(Place::Host).await, Reference::of(Place::Memory).await);
    let first = told("BACKSTITCH_CRASH_SEED", 1);
    let (mut tried, mut died) = (0, 0);
    for seed in first..first + told("BACKSTITCH_CRASH_RUNS", RUNS) {
        let mut rng = Seed::new(seed).rng();
        let (place, reference) = match rng.below(3) {
            0 => (Place::Memory, &memory),
            _ => (Place::Host, &host),
        };
        let stage = Stage::new(place);
        let kills = 1 + rng.below(MOST_KILLS);
        let killed: Vec<_> = (0..kills).map(|_| kill_one(&stage, &mut rng)).collect();
        tried += killed.len();
        died += killed.iter().filter(|(_, died)| *died).count();
        let killed: Vec<_> = killed.into_iter().map(|(what, _)| what).collect();
        let what = format!("seed {seed}, files {place:?}, killed after {killed:?}");
        resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, &what);
    }
    eprintln!("{died} of {tried} attempts killed a process");
    assert!(died > 0, "no process was killed, so nothing was tested");
}
