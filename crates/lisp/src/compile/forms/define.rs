//! `def`, `defn`, `declare`, `var`, and the namespace forms.

use super::invalid;
use crate::compile::analyse::{Analyser, malformed};
use crate::compile::builtins::canonical_namespace;
use crate::compile::functions::FunctionForm;
use crate::compile::node::{Expr, NodeKind};
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, FormKind, Name, Span};
use crate::value::{Symbol, Value};

impl Analyser<'_> {
    /// Returns the defined name, without `user/`.
    fn defined<'f>(&self, form: &'f Form) -> Result<&'f Name> {
        let name = form.as_symbol().ok_or_else(|| invalid("a name to define").at(form.span))?;
        match name.namespace() {
            None | Some("user") => Ok(name),
            Some(_) if self.source.is_none() => Ok(name),
            Some(namespace) => {
                let message = format!("only names of user/ can be defined, not of {namespace}/");
                Err(malformed(message, form.span))
            }
        }
    }

    pub(super) fn form_def(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let (name, doc, value) = match arguments {
            [name] => (name, None, None),
            [name, value] => (name, None, Some(value)),
            [name, doc, value] => match &doc.kind {
                FormKind::String(text) => (name, Some(Value::string(&**text)), Some(value)),
                _ => return Err(invalid("(def name docstring? value)")),
            },
            _ => return Err(invalid("(def name docstring? value)")),
        };
        let short = self.defined(name)?.name().to_owned();
        // The name is in scope in its own value, so that functions can be recursive.
        let global = self.names.globals.number_or_add(&short);
        self.places.push((global, span));
        let value = value.map(|value| self.form(value, false)).transpose()?.map(Box::new);
        if value.is_none() {
            let nodes = vec![
                Expr::new(NodeKind::Define { global, doc, value: None }, span),
                Expr::constant(Value::Var(Symbol::new(short)), span),
            ];
            return Ok(Expr::new(NodeKind::Do(nodes), span));
        }
        Ok(Expr::new(NodeKind::Define { global, doc, value }, span))
    }

    pub(super) fn form_defonce(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let Some(name) = arguments.first() else { return Err(invalid("(defonce name value)")) };
        let short = self.defined(name)?.name().to_owned();
        let global = self.names.globals.number_or_add(&short);
        // Whether the name is defined is known only at run time.
        let define = self.form_def(arguments, span)?;
        let is_defined = Expr::new(NodeKind::IsDefined(global), span);
        Ok(Expr::branch([is_defined, Expr::constant(Value::Nil, span), define], span))
    }

    pub(super) fn form_defn(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [name, rest @ ..] = arguments else {
            return Err(invalid("(defn name docstring? [parameters] body...)"));
        };
        let symbol = self.defined(name)?.clone();
        let (doc, rest) = match rest {
            [doc, rest @ ..] => match &doc.kind {
                FormKind::String(text) => (Some(Value::string(&**text)), rest),
                _ => (None, &arguments[1..]),
            },
            [] => (None, rest),
        };
        // A map of metadata may follow.
        let rest = match rest {
            [metadata, more @ ..] if matches!(metadata.kind, FormKind::Map(_)) => more,
            rest => rest,
        };
        let in_library = self.source.is_none();
        let short = if in_library { symbol.full() } else { symbol.name() }.to_owned();
        let global = if in_library { 0 } else { self.names.globals.number_or_add(&short) };
        let mut written = FunctionForm::parse(Some(Name::new(short.as_str())), rest, span)?;
        written.span = span;
        // A definition refers to itself through its global, so that redefining it affects every caller; the
        // library, which cannot be redefined, refers to itself directly.
        let function =
            if in_library { self.function(written)? } else { self.group(Vec::new(), vec![written])? };
        let value = Expr::new(NodeKind::Function(function), span);
        if in_library {
            return Ok(value);
        }
        Ok(Expr::new(NodeKind::Define { global, doc, value: Some(Box::new(value)) }, span))
    }

    pub(super) fn form_declare(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        for name in arguments {
            let short = self.defined(name)?.name().to_owned();
            self.names.globals.number_or_add(&short);
        }
        Ok(Expr::constant(Value::Nil, span))
    }

    pub(super) fn form_var(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [form] = arguments else { return Err(invalid("(var name)")) };
        let name = form.as_symbol().ok_or_else(|| invalid("(var name)"))?;
        let short = match name.namespace() {
            None | Some("user") => name.name(),
            Some(_) => name.full(),
        };
        if self.names.globals.number(short).is_some() {
            return Ok(Expr::constant(Value::Var(Symbol::new(short)), span));
        }
        // A var of the library is equivalent to the function itself.
        self.form(form, false)
    }

    /// `(require '[clojure.string :as s])`, `(use 'clojure.set)` and `(ns name (:require ...))`. Only aliases
    /// and names are read from them.
    pub(super) fn form_require(&mut self, form: &str, arguments: &[Form], span: Span) -> Result<Expr> {
        let unquoted = |form: &Form| match form.as_list() {
            Some([quote, inner]) if quote.is_symbol("quote") => inner.clone(),
            _ => form.clone(),
        };
        match form {
            "ns" => {
                for clause in arguments.iter().filter_map(Form::as_list) {
                    if let [head, specifications @ ..] = clause
                        && let FormKind::Keyword(name) = &head.kind
                        && matches!(name.full(), "require" | "use")
                    {
                        for specification in specifications {
                            self.require(specification, name.full() == "use")?;
                        }
                    }
                }
            }
            "require" | "use" => {
                for specification in arguments {
                    self.require(&unquoted(specification), form == "use")?;
                }
            }
            // `refer` has its options beside the namespace.
            "refer" => {
                let parts: Vec<Form> = arguments.iter().map(unquoted).collect();
                self.require(&Form::vector(parts, span), true)?;
            }
            _ => {}
        }
        Ok(Expr::constant(Value::Nil, span))
    }

    /// Reads the aliases and names of `namespace` or `[namespace option value ...]`. `use` makes all names of
    /// the namespace known, unless its options say which.
    fn require(&mut self, specification: &Form, is_use: bool) -> Result<()> {
        let items = specification.as_vector().unwrap_or(std::slice::from_ref(specification));
        let Some(namespace) = items.first().and_then(Form::as_symbol) else { return Ok(()) };
        if !self.around.builtins.knows_namespace(namespace.full()) {
            let message = format!("there is no namespace `{}`", namespace.full());
            return Err(Error::new(ErrorKind::UnboundVar, message)
                .at(specification.span)
                .hint("clojure.string, clojure.set and clojure.walk are there and need no require"));
        }
        let mut refers_to_all = is_use;
        let mut excluded: Vec<&str> = Vec::new();
        for pair in items[1..].chunks_exact(2) {
            let FormKind::Keyword(option) = &pair[0].kind else { continue };
            match (option.full(), &pair[1].kind, pair[1].as_vector().or(pair[1].as_list())) {
                ("as", FormKind::Symbol(alias), _) => {
                    self.names.aliases.insert(alias.full().into(), namespace.full().into());
                }
                ("refer" | "only", _, Some(names)) => {
                    refers_to_all = false;
                    for name in names.iter().filter_map(Form::as_symbol) {
                        self.refer(namespace.full(), name.full());
                    }
                }
                ("refer", FormKind::Keyword(all), _) if all.full() == "all" => refers_to_all = true,
                ("exclude", _, Some(names)) => {
                    excluded.extend(names.iter().filter_map(Form::as_symbol).map(|name| name.full()));
                }
                ("rename", ..) => {
                    return Err(Error::new(ErrorKind::Unsupported, "`:rename` is not supported")
                        .at(pair[0].span)
                        .hint("write `:as`, and the alias before the name"));
                }
                _ => {}
            }
        }
        // The names of `clojure.core` are known anyway.
        let canonical = canonical_namespace(namespace.full()).filter(|canonical| !canonical.is_empty());
        if refers_to_all && let Some(canonical) = canonical {
            let prefix = format!("{canonical}/");
            let of_namespace = |name: &str| name.strip_prefix(&prefix).map(str::to_owned);
            let names: Vec<String> = self.around.builtins.names().filter_map(of_namespace).collect();
            for name in names.iter().filter(|name| !excluded.contains(&name.as_str())) {
                self.refer(namespace.full(), name);
            }
        }
        Ok(())
    }

    /// Makes a name of a namespace known without it.
    fn refer(&mut self, namespace: &str, name: &str) {
        self.names.referred.insert(name.into(), format!("{namespace}/{name}").into());
    }
}
