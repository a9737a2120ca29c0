//! Destructuring: compiles patterns to plain bindings.

use std::collections::HashMap;

use super::analyse::{Analyser, call, malformed};
use super::functions::split_rest;
use super::node::{Binding, Expr, NodeKind, Slot};
use crate::error::Result;
use crate::reader::{Form, FormKind, Name, Span};
use crate::value::Value;

impl Analyser<'_> {
    /// Binds a pattern to a value.
    pub(crate) fn bind(&mut self, pattern: &Form, value: Expr, bindings: &mut Vec<Binding>) -> Result<()> {
        match &pattern.kind {
            FormKind::Symbol(name) => {
                let slot = self.level().reserve(1)?;
                bindings.push(Binding::One(slot, value));
                self.name_local(name, slot, pattern.span)
            }
            FormKind::Vector(items) => self.bind_vector(items, value, pattern.span, bindings),
            FormKind::Map(entries) => self.bind_map(entries, value, pattern.span, bindings),
            _ => Err(malformed("a name, a vector or a map is needed where something is bound", pattern.span)),
        }
    }

    /// Binds a pattern to a value that is already in a slot.
    pub(crate) fn bind_slot(
        &mut self,
        pattern: &Form,
        slot: Slot,
        bindings: &mut Vec<Binding>,
    ) -> Result<()> {
        match pattern.as_symbol() {
            Some(name) => self.name_local(name, slot, pattern.span),
            None => self.bind(pattern, Self::local(slot, pattern.span), bindings),
        }
    }

    fn name_local(&mut self, name: &Name, slot: Slot, span: Span) -> Result<()> {
        if name.namespace().is_some() {
            return Err(malformed(format!("a local name has no namespace: {}", name.full()), span));
        }
        self.level().name(name.clone(), slot);
        Ok(())
    }

    fn bind_vector(
        &mut self,
        items: &[Form],
        value: Expr,
        span: Span,
        bindings: &mut Vec<Binding>,
    ) -> Result<()> {
        let is_as = |form: &Form| matches!(&form.kind, FormKind::Keyword(name) if name.full() == "as");
        let (items, whole) = match items {
            [items @ .., keyword, name] if is_as(keyword) => (items, Some(name)),
            items => (items, None),
        };
        if let Some(keyword) = items.iter().find(|form| matches!(form.kind, FormKind::Keyword(_))) {
            return Err(malformed("in a vector pattern :as stands before the last name", keyword.span));
        }
        let value = match whole {
            None => value,
            Some(name) => {
                let slot = self.level().reserve(1)?;
                bindings.push(Binding::One(slot, value));
                self.bind_slot(name, slot, bindings)?;
                Self::local(slot, span)
            }
        };
        let (fixed, rest) = split_rest(items, span)?;
        let first = self.level().reserve(fixed.len() + usize::from(rest.is_some()))?;
        bindings.push(Binding::Spread { value, first, count: fixed.len() as u16, rest: rest.is_some() });
        for (slot, pattern) in (first..).zip(fixed.iter().chain(rest)) {
            self.bind_slot(pattern, slot, bindings)?;
        }
        Ok(())
    }

    fn bind_map(
        &mut self,
        entries: &[Form],
        value: Expr,
        span: Span,
        bindings: &mut Vec<Binding>,
    ) -> Result<()> {
        let slot = self.level().reserve(1)?;
        // Rest arguments are a sequence of keys and values; any other value is used as it is.
        let value = self.core("destructure-map*", vec![value], span);
        bindings.push(Binding::One(slot, value));
        let keyword = |form: &Form| match &form.kind {
            FormKind::Keyword(name) => Some(name.clone()),
            _ => None,
        };
        // If a name has two defaults, the first one counts.
        let defaults: HashMap<&str, &Form> = entries
            .chunks_exact(2)
            .filter(|entry| keyword(&entry[0]).is_some_and(|name| name.full() == "or"))
            .flat_map(|entry| match &entry[1].kind {
                FormKind::Map(pairs) => pairs.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
                _ => Vec::new(),
            })
            .rev()
            .filter_map(|(name, default)| Some((name.as_symbol()?.full(), default)))
            .collect();
        for entry in entries.chunks_exact(2) {
            let (pattern, source) = (&entry[0], &entry[1]);
            let Some(directive) = keyword(pattern) else {
                let key = self.form(source, false)?;
                self.bind_key(pattern, slot, key, &defaults, bindings)?;
                continue;
            };
            let namespace = directive.namespace().map(str::to_owned);
            match directive.name() {
                "or" => {}
                "as" => self.bind_slot(source, slot, bindings)?,
                kind @ ("keys" | "strs" | "syms") => {
                    let Some(names) = source.as_vector() else {
                        return Err(malformed(format!(":{kind} takes a vector of names"), source.span));
                    };
                    for item in names {
                        let (FormKind::Symbol(name) | FormKind::Keyword(name)) = &item.kind else {
                            return Err(malformed(format!(":{kind} takes a vector of names"), item.span));
                        };
                        let full = match (&namespace, name.namespace()) {
                            (Some(namespace), None) => format!("{namespace}/{}", name.name()),
                            _ => name.full().to_owned(),
                        };
                        let key = match kind {
                            "keys" => Value::keyword(full),
                            "strs" => Value::string(full),
                            _ => Value::symbol(full),
                        };
                        let local = Form::symbol(name.name(), item.span);
                        self.bind_key(&local, slot, Expr::constant(key, item.span), &defaults, bindings)?;
                    }
                }
                other => {
                    return Err(malformed(format!(":{other} means nothing in a map pattern"), pattern.span));
                }
            }
        }
        Ok(())
    }

    fn bind_key(
        &mut self,
        pattern: &Form,
        map: Slot,
        key: Expr,
        defaults: &HashMap<&str, &Form>,
        bindings: &mut Vec<Binding>,
    ) -> Result<()> {
        let span = pattern.span;
        let map = Self::local(map, span);
        let default = pattern.as_symbol().and_then(|name| defaults.get(name.full()));
        let value = match (default, &key.kind) {
            (Some(default), _) => {
                let default = self.form(default, false)?;
                self.core("get", vec![map, key, default], span)
            }
            // A keyword is its own lookup, which is one instruction.
            (None, NodeKind::Constant(Value::Keyword(_))) => call(key, vec![map], span),
            (None, _) => self.core("get", vec![map, key], span),
        };
        self.bind(pattern, value, bindings)
    }
}
