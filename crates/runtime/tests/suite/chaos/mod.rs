//! Chaos: worker processes are killed and stopped, and their store fails, while they drive many sessions.
//!
//! Four processes work on one queue ([`fleet`]). The tools of the sessions write files, act outside and wait for a person, a signal
//! and a time ([`agents`]); a receiver notes what happens outside ([`outside`]). A seed orders the faults ([`faults`]). The test is
//! the person who approves, and who decides about effects that may have happened ([`people`]). At the end every session has the
//! right answer and the right files, no effect happened twice without a decision, nothing that was acknowledged is missing, and
//! the store is sound ([`checks`]). A standby that lags is another matter: then records are lost ([`lagging`]).
//!
//! `BACKSTITCH_CHAOS_SEED=N` repeats the order of the faults. `BACKSTITCH_CHAOS_SESSIONS=N` runs N sessions, with more faults, in
//! place of a short run.

mod agents;
mod checks;
mod faults;
mod fleet;
mod lagging;
mod outside;
mod people;
mod place;

use std::time::{Duration, Instant};

use backstitch_core::id::SessionId;
use backstitch_core::rng::Seed;
use backstitch_runtime::{EnqueueOptions, Runtime};

use agents::Kind;
use faults::{Fault, Faults};
use fleet::Fleet;
use people::People;
use place::{Backend, Place, WORKERS};

/// Sessions that are started before each fault.
const SESSIONS_PER_FAULT: usize = 3;
/// Room on the disk of the tables, without sessions and for each.
const ROOM: (usize, usize) = (192 << 20, 1 << 20);
/// Sessions that are left when a long run gets a standby.
const SESSIONS_OF_STANDBY: usize = 24;
/// Time between two faults, at least.
const BETWEEN: Duration = Duration::from_millis(500);
/// Time without a session that ends after which a run has failed.
const PATIENCE: Duration = Duration::from_secs(240);

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "== {line}");
}

/// Says how to repeat a run that failed, and ends its processes.
struct Repeat(u64, Fleet);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&format!("chaos failed: repeat it with BACKSTITCH_CHAOS_SEED={}", self.0));
            self.1.kill();
        }
    }
}

/// Starts sessions.
async fn enqueue(place: &Place, runtime: &Runtime, sessions: &mut Vec<(SessionId, Kind)>, count: usize) {
    for _ in 0..count {
        let kind = Kind::ALL[sessions.len() % Kind::ALL.len()];
        let (agent, key) = (kind.agent(place), Some(sessions.len().to_string()));
        let options = EnqueueOptions { key, ..EnqueueOptions::default() };
        // The server may just be away. The key keeps it one session.
        let enqueued = loop {
            match runtime.enqueue(&agent, "sew", options.clone()).await {
                Ok(enqueued) => break enqueued,
                Err(error) => say(&format!("a session is enqueued again: {error}")),
            }
        };
        sessions.push((enqueued.session, kind));
    }
}

/// Runs the sessions through the faults, and checks what is left.
fn run(backend: Backend) {
    let long = number_in("BACKSTITCH_CHAOS_SESSIONS").map(|count| usize::try_from(count).unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number_in("BACKSTITCH_CHAOS_SEED").unwrap_or(u64::from(now.subsec_nanos()));
    let room = ROOM.0 + ROOM.1 * long.unwrap_or_default();
    let Some(place) = Place::new(backend, Some(room as u64)) else { return };
    let opened = place.open(place::TEST).expect("a new store can be opened");
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runtime = opened.runtime(&place, place::TEST);
    let fleet = Fleet::start(&place, WORKERS);
    let _repeat = Repeat(seed, fleet.clone());
    let mut rng = Seed::new(seed).rng();
    let mut plan = Fault::plan(&place, &mut rng, long.is_some());
    let wanted = long.unwrap_or(plan.len() * SESSIONS_PER_FAULT);
    say(&format!("chaos on {backend:?}: {wanted} sessions, seed {seed}"));
    let mut sessions = Vec::new();
    let mut people = People::new(runtime.clone(), &place);
    let mut faults = Faults::new(&place, &fleet, rng);
    let (mut last, mut progress) = (Instant::now(), (0, Instant::now()));
    let mut has_standby = false;
    loop {
        let is_planned = sessions.len() < wanted || (long.is_none() && !plan.is_empty());
        if is_planned && last.elapsed() >= BETWEEN {
            let left = wanted - sessions.len();
            if long.is_some() && left <= SESSIONS_OF_STANDBY && !has_standby {
                faults.prepare_failover();
                has_standby = true;
            }
            tasks.block_on(enqueue(&place, &runtime, &mut sessions, left.min(SESSIONS_PER_FAULT)));
            if plan.is_empty() {
                plan = Fault::plan(&place, faults.rng(), true);
            }
            match has_standby && sessions.len() == wanted {
                true => faults.fail_over(),
                false => faults.begin(plan.remove(0)),
            }
            last = Instant::now();
        }
        let has_faults = faults.are_active();
        let open = tasks.block_on(people.attend(has_faults));
        if !is_planned && !has_faults && open == Some(0) {
            break;
        }
        if is_planned || has_faults || open.is_some_and(|open| open != progress.0) {
            progress = (open.unwrap_or_default(), Instant::now());
        }
        assert!(progress.1.elapsed() < PATIENCE, "{}", tasks.block_on(people.describe_open()));
        std::thread::sleep(Duration::from_millis(50));
    }
    fleet.drain();
    let found = tasks.block_on(checks::check(&place, &opened, &runtime, &sessions, &people));
    say(&format!("chaos on {backend:?}: {found}; {}", faults.summary()));
}

#[test]
fn sessions_survive_the_faults_of_a_server() {
    run(Backend::Postgres);
}

#[test]
fn sessions_survive_the_faults_of_processes_on_one_file() {
    run(Backend::Sqlite);
}
