//! Futures on the heap.
//!
//! Agents call agents, and each level is polled from within the one above it. A future that holds another one
//! by value needs stack space for all levels below it, so large levels are boxed.

use backstitch_core::ports::BoxFuture;

/// Creates a future on the heap. It is created in this function, so that the caller's frame has no space for
/// it.
#[inline(never)]
pub(crate) fn boxed<'a, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    Box::pin(make())
}
