//! The parameters of a tool, from the arguments of its function.
//!
//! Each argument is a property of one generated struct, which is deserialised from the model's arguments; or
//! one argument with `#[args]` takes all of them. An argument of the type `ToolContext` receives the context.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, FnArg, Ident, LitStr, Pat, PatType, Result, Token, Type};

use crate::options::{Errors, once, set};

/// The parameters of a tool, and the arguments of the call of its function.
#[derive(Default)]
pub(super) struct Parameters {
    properties: Vec<Property>,
    /// The type of an `#[args]` argument.
    whole: Option<Box<Type>>,
    /// The arguments of the function, in order.
    passed: Vec<CallArgument>,
}

/// An argument of the function call.
enum CallArgument {
    Context,
    ContextReference,
    Property(Ident),
    Whole,
}

/// An argument that a model supplies.
struct Property {
    ident: Ident,
    kind: Box<Type>,
    /// Doc comments, and attributes that apply to a field as to an argument.
    docs: Vec<Attribute>,
    options: ArgOptions,
}

/// The options of `#[arg(...)]`.
#[derive(Default)]
struct ArgOptions {
    name: Option<LitStr>,
    description: Option<LitStr>,
    default: Option<Option<Expr>>,
}

impl ArgOptions {
    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        const OF: &str = "an argument";
        match meta.path.get_ident().map(Ident::to_string).as_deref() {
            Some("name") => once(&mut self.name, meta, OF),
            Some("description") => once(&mut self.description, meta, OF),
            Some("default") => {
                let value = if meta.input.peek(Token![=]) { Some(meta.value()?.parse()?) } else { None };
                set(&mut self.default, value, meta, OF)
            }
            _ => {
                Err(meta
                    .error("unknown option of an argument; there are `name`, `description` and `default`"))
            }
        }
    }
}

impl Parameters {
    /// Reads the arguments of a function, and removes the attributes of the macro.
    pub(super) fn take(inputs: &mut Punctuated<FnArg, Token![,]>) -> Result<Self> {
        let mut parameters = Self::default();
        let mut errors = Errors::default();
        for input in inputs {
            let taken = match input {
                FnArg::Typed(argument) => parameters.argument(argument),
                FnArg::Receiver(receiver) => Err(Error::new_spanned(
                    receiver,
                    "a tool is a function of its own, not a method: what it needs is in its context, as a resource",
                )),
            };
            errors.note(taken);
        }
        if parameters.whole.is_some()
            && let Some(property) = parameters.properties.first()
        {
            errors.note::<()>(Err(Error::new(
                property.ident.span(),
                "one argument is marked with `#[args]`: it holds all that a model gives, so there can be no other",
            )));
        }
        errors.or(parameters)
    }

    fn argument(&mut self, argument: &mut PatType) -> Result<()> {
        let attributes = std::mem::take(&mut argument.attrs);
        if let Some(passed) = context(&argument.ty) {
            let given = |passed: &CallArgument| {
                matches!(passed, CallArgument::Context | CallArgument::ContextReference)
            };
            if self.passed.iter().any(given) {
                return Err(Error::new_spanned(
                    &argument.ty,
                    "there is one context, and it is taken already",
                ));
            }
            self.passed.push(passed);
            return Ok(());
        }
        check_type(&argument.ty)?;
        if let Some(marker) = attributes.iter().find(|attribute| attribute.path().is_ident("args")) {
            if self.whole.is_some() {
                return Err(Error::new_spanned(marker, "only one argument can be all of them"));
            }
            self.whole = Some(argument.ty.clone());
            self.passed.push(CallArgument::Whole);
            return Ok(());
        }
        let property = Property::new(argument, attributes)?;
        self.passed.push(CallArgument::Property(property.ident.clone()));
        self.properties.push(property);
        Ok(())
    }

    /// Returns the type that arguments are deserialised into.
    pub(super) fn kind(&self) -> TokenStream {
        match (&self.whole, self.properties.is_empty()) {
            (Some(kind), _) => kind.to_token_stream(),
            (None, true) => quote!(()),
            (None, false) => quote!(__ToolArguments),
        }
    }

