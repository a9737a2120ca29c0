//! Policies that need no provider: functions and scripts.

mod function;
mod scripted;

pub use function::FunctionPolicy;
pub use scripted::{Reply, Script, ScriptedCall, ScriptedPolicy};
