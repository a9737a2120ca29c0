//! Futures that are kept on the heap.
//!
//! Agents call agents, and each level is polled from within the one above it. A future that holds another one by value makes
//! the stack of every level as large as all that is below, so where a level is large it is held by a pointer.

use backstitch_core::ports::BoxFuture;

/// Makes a future on the heap. It is made in here, so that the caller's frame never has room for it.
#[inline(never)]
pub(crate) fn boxed<'a, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    Box::pin(make())
}
