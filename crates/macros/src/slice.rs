//! `#[derive(Slice)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Data, DeriveInput, Error, Ident, LitInt, LitStr, Path, Result};

use crate::options::{Errors, module, once};

const MAX_NAME: usize = 128;
const OF: &str = "a slice";
const KNOWN: &str = "`name`, `version`, `policy`, `upcast` and `crate`";

/// The options of `#[slice(...)]`, as they were written. They may be spread over several attributes.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    version: Option<LitInt>,
    policy: Option<LitStr>,
    upcast: Option<Path>,
    module: Option<Path>,
}

impl Options {
    fn parse(attributes: &[Attribute]) -> Result<Self> {
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

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let options = Options::parse(&input.attrs)?;
    let mut errors = Errors::default();
    errors.note(check_type(input));
    errors.note(check_name(input, options.name.as_ref()));
    errors.note(check_version(&options));
    errors.note(options.policy.as_ref().map_or(Ok(()), |policy| variant(policy).map(drop)));
    errors.or(())?;

    let module = module(options.module.as_ref());
    let name = &options.name;
    let version = options.version.as_ref().map(|version| quote!(const VERSION: u32 = #version;));
    let policy = options
        .policy
        .as_ref()
        .map(variant)
        .transpose()?
        .map(|variant| quote!(const POLICY: #module::SlicePolicy = #module::SlicePolicy::#variant;));
    let upcast = options.upcast.as_ref().map(|function| {
        quote! {
            fn upcast(
                version: u32,
                item: #module::Value,
            ) -> ::core::result::Result<#module::Value, #module::UpcastError> {
                #function(version, item)
            }
        }
    });
    let ident = &input.ident;
    // A type that cannot be stored is reported at its name, with the missing trait instead of the
    // requirements of a slice.
    let bounds = quote_spanned! {ident.span()=>
        #ident: #module::Serialize,
        #ident: for<'de> #module::Deserialize<'de>,
    };
    Ok(quote! {
        #[automatically_derived]
        impl #module::Slice for #ident
        where
            #bounds
        {
            const NAME: &'static str = #name;
            #version
            #policy
            #upcast
        }
    })
}

fn check_type(input: &DeriveInput) -> Result<()> {
    if let Data::Union(data) = &input.data {
        return Err(Error::new(
            data.union_token.span,
            "a union cannot be a slice: nothing says how it is stored",
        ));
    }
    match input.generics.params.first() {
        Some(parameter) => Err(Error::new_spanned(
            parameter,
            "a generic type cannot be a slice: all its instances would be stored under one name; \
             derive Slice for a struct that wraps one of them",
        )),
        None => Ok(()),
    }
}

fn check_name(input: &DeriveInput, name: Option<&LitStr>) -> Result<()> {
    let Some(literal) = name else {
        return Err(Error::new(
            input.ident.span(),
            "a slice needs a name: `#[slice(name = \"...\")]`; journals and snapshots hold it, so it is not \
             taken from the type, which may be renamed",
        ));
    };
    let name = literal.value();
    let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let legal = |byte: u8| first(byte) || b"_./-".contains(&byte);
    if name.len() <= MAX_NAME && name.bytes().next().is_some_and(first) && name.bytes().all(legal) {
        return Ok(());
    }
    Err(Error::new(
        literal.span(),
        format!(
            "the name of a slice has 1 to {MAX_NAME} of the characters a-z, 0-9, `_`, `.`, `/` and `-`, \
             the first of them a letter or a digit"
        ),
    ))
}

fn check_version(options: &Options) -> Result<()> {
    let number = options.version.as_ref().map_or(Ok(1), LitInt::base10_parse::<u32>)?;
    match (number, &options.version, &options.upcast) {
        (0, Some(literal), _) => {
            Err(Error::new(literal.span(), "the versions of a slice are counted from 1"))
        }
        (1, _, Some(function)) => Err(Error::new_spanned(
            function,
            "there is nothing to upcast from: the slice has version 1; raise `version` when the stored form changes",
        )),
        (2.., Some(literal), None) => Err(Error::new(
            literal.span(),
            "a slice of version 2 or later needs `upcast = path::to::function`, or older items could not be read",
        )),
        _ => Ok(()),
    }
}

/// Returns the variant of `SlicePolicy` with a policy's name.
fn variant(policy: &LitStr) -> Result<proc_macro2::Ident> {
    let variant = match policy.value().as_str() {
        "state" => "State",
        "log" => "Log",
        "cache" => "Cache",
        "journal" => "Journal",
        _ => {
            return Err(Error::new(
                policy.span(),
                "the policy of a slice is \"state\", \"log\", \"cache\" or \"journal\"",
            ));
        }
    };
    Ok(format_ident!("{variant}"))
}
