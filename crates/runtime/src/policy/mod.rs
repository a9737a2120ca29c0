//! Policies that need no provider: functions.

mod function;
mod human;

pub use function::FunctionPolicy;
pub use human::HumanPolicy;
pub(crate) use human::WAITS;
