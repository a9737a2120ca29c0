//! The options of `#[tool(...)]`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, LitStr, Path, Result, Token};

use crate::options::{once, set};

const OF: &str = "a tool";
const KNOWN: &str = "`name`, `effect`, `workspace`, `resources`, `approval`, `timeout`, `example`, `reconcile`, `compensate` and `crate`";

/// The options of a tool, as they were written.
#[derive(Default)]
pub(super) struct Options {
    pub(super) name: Option<LitStr>,
    pub(super) effect: Option<LitStr>,
    pub(super) workspace: Option<LitStr>,
    pub(super) resources: Option<LitStr>,
    pub(super) approval: Option<()>,
    pub(super) timeout: Option<LitStr>,
    pub(super) examples: Vec<Example>,
    pub(super) reconcile: Option<Path>,
    pub(super) compensate: Option<Path>,
    pub(super) module: Option<Path>,
}

/// An example of a call.
pub(super) struct Example {
    description: LitStr,
    arguments: Group,
    result: Option<TokenStream>,
}

impl Options {
    pub(super) fn parse(arguments: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.take(&meta)).parse2(arguments)?;
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match meta.path.get_ident().map(Ident::to_string).as_deref() {
            Some("name") => once(&mut self.name, meta, OF),
            Some("effect") => once(&mut self.effect, meta, OF),
            Some("workspace") => once(&mut self.workspace, meta, OF),
            Some("resources") => once(&mut self.resources, meta, OF),
            Some("approval") => set(&mut self.approval, (), meta, OF),
            Some("timeout") => once(&mut self.timeout, meta, OF),
            Some("example") => Example::parse(meta).map(|example| self.examples.push(example)),
            Some("reconcile") => once(&mut self.reconcile, meta, OF),
            Some("compensate") => once(&mut self.compensate, meta, OF),
            Some("crate") => once(&mut self.module, meta, OF),
            _ => Err(meta.error(format!("unknown option of a tool; there are {KNOWN}"))),
        }
    }

    /// Returns the builder calls for the options.
    pub(super) fn builder_calls(&self, module: &TokenStream) -> Result<TokenStream> {
        let mut calls = TokenStream::new();
        if let Some(effect) = &self.effect {
            let variant = one_of(effect, "effect", &EFFECTS)?;
            calls.extend(quote!(.effect(#module::Effect::#variant)));
        }
        if let Some(workspace) = &self.workspace {
            let variant = one_of(workspace, "workspace", &WORKSPACE_USES)?;
            calls.extend(quote!(.workspace(#module::WorkspaceUse::#variant)));
        }
        if let Some(resources) = &self.resources {
            let variant = one_of(resources, "resources", &RESOURCE_USES)?;
            calls.extend(quote!(.resources(#module::ResourceUse::#variant)));
        }
        if self.approval.is_some() {
            calls.extend(quote!(.needs_approval()));
        }
        if let Some(timeout) = &self.timeout {
            let millis = milliseconds(timeout)?;
            calls.extend(quote!(.timeout(::core::time::Duration::from_millis(#millis))));
        }
        for Example { description, arguments, result } in &self.examples {
            let result = match result {
                Some(result) => quote!(::core::option::Option::Some(#module::json!(#result))),
                None => quote!(::core::option::Option::None),
            };
            calls.extend(quote! {
                .example(#module::tool_example(#description, #module::json!(#arguments), #result))
            });
        }
        if let Some(hook) = &self.reconcile {
            calls.extend(quote!(.reconcile(#module::reconcile_with(#hook))));
        }
        if let Some(hook) = &self.compensate {
            calls.extend(quote!(.compensate(#module::compensate_with(#hook))));
        }
        Ok(calls)
    }

    /// Refuses options that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        let effect = self.effect.as_ref().map(LitStr::value);
        let effect = effect.as_deref().unwrap_or("external");
        for (used, what) in [(&self.workspace, "writes files"), (&self.resources, "changes resources")] {
            if let Some(used) = used
                && (effect, used.value().as_str()) == ("pure", "write")
            {
                let problem = format!(
                    "a pure tool only reads; a tool that {what} has the effect \"workspace\", or a stronger one"
                );
                return Err(Error::new(used.span(), problem));
            }
        }
        match self.reconcile.as_ref().or(self.compensate.as_ref()) {
            Some(hook) if effect != "external" => Err(Error::new_spanned(
                hook,
                "only a tool with the effect \"external\" has hooks: calls of all others are run again after a crash",
            )),
            _ => Ok(()),
        }
    }
}

impl Example {
    fn parse(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        const OF: &str = "an example";
        let (mut description, mut arguments, mut result) = (None, None, None);
        meta.parse_nested_meta(|meta| match meta.path.get_ident().map(Ident::to_string).as_deref() {
            Some("description") => once(&mut description, &meta, OF),
            Some("arguments") => set(&mut arguments, object(meta.value()?)?, &meta, OF),
            Some("result") => set(&mut result, until_comma(meta.value()?)?, &meta, OF),
            _ => {
                Err(meta
                    .error("unknown option of an example; there are `description`, `arguments` and `result`"))
            }
        })?;
        match (description, arguments) {
            (Some(description), Some(arguments)) => Ok(Self { description, arguments, result }),
            _ => Err(meta.error(
                "an example says when one would make the call, and how: \
                 `example(description = \"...\", arguments = { \"name\": value })`",
            )),
        }
    }
}

/// Parses a JSON object, as the macro `json!` takes it.
fn object(input: ParseStream<'_>) -> Result<Group> {
    match input.parse()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Ok(group),
        other => Err(Error::new_spanned(other, "arguments are an object in JSON: `{ \"name\": value }`")),
    }
}

fn until_comma(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut value = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        value.extend([input.parse::<TokenTree>()?]);
    }
    if value.is_empty() { Err(input.error("a value in JSON is expected")) } else { Ok(value) }
}

const EFFECTS: [(&str, &str); 4] =
    [("pure", "Pure"), ("workspace", "Workspace"), ("idempotent", "Idempotent"), ("external", "External")];
const WORKSPACE_USES: [(&str, &str); 3] = [("none", "None"), ("read", "Read"), ("write", "Write")];
const RESOURCE_USES: [(&str, &str); 3] = WORKSPACE_USES;

/// Returns the variant with a name.
fn one_of(word: &LitStr, option: &str, words: &[(&str, &str)]) -> Result<Ident> {
    match words.iter().find(|(known, _)| *known == word.value()) {
        Some((_, variant)) => Ok(Ident::new(variant, word.span())),
        None => {
            let known: Vec<_> = words.iter().map(|(known, _)| format!("{known:?}")).collect();
            Err(Error::new(word.span(), format!("`{option}` is one of {}", known.join(", "))))
        }
    }
}

/// Parses a duration such as `30s`.
fn milliseconds(literal: &LitStr) -> Result<u64> {
    let text = literal.value();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let factor = match &text[digits..] {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let millis = factor.and_then(|factor| text[..digits].parse::<u64>().ok()?.checked_mul(factor));
    millis.filter(|millis| *millis > 0).ok_or_else(|| {
        Error::new(
            literal.span(),
            "a timeout is a whole number above zero with its unit: \"500ms\", \"30s\", \"5m\" or \"1h\"",
        )
    })
}
