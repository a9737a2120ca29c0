//! Reading options in attributes.
//!
//! Each option is taken once. Everything that is wrong is reported together, each at its place.

use syn::meta::ParseNestedMeta;
use syn::{Error, Result};

/// Takes the value of `option = value`. `of` is what it is an option of.
pub(crate) fn once<T: syn::parse::Parse>(
    option: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    of: &str,
) -> Result<()> {
    let value = meta.value()?.parse()?;
    set(option, value, meta, of)
}

/// Takes a value that was read already.
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
    /// Keeps an error, and gives what there is otherwise.
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
