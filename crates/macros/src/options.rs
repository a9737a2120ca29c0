//! Parsing of attribute options.
//!
//! Each option may be given once. All errors are reported together, each at its span.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::{Error, Path, Result};

/// Returns the module that generated code refers to: that of the option `crate`, or the one of the facade.
pub(crate) fn module(given: Option<&Path>) -> TokenStream {
    given.map_or_else(|| quote!(::backstitch::__private), ToTokens::to_token_stream)
}

/// Parses the value of `option = value`. `of` names the owner of the option in errors.
pub(crate) fn once<T: syn::parse::Parse>(
    option: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    of: &str,
) -> Result<()> {
    let value = meta.value()?.parse()?;
    set(option, value, meta, of)
}

/// Stores a value that is already parsed.
pub(crate) fn set<T>(option: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>, of: &str) -> Result<()> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error(format!("this option of {of} is given twice"))),
    }
}

/// Errors that are reported together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Records an error, or returns the value.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                match &mut self.0 {
                    Some(errors) => errors.combine(error),
                    None => self.0 = Some(error),
                }
                None
            }
        }
    }

    pub(crate) fn or<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
