//! Functions from which `#[tool]` assembles a tool.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::journal::IdempotencyKey;
use crate::session::BoxError;
use crate::tool::{
    Compensate, Reconcile, ReconcileOutcome, Tool, ToolBuilder, ToolExample, ToolOutcome, ToolResult,
};

/// Starts a tool whose name was checked at compile time.
pub fn tool_builder(name: &str, description: &str) -> ToolBuilder {
    Tool::builder(name, description).expect("invariant: `#[tool]` checks names by the same rule")
}

/// Creates an example call. The arguments must be an object.
pub fn tool_example(description: &str, arguments: Value, result: Option<Value>) -> ToolExample {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    ToolExample { description: description.to_owned(), arguments, result }
}

/// Declares that results are values of this type.
pub fn describes_value<T: Serialize + JsonSchema>(builder: ToolBuilder) -> ToolBuilder {
    builder.output::<T>()
}

/// Converts the value of a function to a result.
pub fn value_result<T: Serialize>(value: T) -> ToolOutcome {
    Ok(ToolResult::default().with_value(value)?)
}

/// Returns the result of a function that builds it itself.
pub fn tool_result(result: ToolResult) -> ToolOutcome {
    Ok(result)
}

/// Returns the result of a function without a value.
pub fn done((): ()) -> ToolOutcome {
    Ok(ToolResult::ok("done"))
}

/// Makes an async function a hook of a tool.
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

/// Makes an async function a hook of a tool.
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

/// Is ambiguous for an alias of `Result`, whose errors would otherwise be passed on as values.
pub trait NotAnAliasOfResult<Evidence> {
    /// Does nothing; the call only has to compile.
    fn check() {}
}

/// Makes the implementation for a `Result` ambiguous.
pub struct WriteItOut;

impl<T> NotAnAliasOfResult<()> for T {}
impl<T, E> NotAnAliasOfResult<WriteItOut> for Result<T, E> {}