    /// Generates the declarations of the arguments.
    pub(super) fn declarations(&self, tool: &str, module: &TokenStream) -> TokenStream {
        if self.whole.is_some() || self.properties.is_empty() {
            return TokenStream::new();
        }
        let serde = quote!(#module::serde).to_string().replace(' ', "");
        let schemars = quote!(#module::schemars).to_string().replace(' ', "");
        let fields = self.properties.iter().map(Property::field);
        let defaults = self.properties.iter().filter_map(Property::default_function);
        quote! {
            #(#defaults)*

            #[derive(#module::serde::Deserialize, #module::schemars::JsonSchema)]
            #[serde(crate = #serde, deny_unknown_fields)]
            #[schemars(crate = #schemars, rename = #tool)]
            struct __ToolArguments {
                #(#fields),*
            }
        }
    }

    /// Returns the arguments of the function call.
    pub(super) fn passed(&self) -> impl Iterator<Item = TokenStream> {
        self.passed.iter().map(|passed| match passed {
            CallArgument::Context => quote!(__context),
            CallArgument::ContextReference => quote!(&__context),
            CallArgument::Property(ident) => quote!(__arguments.#ident),
            CallArgument::Whole => quote!(__arguments),
        })
    }
}

impl Property {
    fn new(argument: &PatType, attributes: Vec<Attribute>) -> Result<Self> {
        let ident = match &*argument.pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                pattern.ident.clone()
            }
            other => {
                return Err(Error::new_spanned(
                    other,
                    "an argument needs a name, which the model gives it by; mark it with `#[args]` if it holds all of them",
                ));
            }
        };
        let mut options = ArgOptions::default();
        let mut docs = Vec::new();
        let mut errors = Errors::default();
        for attribute in attributes {
            match attribute.path() {
                path if path.is_ident("arg") => {
                    errors.note(attribute.parse_nested_meta(|meta| options.take(&meta)));
                }
                path if path.is_ident("doc") => docs.push(attribute),
                path => {
                    errors.note::<()>(Err(Error::new_spanned(
                        path,
                        "an argument of a tool takes doc comments, `#[arg(...)]` and `#[args]`",
                    )));
                }
            }
        }
        errors.or(Self { ident, kind: argument.ty.clone(), docs, options })
    }

    fn field(&self) -> TokenStream {
        let Self { ident, kind, docs, options } = self;
        let name = options.name.as_ref().map(|name| quote!(#[serde(rename = #name)]));
        let description = options.description.as_ref().map(|text| quote!(#[schemars(description = #text)]));
        let default = options.default.as_ref().map(|_| {
            let function = self.default_name().to_string();
            quote!(#[serde(default = #function)])
        });
        // A missing trait of a type is reported at the type.
        quote_spanned!(kind.span()=> #(#docs)* #name #description #default #ident: #kind)
    }

    fn default_name(&self) -> Ident {
        format_ident!("__default_of_{}", self.ident.unraw())
    }

    fn default_function(&self) -> Option<TokenStream> {
        let (name, kind) = (self.default_name(), &self.kind);
        let value = match self.options.default.as_ref()? {
            Some(value) => quote_spanned!(value.span()=> #value),
            None => quote_spanned!(kind.span()=> ::core::default::Default::default()),
        };
        Some(quote!(fn #name() -> #kind { #value }))
    }
}

/// Returns the form in which the context is passed, if the type is that of a context.
fn context(kind: &Type) -> Option<CallArgument> {
    let named = |kind: &Type| match kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "ToolContext"),
        _ => false,
    };
    match kind {
        Type::Reference(reference) if reference.mutability.is_none() && named(&reference.elem) => {
            Some(CallArgument::ContextReference)
        }
        kind if named(kind) => Some(CallArgument::Context),
        _ => None,
    }
}

fn check_type(kind: &Type) -> Result<()> {
    match kind {
        Type::Reference(_) => Err(Error::new_spanned(
            kind,
            "an argument is read from what a model gave, so it is owned: `String` and not `&str`",
        )),
        Type::ImplTrait(_) => Err(Error::new_spanned(
            kind,
            "the type of an argument has to be written out: its schema is made from it",
        )),
        _ => Ok(()),
    }
}
