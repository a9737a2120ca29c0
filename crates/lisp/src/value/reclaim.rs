//! Dropping long chains without recursion.
//!
//! Lists, sequences and lazy cells form chains of any length, and lazy cells nest without a bound. When one
//! of them is dropped it moves its contents to a queue of the thread; the outermost drop empties the queue in
//! a loop. The queue replaces the call stack of a recursive drop.

use std::cell::{Cell, RefCell};

use super::Value;

thread_local! {
    static PENDING: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static DRAINING: Cell<bool> = const { Cell::new(false) };
}

/// Drops a value soon: at once if no drop is in progress, otherwise when the current drop reaches it.
pub(super) fn reclaim(value: Value) {
    if !is_chain(&value) {
        return;
    }
    // A thread that is ending has no queue any more. Then the value is dropped directly.
    let queued = PENDING.try_with(|pending| pending.borrow_mut().push(value));
    if queued.is_err() || DRAINING.replace(true) {
        return;
    }
    while let Some(next) = PENDING.with(|pending| pending.borrow_mut().pop()) {
        drop(next);
    }
    // A burst must not keep its memory for the life of the thread.
    PENDING.with(|pending| pending.borrow_mut().shrink_to(1024));
    DRAINING.set(false);
}

/// Returns whether dropping the value may drop another chain. Collections are dropped by recursion, which
/// their depth bounds.
fn is_chain(value: &Value) -> bool {
    match value {
        Value::List(list) => !list.is_empty(),
        Value::Sequence(_) | Value::Lazy(_) | Value::Closure(_) => true,
        other => other.may_hold_lazy(),
    }
}
