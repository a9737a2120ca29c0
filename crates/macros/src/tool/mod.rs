//! `#[tool]`.
//!
//! It generates a function of the same name that builds the tool, with the original function inside. It is
//! only sugar over the builder, which can express everything that the macro can.

mod options;
mod output;
mod parameters;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Error, Expr, ExprLit, Ident, ItemFn, Lit, LitStr, Meta, Result, Signature};

use self::options::Options;
use self::output::Output;
use self::parameters::Parameters;
use crate::options::{Errors, module};

/// The rule of `ToolName`; a test compares the two.
const MAX_NAME: usize = 64;
const RESERVED: [&str; 2] = ["runtime", "executor"];

pub(crate) fn expand(arguments: TokenStream, mut function: ItemFn) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let options = errors.note(Options::parse(arguments)).unwrap_or_default();
    errors.note(options.check());
    errors.note(check_signature(&function.sig));
    let name = errors.note(name(&function.sig.ident, options.name.as_ref())).unwrap_or_default();
    let description = errors.note(description(&function)).unwrap_or_default();
    let parameters = errors.note(Parameters::take(&mut function.sig.inputs)).unwrap_or_default();
    let output = errors.note(Output::of(&function.sig.output));
    let module = module(options.module.as_ref());
    let calls = errors.note(options.builder_calls(&module)).unwrap_or_default();
    let Some(output) = errors.or(output)? else { return Ok(TokenStream::new()) };

    let (outside, inside): (Vec<&Attribute>, Vec<&Attribute>) =
        function.attrs.iter().partition(|attribute| describes_item(attribute));
    let lints = inside.iter().filter(|attribute| attribute.path().is_ident("allow"));
    let (visibility, signature, block) = (&function.vis, &function.sig, &function.block);
    let (ident, kind) = (&signature.ident, parameters.kind());
    let declarations = parameters.declarations(&name, &module);
    let passed = parameters.passed();
    let call = quote!(#ident(#(#passed),*));
    let given = match signature.asyncness {
        Some(_) => quote!(#call.await),
        None => quote!(#module::in_place(move || #call)),
    };
    let outcome = output.outcome(&given, &module);
    let guard = output.guard(&module);
    let builder = quote!(#module::tool_builder(#name, #description)#calls);
    let builder = output.described(builder, &module);
    let item = quote_spanned! {ident.span()=>
        #(#outside)*
        #(#lints)*
        #visibility fn #ident() -> #module::Tool {
            #(#inside)*
            #[allow(clippy::too_many_arguments)]
            #signature #block

            #declarations
            #guard
            #builder.handler(|__context: #module::ToolContext, __arguments: #kind| async move { #outcome })
        }
    };
    Ok(item)
}

/// Returns whether an attribute belongs to the generated function rather than to the inner one.
fn describes_item(attribute: &Attribute) -> bool {
    let path = attribute.path();
    ["doc", "cfg", "deprecated", "must_use"].iter().any(|name| path.is_ident(name))
}

fn check_signature(signature: &Signature) -> Result<()> {
    if let Some(parameter) = signature.generics.params.first() {
        return Err(Error::new_spanned(
            parameter,
            "a tool cannot be generic: a model calls it by name, with one schema",
        ));
    }
    if let Some(token) = &signature.unsafety {
        return Err(Error::new_spanned(
            token,
            "a tool cannot be unsafe: a model that calls it cannot uphold a safety contract",
        ));
    }
    if let Some(token) = &signature.constness {
        return Err(Error::new_spanned(token, "a tool is made when it is asked for, so it cannot be const"));
    }
    match &signature.abi {
        Some(abi) => Err(Error::new_spanned(abi, "a tool is an ordinary function")),
        None => Ok(()),
    }
}

fn name(ident: &Ident, given: Option<&LitStr>) -> Result<String> {
    let (name, span) = match given {
        Some(literal) => (literal.value(), literal.span()),
        None => (ident.unraw().to_string(), ident.span()),
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if RESERVED.contains(&name.as_str()) {
        return Err(Error::new(
            span,
            format!("the name {name:?} is kept for the runtime; give another with `name = \"...\"`"),
        ));
    }
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(name);
    }
    Err(Error::new(
        span,
        format!("the name of a tool has 1 to {MAX_NAME} of the characters a-z, A-Z, 0-9, `_` and `-`"),
    ))
}

/// Returns the text of the doc comment.
fn description(function: &ItemFn) -> Result<String> {
    let mut lines = Vec::new();
    for attribute in function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => lines.push(text.value()),
            other => {
                return Err(Error::new_spanned(
                    other,
                    "the description of a tool is read when it is compiled, so it has to be written out",
                ));
            }
        }
    }
    // One attribute is one line, even if empty; a block comment is several.
    let lines: Vec<&str> = lines.iter().flat_map(|text| text.split('\n')).map(trimmed).collect();
    match lines.join("\n").trim() {
        "" => Err(Error::new(
            function.sig.ident.span(),
            "a tool needs a description, which is what a model chooses it by: write a doc comment, `/// ...`",
        )),
        text => Ok(text.to_owned()),
    }
}

/// Removes the space after `///` and trailing white space.
fn trimmed(line: &str) -> &str {
    line.strip_prefix(' ').unwrap_or(line).trim_end()
}

#[cfg(test)]
#[path = "../../tests/suite/names.rs"]
mod names;

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    #[test]
    fn names_are_checked_by_the_rule_of_the_core() {
        for (text, is_valid) in names::names() {
            let literal = LitStr::new(&text, Span::call_site());
            let ident = Ident::new("function", Span::call_site());
            assert_eq!(name(&ident, Some(&literal)).is_ok(), is_valid, "{text}");
        }
    }
}
