//! What stores promise about queries: conditions select, pages are full, cursors stay valid, and claims and inboxes are joined
//! as they are.

use std::collections::BTreeSet;
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{EvaluationOutcome, JournalState, Origin, Position, SessionSummary};
use backstitch_core::ports::{
    ClaimMode, IndexedStatus, OriginKind, Owner, SessionCursor, SessionOrder, SessionPage, SessionQuery,
    Store, StoreError, TimeRange,
};
use backstitch_core::time::Timestamp;
use backstitch_testkit::{block_on, sample};

use super::claim;
use super::index::indexed;

fn page(store: &dyn Store, query: SessionQuery) -> SessionPage {
    block_on(store.query(query)).expect("sessions can be queried")
}

fn ids(page: &SessionPage) -> Vec<SessionId> {
    page.sessions.iter().map(|one| one.summary.session).collect()
}

/// All results of a query, page by page; the count says the same.
fn all(store: &dyn Store, query: SessionQuery) -> Vec<SessionId> {
    let (mut found, mut query) = (Vec::new(), query);
    let count = block_on(store.count(query.clone())).expect("sessions can be counted");
    loop {
        let page = page(store, query.clone());
        assert!(page.sessions.len() <= query.limit);
        assert!(page.next.is_none() || page.sessions.len() == query.limit, "only the last page is short");
        found.extend(ids(&page));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(count, found.len() as u64);
    found
}

/// Creates a session with this summary, and releases it.
fn create(store: &dyn Store, summary: SessionSummary) -> SessionId {
    indexed(store, summary).release()
}

fn at(seconds: u64) -> Timestamp {
    sample::summary(sample::session(1)).created_at.saturating_add(Duration::from_secs(seconds))
}

/// Each condition selects the sessions that fulfil it, and only those.
pub(crate) fn queries_select_by_every_condition(store: &dyn Store) {
    let new = |seed| sample::summary(sample::session(seed));
    let tags =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let plain = create(store, new(1));
    let failed = SessionSummary {
        state: JournalState::Failed,
        outcome: Some(EvaluationOutcome::Failed),
        tags: tags(&[("team", "a"), ("level", "1")]),
        agent: Some("tailor".into()),
        name: Some("hem".into()),
        ..new(2)
    };
    let failed = create(store, failed);
    let fork = SessionSummary {
        origin: Origin::Fork { session: plain, position: Position::new(1) },
        outcome: Some(EvaluationOutcome::Completed),
        workspace: Some("/home/ada".into()),
        created_at: at(100),
        updated_at: at(500),
        ..new(3)
    };
    let fork = create(store, fork);
    let child = SessionSummary {
        origin: Origin::Call { session: failed, call: sample::ids(77).next() },
        state: JournalState::Paused,
        tags: tags(&[("team", "b")]),
        created_at: at(200),
        updated_at: at(300),
        ..new(4)
    };
    let child = create(store, child);

    let select = |query: SessionQuery| all(store, query.with_order(SessionOrder::OldestFirst));
    let query = SessionQuery::new;
    assert_eq!(select(query()), [plain, failed, fork, child]);
    assert_eq!(all(store, query()), [child, fork, failed, plain]);
    assert_eq!(select(query().with_status(IndexedStatus::Failed)), [failed]);
    assert_eq!(
        select(query().with_status(IndexedStatus::Paused).with_status(IndexedStatus::Idle)),
        [plain, fork, child]
    );
    assert_eq!(select(query().with_status(IndexedStatus::Running)), []);
    assert_eq!(select(query().with_outcome(EvaluationOutcome::Completed)), [fork]);
    assert_eq!(
        select(query().with_outcome(EvaluationOutcome::Completed).with_outcome(EvaluationOutcome::Failed)),
        [failed, fork]
    );
    assert_eq!(select(query().with_tag("team", "a")), [failed]);
    assert_eq!(select(query().with_tag("team", "a").with_tag("level", "1")), [failed]);
    assert_eq!(select(query().with_tag("team", "a").with_tag("level", "2")), []);
    assert_eq!(select(query().with_tag("Team", "a")), []);
    assert_eq!(select(query().with_agent("tailor")), [failed]);
    assert_eq!(select(query().with_agent("Tailor")), []);
    assert_eq!(select(query().with_name("hem")), [failed]);
    assert_eq!(select(query().with_name("he")), []);
    assert_eq!(select(query().with_workspace("/home/ada")), [fork]);
    assert_eq!(select(query().with_origin(OriginKind::Root)), [plain, failed]);
    assert_eq!(select(query().with_origin(OriginKind::Fork).with_origin(OriginKind::Call)), [fork, child]);
    assert_eq!(select(query().with_parent(plain)), [fork]);
    assert_eq!(select(query().with_parent(plain).with_parent(failed)), [fork, child]);
    assert_eq!(select(query().with_parent(child)), []);
    assert_eq!(select(query().with_sessions(vec![child, plain, sample::session(9)])), [plain, child]);
    assert_eq!(select(query().with_sessions(Vec::new())), []);
    assert_eq!(select(query().with_created(TimeRange::since(at(100)))), [fork, child]);
    assert_eq!(select(query().with_created(TimeRange { since: Some(at(1)), until: Some(at(200)) })), [fork]);
    assert_eq!(
        select(query().with_updated(TimeRange { since: None, until: Some(at(500)) })),
        [plain, failed, child]
    );
    assert_eq!(select(query().with_updated(TimeRange::since(at(501)))), []);
}

/// A session has to fulfil all conditions at once. What a query selects is what [`SessionQuery::accepts`] says.
pub(crate) fn conditions_of_a_query_are_combined(store: &dyn Store) {
    for seed in 0..24_u64 {
        let mut summary = sample::summary(sample::session(seed));
        summary.state = JournalState::ALL[(seed % 6) as usize];
        summary.outcome = EvaluationOutcome::ALL.get((seed % 5) as usize).copied();
        summary.agent = (seed % 2 == 0).then(|| "tailor".into());
        summary.tags.insert("third".to_owned(), (seed % 3).to_string());
        summary.updated_at = at(seed);
        create(store, summary);
    }
    let everything = page(store, SessionQuery::new()).sessions;
    assert_eq!(everything.len(), 24);
    for third in ["0", "1", "2", "3"] {
        for status in IndexedStatus::ALL {
            let query = SessionQuery::new()
                .with_tag("third", third)
                .with_status(status)
                .with_status(IndexedStatus::Failed)
                .with_agent("tailor")
                .with_outcome(EvaluationOutcome::Completed)
                .with_outcome(EvaluationOutcome::Superseded)
                .with_updated(TimeRange { since: Some(at(2)), until: Some(at(20)) })
                .with_limit(2);
            let expected: Vec<SessionId> =
                everything.iter().filter(|one| query.accepts(one)).map(|one| one.summary.session).collect();
            assert_eq!(all(store, query), expected, "{third} {status}");
        }
    }
}

/// Who holds a session, and whether items wait in its inbox, is joined as it is when the query runs.
pub(crate) fn statuses_follow_from_claims_and_inboxes(store: &dyn Store) {
    let status = |session: SessionId| {
        let found = page(store, SessionQuery::new()).sessions;
        let one = found.into_iter().find(|one| one.summary.session == session).expect("it is indexed");
        let selected = all(store, SessionQuery::new().with_status(one.status()));
        assert!(selected.contains(&session), "a query by {} finds it", one.status());
        assert_eq!(one.holder, block_on(store.holder(session)).expect("the holder can be read"));
        (one.status(), one.holder, one.has_waiting)
    };
    let ada = || Some(Owner::new("ada"));
    let open = SessionSummary { state: JournalState::Open, ..sample::summary(sample::session(1)) };
    let open = create(store, open);
    assert_eq!(status(open), (IndexedStatus::Interrupted, None, false));
    let held = claim(store, open, "ada", ClaimMode::IfFree).expect("it is free");
    assert_eq!(status(open), (IndexedStatus::Running, ada(), false));
    block_on(store.release(held)).expect("what is held can be released");
    assert_eq!(status(open), (IndexedStatus::Interrupted, None, false));

    let idle = create(store, sample::summary(sample::session(2)));
    assert_eq!(status(idle), (IndexedStatus::Idle, None, false));
    block_on(store.send(idle, sample::item("hello"))).expect("anybody may send");
    assert_eq!(status(idle), (IndexedStatus::Runnable, None, true));
    assert_eq!(status(open), (IndexedStatus::Interrupted, None, false), "an inbox belongs to one session");
    let held = claim(store, idle, "ada", ClaimMode::TakeOver).expect("it is free");
    assert_eq!(status(idle), (IndexedStatus::Idle, ada(), true), "its holder takes the item in");
    let mut taking = sample::notes(["took it"]);
    taking.take(block_on(store.inbox(idle)).expect("an inbox can be read")[0].0);
    taking.summarize(SessionSummary { position: Position::new(2), ..sample::summary(idle) });
    block_on(store.append(idle, Position::new(1), held.fence, taking)).expect("the holder may write");
    block_on(store.release(held)).expect("what is held can be released");
    assert_eq!(status(idle), (IndexedStatus::Idle, None, false));
}

/// A page has as many sessions as its limit allows, also where most are left out by what is joined.
pub(crate) fn pages_are_full_whatever_is_selected(store: &dyn Store) {
    let mut held = Vec::new();
    let mut expected = Vec::new();
    for seed in 0..40 {
        let open = SessionSummary { state: JournalState::Open, ..sample::summary(sample::session(seed)) };
        let session = create(store, open);
        if seed % 7 == 3 {
            held.push(claim(store, session, "ada", ClaimMode::IfFree).expect("it is free"));
            expected.push(session);
        }
    }
    for limit in [1, 2, 3, 6, 100] {
        let running = SessionQuery::new().with_status(IndexedStatus::Running).with_limit(limit);
        let oldest = running.clone().with_order(SessionOrder::OldestFirst);
        assert_eq!(all(store, oldest), expected, "limit {limit}");
        let newest: Vec<_> = expected.iter().rev().copied().collect();
        assert_eq!(all(store, running), newest, "limit {limit}");
    }
    let last = SessionQuery::new().with_status(IndexedStatus::Running).with_limit(6);
    assert_eq!(page(store, last).next, None, "there is no page after the last result");
}

/// Sessions that are added while pages are read are neither repeated nor do they push others out.
pub(crate) fn a_cursor_stays_valid_while_sessions_are_added(store: &dyn Store) {
    for order in [SessionOrder::NewestFirst, SessionOrder::OldestFirst] {
        let offset = if order == SessionOrder::NewestFirst { 0 } else { 1_000 };
        let tagged = |seed: u64| {
            let mut summary = sample::summary(sample::session(offset + seed));
            summary.tags.insert("order".to_owned(), format!("{order:?}"));
            create(store, summary)
        };
        let early: Vec<SessionId> = (0..10).map(tagged).collect();
        let query =
            SessionQuery::new().with_tag("order", format!("{order:?}")).with_order(order).with_limit(3);
        let (mut found, mut after, mut added) = (Vec::new(), None, 0);
        loop {
            let page = page(store, SessionQuery { after: after.take(), ..query.clone() });
            found.extend(ids(&page));
            let Some(next) = page.next else { break };
            if added < 5 {
                tagged(100 + added);
                added += 1;
            }
            after = Some(next);
        }
        let unique: BTreeSet<_> = found.iter().collect();
        assert_eq!(unique.len(), found.len(), "{order:?}: a session is repeated");
        let of_early: Vec<_> = found.iter().filter(|session| early.contains(session)).copied().collect();
        let mut expected = early.clone();
        if order == SessionOrder::NewestFirst {
            expected.reverse();
            assert_eq!(found, expected, "later sessions stand before the cursor");
        }
        assert_eq!(of_early, expected, "{order:?}: a session is left out");
    }
}

/// A text that is not a cursor of the store is an error, and not the beginning or the end.
pub(crate) fn a_cursor_of_another_store_is_refused(store: &dyn Store) {
    create(store, sample::summary(sample::session(1)));
    let query = SessionQuery::new().with_cursor(SessionCursor::new("from elsewhere"));
    for refused in [block_on(store.query(query.clone())).map(drop), block_on(store.count(query)).map(drop)] {
        assert!(matches!(refused, Err(StoreError::UnknownCursor { .. })), "{refused:?}");
    }
}
