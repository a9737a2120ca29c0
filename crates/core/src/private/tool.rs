//! The pieces of which `#[tool]` puts a tool together.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::journal::IdempotencyKey;
use crate::session::BoxError;
use crate::tool::{
    Compensate, Reconcile, ReconcileOutcome, Tool, ToolBuilder, ToolExample, ToolOutcome, ToolResult,
};

/// Starts a tool whose name was checked when it was compiled.
pub fn tool_builder(name: &str, description: &str) -> ToolBuilder {
    Tool::builder(name, description).expect("invariant: `#[tool]` checks names by the same rule")
}

/// A call as it may look. The arguments were written as an object.
pub fn tool_example(description: &str, arguments: Value, result: Option<Value>) -> ToolExample {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    ToolExample { description: description.to_owned(), arguments, result }
}

/// Says that results are values of this type.
pub fn describes_value<T: Serialize + JsonSchema>(builder: ToolBuilder) -> ToolBuilder {
    builder.output::<T>()
}

/// A result of a function that gives a value.
pub fn value_result<T: Serialize>(value: T) -> ToolOutcome {
    Ok(ToolResult::default().with_value(value)?)
}

/// A result of a function that says itself what to tell the model.
pub fn tool_result(result: ToolResult) -> ToolOutcome {
    Ok(result)
}

/// A result of a function that gives nothing.
pub fn done((): ()) -> ToolOutcome {
    Ok(ToolResult::ok("done"))
}

/// An async function as a hook of a tool.
pub fn reconcile_with<F, W, E>(hook: F) -> Reconcile
where
    F: Fn(IdempotencyKey, Map<String, Value>) -> W + Send + Sync + 'static,
    W: Future<Output = Result<ReconcileOutcome, E>> + Send + 'static,
    E: Into<BoxError>,
{
    Arc::new(move |key, arguments| {
        let found = hook(key, arguments);
        Box::pin(async move { found.await.map_err(Into::into) })
    })
}

/// An async function as a hook of a tool.
pub fn compensate_with<F, W, E>(hook: F) -> Compensate
where
    F: Fn(IdempotencyKey, Map<String, Value>) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError>,
{
    Arc::new(move |key, arguments| {
        let undone = hook(key, arguments);
        Box::pin(async move { undone.await.map_err(Into::into) })
    })
}

/// Cannot be asked about an alias of `Result`, whose errors would otherwise be passed on as values.
pub trait NotAnAliasOfResult<Evidence> {
    /// Nothing; asking for it is what counts.
    fn check() {}
}

/// What makes the question about a `Result` ambiguous.
pub struct WriteItOut;

impl<T> NotAnAliasOfResult<()> for T {}
impl<T, E> NotAnAliasOfResult<WriteItOut> for Result<T, E> {}
