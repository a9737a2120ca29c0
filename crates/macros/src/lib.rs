//! The macros of Backstitch.
//!
//! Use them through the `backstitch` crate, which re-exports each next to the types it belongs to. The
//! generated code refers to `::backstitch::__private`, so it compiles where `backstitch` is a dependency;
//! `crate = path` names another module with the same contents.

mod options;
mod slice;
mod tool;

use proc_macro::TokenStream;

/// Implements `Slice` for a type: its values can be the items of a slice of a session.
///
/// ```
/// use backstitch::Slice;
/// use serde::{Deserialize, Serialize};
/// use serde_json::Value;
///
/// #[derive(Serialize, Deserialize, Slice)]
/// #[slice(name = "acme.finding", version = 2, policy = "log", upcast = upcast_finding)]
/// struct Finding {
///     text: String,
///     certain: bool,
/// }
///
/// /// Version 1 did not know how certain a finding is.
/// fn upcast_finding(_version: u32, mut item: Value) -> Result<Value, backstitch::session::UpcastError> {
///     item["certain"] = false.into();
///     Ok(item)
/// }
///
/// assert_eq!(Finding::NAME, "acme.finding");
/// ```
///
/// | in `#[slice(...)]` | meaning |
/// |---|---|
/// | `name = "..."` | The name under which items are stored. Required, since it must outlive the type's name. 1 to 128 of `a-z`, `0-9`, `_`, `.`, `/` and `-`, the first a letter or a digit. |
/// | `version = 2` | The version of the stored form, from 1 on. 1 when absent. |
/// | `upcast = path` | A function `fn(version: u32, item: Value) -> Result<Value, UpcastError>` that brings an item of an older version to the next one. Required from version 2 on. |
/// | `policy = "..."` | `"state"`, `"log"`, `"cache"` or `"journal"`; `"state"` when absent. |
/// | `crate = path` | The module that replaces `::backstitch::__private`. |
///
/// Structs and enums can be slices; unions and generic types cannot. The type has to implement `Serialize`
/// and `Deserialize`, as with serde's derives.
#[proc_macro_derive(Slice, attributes(slice))]
pub fn derive_slice(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    slice::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Creates a tool, which a model may call, from a function.
///
/// The function becomes one without arguments that returns the tool. Its name, doc comment, arguments and
/// return type become the tool's name, description, parameters and result.
///
/// ```
/// use backstitch::prelude::*;
///
/// /// Finds the rows of a seam whose notes hold a word.
/// #[tool(effect = "pure", workspace = "none", timeout = "30s")]
/// async fn find_rows(
///     context: ToolContext,
///     /// The word to look for.
///     word: String,
///     #[arg(description = "How many rows to give at most.", default = 10)]
///     limit: usize,
///     /// The first row to look at.
///     from: Option<usize>,
/// ) -> Result<Vec<String>, ToolError> {
///     context.progress(format!("looking for {word}"), None);
///     Ok((from.unwrap_or(0)..).take(limit).map(|row| format!("row {row}: {word}")).collect())
/// }
///
/// let tool = find_rows();
/// assert_eq!(tool.spec.description, "Finds the rows of a seam whose notes hold a word.");
/// assert_eq!(tool.spec.parameters["required"], serde_json::json!(["word"]));
/// ```
///
/// | in `#[tool(...)]` | meaning |
/// |---|---|
/// | `name = "..."` | The name, if it differs from the function's. 1 to 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`. |
/// | `effect = "..."` | Its effects: `"pure"`, `"workspace"`, `"idempotent"` or `"external"`; the last when absent. |
/// | `workspace = "..."` | Its use of files: `"none"`, `"read"` or `"write"`. When absent, pure tools read and all others write. |
/// | `resources = "..."` | Its use of snapshotable resources: `"none"`, `"read"` or `"write"`; the first when absent. |
/// | `approval` | A person has to approve each call. |
/// | `timeout = "30s"` | The time limit of a call, in `ms`, `s`, `m` or `h`. |
/// | `example(description = "...", arguments = { ... }, result = ...)` | An example of a call, in JSON; `result` may be left out. May be repeated. |
/// | `reconcile = path` | `async fn(IdempotencyKey, Map<String, Value>) -> Result<ReconcileOutcome, E>`: determines the outcome of a call that a crash interrupted. For external tools. |
/// | `compensate = path` | `async fn(IdempotencyKey, Map<String, Value>) -> Result<(), E>`: undoes an effect. For external tools. |
/// | `crate = path` | The module that replaces `::backstitch::__private`. |
///
/// | on an argument | meaning |
/// |---|---|
/// | a doc comment | Its description for the model. |
/// | `#[arg(description = "...")]` | The same. |
/// | `#[arg(default = ...)]`, `#[arg(default)]` | It may be left out; then it has this value. |
/// | `#[arg(name = "...")]` | The name for the model, if it differs from the argument's. |
/// | `#[args]` | It takes all arguments of the model: a struct that implements `Deserialize` and `JsonSchema`. |
///
/// Arguments are owned and implement `Deserialize` and `JsonSchema`. `Option`s may be left out; unknown
/// arguments are refused. One argument of the type `ToolContext` or `&ToolContext`, at any position, receives
/// the context.
///
/// The function returns a `ToolResult`, or nothing, or any value that implements `Serialize` and
/// `JsonSchema`, whose schema is then the tool's output schema; or a `Result` of one of these, with an error
/// that converts to a `ToolError`, as all errors do. It may be async or not. A function that is not async may
/// block; with an executor of several threads, that blocks no other task.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse::<syn::ItemFn>(item) {
        Ok(function) => function,
        Err(error) => {
            let mut wrong = syn::Error::new(error.span(), "`#[tool]` makes a tool of a function");
            wrong.combine(error);
            return wrong.into_compile_error().into();
        }
    };
    tool::expand(arguments.into(), function).unwrap_or_else(syn::Error::into_compile_error).into()
}
