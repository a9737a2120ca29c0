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
use crate::aims;
use crate::memory::resident;
use crate::report::Report;

/// Measures views of a session with 100 messages. Each view is read from the store again.
pub(super) fn measure_loaded(report: &mut Report) {
    const COPIES: u64 = 300;
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
    let Some(each) = memory_of_each(COPIES, |_| view()) else { return };
    let params = json!({ "messages": messages, "sessions": COPIES });
    report.value("session.memory_loaded", params.clone(), each, "KiB");
    aims::LOADED_SESSION.judge(report, params, each);
    drop(warm);
}

/// Measures sessions that are only claimed.
pub(super) fn idle(report: &mut Report) {
    const SESSIONS: u64 = 800;
    let directory = temporary();
    let store = open(&directory);
    let warm = claim(&store, sample::session(SESSIONS));
    let each = memory_of_each(SESSIONS, |seed| claim(&store, sample::session(seed)));
    let Some(each) = each else { return };
    report.value("session.memory_idle", json!({ "sessions": SESSIONS }), each, "KiB");
    aims::IDLE_SESSION.judge(report, json!({ "sessions": SESSIONS }), each);
    drop(warm);
}

/// Creates so many values, and returns the growth of the process for each of them, in KiB.
fn memory_of_each<T>(count: u64, create: impl FnMut(u64) -> T) -> Option<f64> {
    let before = resident()?;
    let values: Vec<T> = (0..count).map(create).collect();
    let after = resident()?;
    drop(values);
    Some(after.saturating_sub(before) as f64 / count as f64 / 1024.0)
}
