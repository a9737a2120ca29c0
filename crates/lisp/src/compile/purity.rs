//! Which calls are known to do nothing but compute: no tools, prints, atoms, and no unknown functions.

use super::code::Body;
use super::node::{Expr, NodeKind};
use crate::library::{Effects, Native};
use crate::value::Value;

/// Whether calling this node can do nothing but compute.
pub(super) fn known_pure(function: &Expr, arguments: &[Expr]) -> bool {
    match &function.kind {
        NodeKind::Constant(Value::Closure(closure)) => {
            let bodies = &closure.code().functions[closure.member()];
            let pure = |body: &Body| body.pure;
            bodies.fixed.iter().all(pure) && bodies.variadic.iter().all(pure)
        }
        NodeKind::Constant(Value::Keyword(_) | Value::Map(_) | Value::Set(_)) => true,
        NodeKind::Constant(Value::Native(native)) => native_is_pure(native, arguments),
        _ => false,
    }
}

/// Whether calling a function of the library with these arguments can do nothing but compute.
pub(super) fn native_is_pure(native: &Native, arguments: &[Expr]) -> bool {
    match native.effects {
        Effects::Pure => true,
        Effects::Acts => false,
        Effects::Calls => arguments.first().is_some_and(|function| match &function.kind {
            NodeKind::Function(function) => function.code.functions.iter().all(|function| {
                function.fixed.iter().all(|body| body.pure) && function.variadic.iter().all(|body| body.pure)
            }),
            NodeKind::Constant(Value::Native(inner)) => inner.effects == Effects::Pure,
            _ => known_pure(function, &[]),
        }),
    }
}
