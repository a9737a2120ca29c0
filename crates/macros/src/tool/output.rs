//! The result of a tool, from the return type of its function.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, GenericArgument, PathArguments, PathSegment, Result, ReturnType, Type};

/// The return type of a function.
pub(super) struct Output {
    shape: Shape,
    /// True if it is a `Result`.
    fallible: bool,
}

enum Shape {
    Nothing,
    ToolResult,
    Value(Box<Type>),
}

impl Output {
    pub(super) fn of(returned: &ReturnType) -> Result<Self> {
        let ReturnType::Type(_, kind) = returned else {
            return Ok(Self { shape: Shape::Nothing, fallible: false });
        };
        match last_segment(kind) {
            Some(segment) if segment.ident == "ToolOutcome" && segment.arguments.is_none() => {
                Ok(Self { shape: Shape::ToolResult, fallible: true })
            }
            Some(segment) if segment.ident == "Result" => match first_type(segment) {
                Some(kind) => Ok(Self { shape: Shape::of(kind)?, fallible: true }),
                None => Err(Error::new_spanned(
                    kind,
                    "what the result holds has to be written out: `Result<T, ToolError>`",
                )),
            },
            _ => Ok(Self { shape: Shape::of(kind)?, fallible: false }),
        }
    }

    /// Adds the output schema to the builder, if the type is known.
    pub(super) fn described(&self, builder: TokenStream, module: &TokenStream) -> TokenStream {
        match &self.shape {
            Shape::Nothing | Shape::ToolResult => builder,
            Shape::Value(kind) => quote_spanned!(kind.span()=> #module::describes_value::<#kind>(#builder)),
        }
    }

    /// Generates a compile-time check that the value is not a `Result` under another name.
    pub(super) fn guard(&self, module: &TokenStream) -> Option<TokenStream> {
        match &self.shape {
            Shape::Value(kind) => Some(quote_spanned! {kind.span()=>
                let _ = <#kind as #module::NotAnAliasOfResult<_>>::check;
            }),
            Shape::Nothing | Shape::ToolResult => None,
        }
    }

    /// Generates the conversion of the returned value to the outcome of a call.
    pub(super) fn outcome(&self, given: &TokenStream, module: &TokenStream) -> TokenStream {
        let convert = match self.shape {
            Shape::Nothing => quote!(done),
            Shape::ToolResult => quote!(tool_result),
            Shape::Value(_) => quote!(value_result),
        };
        if self.fallible {
            quote! {
                match #given {
                    ::core::result::Result::Ok(__given) => #module::#convert(__given),
                    ::core::result::Result::Err(__error) => {
                        ::core::result::Result::Err(#module::ToolError::from(__error))
                    }
                }
            }
        } else {
            quote!(#module::#convert(#given))
        }
    }
}

impl Shape {
    fn of(kind: &Type) -> Result<Self> {
        match kind {
            Type::Tuple(tuple) if tuple.elems.is_empty() => Ok(Self::Nothing),
            Type::ImplTrait(_) => Err(Error::new_spanned(
                kind,
                "the type of a result has to be written out: its schema is made from it",
            )),
            Type::Never(_) => Err(Error::new_spanned(kind, "a tool gives a result")),
            _ if last_segment(kind).is_some_and(|segment| segment.ident == "ToolResult") => {
                Ok(Self::ToolResult)
            }
            _ => Ok(Self::Value(Box::new(kind.clone()))),
        }
    }
}

fn last_segment(kind: &Type) -> Option<&PathSegment> {
    match kind {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

fn first_type(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    })
}
