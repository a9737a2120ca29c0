//! Policies without a provider: functions and people.

mod function;
mod human;
mod none;

pub use function::FunctionPolicy;
pub use human::HumanPolicy;
pub(crate) use human::WAITS;
pub(crate) use none::NoPolicy;
