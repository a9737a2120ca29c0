//! Values whose type is erased, for tasks.
//!
//! An async runtime compiles a task again for each type that it returns, with about four thousand lines of LLVM IR. A task
//! that returns an [`AnyValue`] is compiled once.

use std::any::Any;

use super::BoxFuture;

/// A value of a type that its reader knows.
pub struct AnyValue(Box<dyn Any + Send>);

impl AnyValue {
    /// Erases the type of a value.
    pub fn new<T: Send + 'static>(value: T) -> Self {
        Self(Box::new(value))
    }

    /// Erases the type of what a future returns.
    pub fn of_future<'a, T: Send + 'static>(
        work: impl Future<Output = T> + Send + 'a,
    ) -> BoxFuture<'a, Self> {
        Box::pin(async move { Self::new(work.await) })
    }

    /// Erases the type of what a function returns.
    pub fn of_work<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Box<dyn FnOnce() -> Self + Send> {
        Box::new(move || Self::new(work()))
    }

    /// Returns the value. Panics for another type than it was made of.
    pub fn into_value<T: 'static>(self) -> T {
        *self.0.downcast().expect("invariant: an erased value is read as the type that it was made of")
    }
}

impl std::fmt::Debug for AnyValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AnyValue(..)")
    }
}
