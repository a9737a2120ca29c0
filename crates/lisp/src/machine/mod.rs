//! The evaluator.
mod meter;
mod random;
pub(crate) use meter::Meter;
pub(crate) use random::Random;
/// How a native enters the machine.
#[derive(Clone, Copy)]
pub struct Enter;
