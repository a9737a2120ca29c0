//! Policies that need no provider: functions.

mod function;

pub use function::FunctionPolicy;
