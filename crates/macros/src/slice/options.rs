//! What stands in `#[slice(...)]`.
//!
//! Each option is taken once, from any of the type's `#[slice(...)]` attributes. Everything that is wrong with them is
//! reported together, each at its place.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Ident, LitInt, LitStr, Path, Result};

const KNOWN: &str = "`name`, `version`, `policy`, `upcast` and `crate`";

/// The options of a slice, as they were written.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) version: Option<LitInt>,
    pub(crate) policy: Option<LitStr>,
    pub(crate) upcast: Option<Path>,
    pub(crate) module: Option<Path>,
}

impl Options {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        let mut errors = Errors::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("slice")) {
            errors.note(attribute.parse_nested_meta(|meta| options.take(&meta)));
        }
        errors.or(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match meta.path.get_ident().map(Ident::to_string).as_deref() {
            Some("name") => once(&mut self.name, meta),
            Some("version") => once(&mut self.version, meta),
            Some("policy") => once(&mut self.policy, meta),
            Some("upcast") => once(&mut self.upcast, meta),
            Some("crate") => once(&mut self.module, meta),
            _ => Err(meta.error(format!("unknown option of a slice; there are {KNOWN}"))),
        }
    }
}

fn once<T: syn::parse::Parse>(option: &mut Option<T>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    let value = meta.value()?.parse()?;
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("this option of a slice is given twice")),
    }
}

/// Errors that are reported together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            match &mut self.0 {
                Some(errors) => errors.combine(error),
                None => self.0 = Some(error),
            }
        }
    }

    pub(crate) fn or<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
