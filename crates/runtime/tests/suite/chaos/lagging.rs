//! A standby that lags takes the place of its server while a worker drives sessions: what was acknowledged since is gone.
//!
//! Only the process that got an acknowledgement can know that it is lost, so one worker drives all sessions. Each of them ends right, or stops with
//! the reason: none continues from the older journal, which stays as it is, and no effect happens again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use backstitch_core::id::SessionId;
use backstitch_core::ports::QueueState;

use super::agents::Kind;
use super::fleet::Fleet;
use super::people::People;
use super::place::{Backend, Place, TEST};
use super::{PATIENCE, checks, enqueue, outside, say};

/// Sessions of a run, a quarter of which wait for an approval to act outside.
const SESSIONS: usize = 16;

/// Repeats something until it returns a value.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waits for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn sessions_stop_if_the_new_server_lacks_their_records() {
    let Some(place) = Place::new(Backend::Postgres, None) else { return };
    let server = place.server.as_ref().expect("there is a server");
    let opened = place.open(TEST).expect("a new store can be opened");
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runtime = opened.runtime(&place, TEST);
    server.start_standby();
    let mut sessions = Vec::new();
    tasks.block_on(enqueue(&place, &runtime, &mut sessions, SESSIONS));
    let mut people = People::new(runtime.clone(), &place);
    people.lost = Some(HashSet::new());
    let fleet = Fleet::start(&place, 1);
    let waiting = wait_for("approvals to be asked for", || {
        let queued = tasks.block_on(people.list_queue()).unwrap();
        let asking = queued.iter().filter(|one| {
            one.state == QueueState::Waiting && Kind::of_name(&one.entry.agent) == Some(Kind::Editor)
        });
        let asking: Vec<SessionId> = asking.map(|one| one.session).collect();
        (asking.len() >= 2).then_some(asking)
    });
    server.detach_standby();
    // They are approved now, and the standby does not hear of what they do.
    wait_for("effects of approved calls", || {
        tasks.block_on(people.attend(true));
        let has_acted = |session: &SessionId| !outside::noted(&place.root, *session).is_empty();
        waiting.iter().all(has_acted).then_some(())
    });
    place.fail_over();
    wait_for("the end of all sessions", || (tasks.block_on(people.attend(true)) == Some(0)).then_some(()));
    fleet.drain();
    for session in &waiting {
        assert!(people.is_lost(*session), "{session} continued without its records");
    }
    let found = tasks.block_on(checks::check(&place, &opened, &runtime, &sessions, &people));
    say(&format!("a standby that lags: {} sessions stopped, {found}", people.lost.unwrap_or_default().len()));
}
