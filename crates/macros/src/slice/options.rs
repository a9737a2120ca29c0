//! The options of `#[slice(...)]`. They may be spread over several attributes.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Ident, LitInt, LitStr, Path, Result};

use crate::options::{Errors, once};

const OF: &str = "a slice";
const KNOWN: &str = "`name`, `version`, `policy`, `upcast` and `crate`";

/// The options of a slice, as they were written.
#[derive(Default)]
pub(super) struct Options {
    pub(super) name: Option<LitStr>,
    pub(super) version: Option<LitInt>,
    pub(super) policy: Option<LitStr>,
    pub(super) upcast: Option<Path>,
    pub(super) module: Option<Path>,
}

impl Options {
    pub(super) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        let mut errors = Errors::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("slice")) {
            errors.note(attribute.parse_nested_meta(|meta| options.take(&meta)));
        }
        errors.or(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match meta.path.get_ident().map(Ident::to_string).as_deref() {
            Some("name") => once(&mut self.name, meta, OF),
            Some("version") => once(&mut self.version, meta, OF),
            Some("policy") => once(&mut self.policy, meta, OF),
            Some("upcast") => once(&mut self.upcast, meta, OF),
            Some("crate") => once(&mut self.module, meta, OF),
            _ => Err(meta.error(format!("unknown option of a slice; there are {KNOWN}"))),
        }
    }
}
