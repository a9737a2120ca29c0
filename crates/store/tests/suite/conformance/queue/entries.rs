//! Properties of entries: what enters the queue, what it lists, and in which order it is taken.

use backstitch_core::journal::{Origin, Position, QueueEntry};
use backstitch_core::ports::{
    ClaimMode, ErasureMode, ForkRemoval, Owner, Queue, QueueQuery, QueueState, Removal, Schedule,
    SessionCursor, Store, StoreError, TakeRequest,
};
use backstitch_core::time::Clock as _;
use backstitch_testkit::{block_on, sample};

use super::super::{Writer, append, claim, first_batch, written};
use super::{
    AGENT, enqueued, entry, future, listed, past, sessions_of, state_of, take, take_one, try_enqueued,
};

/// The entry is stored with the records. No worker takes the session before its creator releases it, and then with a claim like any
/// other.
pub(crate) fn a_session_is_enqueued_with_its_first_batch(store: &dyn Store, queue: &dyn Queue) {
    let wanted = entry().with_priority(-3).with_due(past(1)).with_tag("b").with_tag("a").with_key("k");
    let session = sample::session(1);
    let held = claim(store, session, "creator", ClaimMode::IfFree).expect("it is free");
    let mut batch = first_batch(session);
    batch.enqueue(wanted.clone());
    append(store, session, Position::START, held.fence, batch).expect("a session can be created");
    assert_eq!(state_of(queue, session), Some(QueueState::Ready));
    assert!(take(queue, 1).is_empty(), "its creator holds it");
    block_on(store.release(held)).expect("it is held");

    let taken = take_one(queue);
    assert_eq!((taken.claim.session, &taken.entry, taken.attempts), (session, &wanted, 0));
    assert_eq!(state_of(queue, session), Some(QueueState::Held));
    assert_eq!(block_on(store.holder(session)).expect("holders are known"), Some(Owner::new("worker")));
    assert!(block_on(store.is_current(session, taken.claim.fence)).expect("claims are known"));
    let notes = sample::notes(["by the worker"]);
    append(store, session, Position::new(1), taken.claim.fence, notes).expect("its worker may write");
    assert_fails!(claim(store, session, "other", ClaimMode::IfFree), StoreError::Held { .. });
}

/// Neither the entry nor the key of a refused batch is stored.
pub(crate) fn a_refused_batch_enqueues_nothing(store: &dyn Store, queue: &dyn Queue) {
    let writer = Writer::create(store, sample::session(1));
    let mut batch = first_batch(writer.session());
    batch.enqueue(entry().with_key("k"));
    assert_fails!(
        append(store, writer.session(), Position::START, writer.claim.fence, batch),
        StoreError::Conflict { .. }
    );
    assert!(listed(queue).is_empty());
    assert_eq!(block_on(queue.keyed("k")).expect("keys can be read"), None);
}

/// A session that exists enters the queue by itself; a key gives the session that it was used for.
pub(crate) fn a_session_that_exists_is_enqueued(store: &dyn Store, queue: &dyn Queue) {
    let (one, two) = (written(store, 1, Origin::Root, []), written(store, 2, Origin::Root, []));
    let enqueue = |session, entry| block_on(queue.enqueue(session, entry));
    assert_eq!(enqueue(one, entry().with_key("k")).expect("it exists"), one);
    assert_eq!(enqueue(two, entry().with_key("k")).expect("it exists"), one);
    assert_eq!(state_of(queue, two), None);
    assert_fails!(enqueue(sample::session(3), entry()), StoreError::NotFound { .. });
    // Again, with another entry.
    assert_eq!(enqueue(one, entry().with_due(future(1)).with_tag("t")).expect("it exists"), one);
    assert_eq!(state_of(queue, one), Some(QueueState::Waiting));
    enqueue(one, entry()).expect("it exists");
    let taken = take_one(queue);
    assert!(taken.entry.tags.is_empty());
    enqueue(one, entry().with_priority(7)).expect("it exists");
    assert_eq!(listed(queue)[0].entry.priority, 0, "a session that is held keeps its entry");
}

