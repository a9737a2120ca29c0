//! Policies that need no provider: functions.

mod function;
mod human;
mod none;

pub use function::FunctionPolicy;
pub use human::HumanPolicy;
pub(crate) use human::WAITS;
pub(crate) use none::NoPolicy;
