//! Memory of sessions: the growth of a process with many of them.
//!
//! Each row is measured in a process of its own. Otherwise memory that earlier work has freed would be
//! reused, and hide the growth.

use backstitch_core::journal::Position;
use backstitch_core::ports::Store;
use backstitch_core::view::JournalView;
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::{claim, open, temporary, write};
use crate::memory::resident;
use crate::report::Report;

/// Measures views of a session with 100 messages. Each view is read from the store again.
pub(super) fn measure_loaded(report: &mut Report) {
    const COPIES: usize = 300;
    let journal = sample::conversation(33);
    let directory = temporary();
    let store = open(&directory);
    write(&store, &journal);
    let view = || {
        let records =
            block_on(store.read(journal.session, Position::START, usize::MAX)).expect("it can be read");
        JournalView::fold(&records).expect("it can be folded")
    };
    // The first views allocate what all share.
    let warm: Vec<JournalView> = (0..20).map(|_| view()).collect();
    let messages = warm[0].transcript().map_or(0, |transcript| transcript.all().len());
    let Some(before) = resident() else { return };
    let views: Vec<JournalView> = (0..COPIES).map(|_| view()).collect();
    let Some(after) = resident() else { return };
    let each = (after.saturating_sub(before)) as f64 / COPIES as f64 / 1024.0;
    report.value(
        "session.memory_loaded",
        json!({ "messages": messages, "sessions": views.len() }),
        each,
        "KiB",
    );
    drop(warm);
}

/// Measures sessions that are only claimed.
pub(super) fn idle(report: &mut Report) {
    const SESSIONS: u64 = 800;
    let directory = temporary();
    let store = open(&directory);
    let warm = claim(&store, sample::session(SESSIONS));
    let Some(before) = resident() else { return };
    let claims: Vec<_> = (0..SESSIONS).map(|seed| claim(&store, sample::session(seed))).collect();
    let Some(after) = resident() else { return };
    let each = (after.saturating_sub(before)) as f64 / SESSIONS as f64 / 1024.0;
    report.value("session.memory_idle", json!({ "sessions": claims.len() }), each, "KiB");
    drop(warm);
}