/// With the session go its entry and its key.
pub(crate) fn a_removed_session_leaves_the_queue(store: &dyn Store, queue: &dyn Queue) {
    let session = enqueued(store, 1, entry().with_key("k"));
    let removal = Removal {
        sessions: vec![session],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: sample::clock().now(),
        mode: ErasureMode::Now,
    };
    block_on(store.remove(removal)).expect("it is free");
    assert!(listed(queue).is_empty() && take(queue, 1).is_empty());
    assert_eq!(block_on(queue.keyed("k")).expect("keys can be read"), None);
    assert_eq!(enqueued(store, 2, entry().with_key("k")), sample::session(2));
}

/// Words that not every store can keep are refused, and nothing is written.
pub(crate) fn words_that_cannot_be_kept_are_refused(store: &dyn Store, queue: &dyn Queue) {
    let long = "x".repeat(401);
    for word in ["", "a\0b", "a\nb", &long] {
        for entry in [QueueEntry::new(word), entry().with_key(word), entry().with_tag(word)] {
            assert_fails!(try_enqueued(store, 1, entry), StoreError::QueueWord { .. });
        }
        assert_fails!(block_on(queue.set_limit(word, Some(1))), StoreError::QueueWord { .. });
    }
    let many = (0..33).fold(entry(), |entry, tag| entry.with_tag(tag.to_string()));
    assert_fails!(try_enqueued(store, 1, many), StoreError::QueueWord { .. });
    assert!(block_on(store.sessions()).expect("sessions can be listed").is_empty());
    enqueued(store, 1, entry().with_key("x".repeat(400)).with_tag("ü 🧵 'quoted\" {a,b}"));
    assert_eq!(listed(queue)[0].entry.tags.first().map(String::as_str), Some("ü 🧵 'quoted\" {a,b}"));
}

/// The priority counts first, then the time, then the order of creation.
pub(crate) fn sessions_are_taken_by_priority_and_then_by_time(store: &dyn Store, queue: &dyn Queue) {
    let places = [(0, 5), (9, 7), (-1, 1), (9, 3), (0, 5), (0, 4)];
    for (seed, (priority, seconds)) in (1..).zip(places) {
        enqueued(store, seed, entry().with_priority(priority).with_due(past(seconds)));
    }
    let order = [4, 2, 6, 1, 5, 3].map(sample::session);
    assert_eq!(sessions_of(&take(queue, 2)), order[..2]);
    assert_eq!(sessions_of(&take(queue, 3)), order[2..5]);
    assert_eq!(sessions_of(&take(queue, 3)), order[5..]);
    assert!(take(queue, 3).is_empty());
}

/// A worker takes sessions of the agents that it knows, and of no others.
pub(crate) fn sessions_of_other_agents_stay(store: &dyn Store, queue: &dyn Queue) {
    enqueued(store, 1, QueueEntry::new("cutter").with_priority(9));
    let own = enqueued(store, 2, entry());
    assert_eq!(sessions_of(&take(queue, 5)), [own]);
    let none = TakeRequest { owner: Owner::new("worker"), agents: Vec::new(), limit: 5 };
    assert!(block_on(queue.take(none)).expect("sessions can be taken").is_empty());
    let counts = block_on(queue.counts()).expect("the queue can be counted");
    let counts: Vec<_> =
        counts.iter().map(|count| (count.agent.as_str(), count.state, count.sessions)).collect();
    assert_eq!(counts, [("cutter", QueueState::Ready, 1), (AGENT, QueueState::Held, 1)]);
}

/// What a person holds is not taken, and stays where it is in the queue.
pub(crate) fn a_session_that_is_held_otherwise_is_not_taken(store: &dyn Store, queue: &dyn Queue) {
    let (one, two) = (enqueued(store, 1, entry()), enqueued(store, 2, entry()));
    let held = claim(store, one, "person", ClaimMode::IfFree).expect("it is free");
    assert_eq!(sessions_of(&take(queue, 5)), [two]);
    block_on(store.release(held)).expect("it is held");
    assert_eq!(sessions_of(&take(queue, 5)), [one]);
}

