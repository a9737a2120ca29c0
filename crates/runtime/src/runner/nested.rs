//! Calls that a handler makes through a runner of its own session.
//!
//! A call holds files and snapshotable resources until it has ended, so a call inside of it that needs them as well would
//! wait for itself. Two calls that only read share one hold; any other such call is refused before it starts. A handler's
//! calls are recognized by its task: a call that it makes in a task which it spawned is not, and waits.

use std::sync::Arc;

use backstitch_core::tool::ToolName;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::files::Hold;

tokio::task_local! {
    /// The holds of the calls that the handler of this task runs inside of, including its own.
    static OUTER: Vec<OuterHold>;
}

/// The hold of a call whose handler is running.
#[derive(Clone)]
pub(super) struct OuterHold {
    /// The lock of the session.
    lock: Arc<RwLock<()>>,
    /// The hold itself, if others may share it.
    pub(super) shared: Option<Arc<OwnedRwLockReadGuard<()>>>,
    /// The tool of the call.
    pub(super) tool: ToolName,
}

/// Returns the hold on this lock that the calling task runs inside of.
pub(super) fn outer_hold(lock: &Arc<RwLock<()>>) -> Option<OuterHold> {
    let find = |outer: &Vec<OuterHold>| outer.iter().rfind(|one| Arc::ptr_eq(&one.lock, lock)).cloned();
    OUTER.try_with(find).ok().flatten()
}

/// Makes calls inside of a handler know the hold of its call.
pub(super) fn inside<F: Future>(
    hold: &Hold,
    lock: &Arc<RwLock<()>>,
    tool: &ToolName,
    handler: F,
) -> impl Future<Output = F::Output> + use<F> {
    let mut outer = OUTER.try_with(Clone::clone).unwrap_or_default();
    if !matches!(hold, Hold::None) {
        outer.push(OuterHold { lock: lock.clone(), shared: hold.shared(), tool: tool.clone() });
    }
    OUTER.scope(outer, handler)
}
