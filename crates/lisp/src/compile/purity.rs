//! Finds calls that are known to be pure: no tools, prints, atoms or unknown functions.

use super::code::Function;
use super::node::{Expr, NodeKind};
use crate::library::{Effects, Native};
use crate::value::Value;

/// Returns whether calling this node is known to be pure.
pub(super) fn known_pure(function: &Expr, arguments: &[Expr]) -> bool {
    match &function.kind {
        NodeKind::Constant(Value::Closure(closure)) => closure.function().is_pure(),
        NodeKind::Constant(Value::Keyword(_) | Value::Map(_) | Value::Set(_)) => true,
        NodeKind::Constant(Value::Native(native)) => native_is_pure(native, arguments),
        _ => false,
    }
}

/// Returns whether calling a native function with these arguments is known to be pure.
pub(super) fn native_is_pure(native: &Native, arguments: &[Expr]) -> bool {
    match native.effects {
        Effects::Pure => true,
        Effects::Acts => false,
        Effects::Calls => arguments.first().is_some_and(|function| match &function.kind {
            NodeKind::Function(function) => function.code.functions.iter().all(Function::is_pure),
            NodeKind::Constant(Value::Native(inner)) => inner.effects == Effects::Pure,
            _ => known_pure(function, &[]),
        }),
    }
}