/// A session with a time is taken then and not before, whatever its priority, and an item does not start it early.
pub(crate) fn a_session_waits_for_its_time(store: &dyn Store, queue: &dyn Queue) {
    let agents = || vec![AGENT.to_owned()];
    let next = || block_on(queue.next_due(agents())).expect("times can be read");
    assert_eq!(next(), None);
    let later = enqueued(store, 1, entry().with_priority(9).with_due(future(5)));
    enqueued(store, 2, QueueEntry::new("cutter").with_due(future(1)));
    let now = enqueued(store, 3, entry());
    assert_eq!(next(), Some(future(5)));
    block_on(store.send(later, sample::item("hurry"))).expect("it exists");
    assert_eq!(sessions_of(&take(queue, 5)), [now]);
    assert_eq!(state_of(queue, later), Some(QueueState::Waiting));
    // A time that has come, by the clock of the store.
    block_on(queue.enqueue(later, entry().with_due(past(1)))).expect("it exists");
    assert_eq!(state_of(queue, later), Some(QueueState::Ready));
    let taken = take_one(queue);
    assert_eq!((taken.claim.session, taken.entry.due), (later, Some(past(1))));
}

/// Pages are full, and select by state and agent.
pub(crate) fn pages_list_the_queue_in_the_order_of_creation(store: &dyn Store, queue: &dyn Queue) {
    for seed in 1..=7 {
        let agent = if seed % 2 == 0 { "cutter" } else { AGENT };
        let entry = QueueEntry::new(agent).with_priority(seed as i16).with_tag(seed.to_string());
        enqueued(store, seed, if seed == 5 { entry.with_due(future(1)) } else { entry });
    }
    let page = |query: QueueQuery| block_on(queue.queued(query)).expect("the queue can be listed");
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let found = page(QueueQuery { limit: 3, after: after.take(), ..QueueQuery::default() });
        all.extend(found.sessions);
        match found.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let ids: Vec<_> = all.iter().map(|queued| queued.session).collect();
    assert_eq!(ids, (1..=7).map(sample::session).collect::<Vec<_>>());
    assert_eq!((all[4].state, all[4].entry.due), (QueueState::Waiting, Some(future(1))));
    let of = |state, agent: Option<&str>| {
        let agent = agent.map(str::to_owned);
        page(QueueQuery { state, agent, limit: 100, ..QueueQuery::default() }).sessions.len()
    };
    assert_eq!((of(Some(QueueState::Ready), None), of(Some(QueueState::Waiting), None)), (6, 1));
    assert_eq!((of(None, Some("cutter")), of(Some(QueueState::Ready), Some(AGENT))), (3, 3));
    let unknown = QueueQuery { after: Some(SessionCursor::new("x")), ..QueueQuery::default() };
    assert_fails!(block_on(queue.queued(unknown)), StoreError::UnknownCursor { .. });
}

/// Of several workers that see a schedule due, one moves it on; all of them enqueue the same session.
pub(crate) fn schedules_advance_once(store: &dyn Store, queue: &dyn Queue) {
    let request = serde_json::json!({ "agent": "tailor", "text": "a \u{0} b" });
    let nightly =
        Schedule { name: "nightly".into(), cron: "0 3 * * *".into(), request, next: past(1), last: None };
    let other = Schedule { name: "hourly".into(), next: future(1), ..nightly.clone() };
    for schedule in [&nightly, &other] {
        block_on(queue.put_schedule(schedule.clone())).expect("schedules can be kept");
    }
    let schedules = || block_on(queue.schedules()).expect("schedules can be read");
    assert_eq!(schedules(), [other.clone(), nightly.clone()]);
    assert_eq!(block_on(queue.next_due(Vec::new())).expect("times can be read"), Some(past(1)));

    let session = enqueued(store, 1, entry().with_key(nightly.key()));
    let again = try_enqueued(store, 2, entry().with_key(nightly.key()));
    assert_fails!(again, StoreError::KeyUsed { session: used, .. } if used == session);
    let advance = || {
        block_on(queue.advance_schedule("nightly", past(1), future(2), session)).expect("it can be moved on")
    };
    assert_eq!([advance(), advance()], [true, false]);
    let moved = Schedule { next: future(2), last: Some(session), ..nightly };
    assert_eq!(schedules(), [other, moved]);
    let remove = || block_on(queue.remove_schedule("hourly")).expect("schedules can be removed");
    assert_eq!([remove(), remove()], [true, false]);
}
