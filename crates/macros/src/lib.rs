//! The macros of Backstitch.
//!
//! Use them through the `backstitch` crate, which re-exports each next to the types it belongs to, with an example. The
//! generated code refers to `::backstitch::__private`, so it compiles where `backstitch` is a dependency;
//! `crate = path` names another module with the same contents.
//!
//! What the macros generate is tested by a package of its own, in `tests`: dependencies of the tests of a procedural macro are
//! compiled for the compiler, so everything below `backstitch` would be compiled a second time.

mod options;
mod slice;
mod tool;

use proc_macro::TokenStream;

/// Options stand in `#[slice(...)]`.
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

/// Options stand in `#[tool(...)]`, and on arguments.
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
