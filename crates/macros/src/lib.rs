//! The derive macros of Backstitch.
//!
//! Use them by way of the `backstitch` crate, which puts each beside the trait of the same name. What they generate names
//! `::backstitch::__private`, so it compiles where `backstitch` is a dependency; `crate = path` names another module that
//! offers the same.

mod options;
mod slice;

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
/// | `crate = path` | The module that stands for `::backstitch::__private`. |
///
/// Structs and enums can be slices; unions and generic types cannot. The type has to implement `Serialize` and
/// `Deserialize`, as with serde's derives.
#[proc_macro_derive(Slice, attributes(slice))]
pub fn derive_slice(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    slice::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
