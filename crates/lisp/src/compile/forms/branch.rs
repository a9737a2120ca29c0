//! `if`, `when`, `cond`, `condp`, `case`, `and`, `or`.

use super::{SpecialForm, internal, invalid, list};
use crate::compile::analyse::{Analyser, malformed};
use crate::compile::node::{Expr, NodeKind};
use crate::edn::form_to_value;
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, FormKind, Span};
use crate::value::{Set, Value};

impl Analyser<'_> {
    pub(super) fn form_if(&mut self, form: SpecialForm<'_>, negated: bool) -> Result<Expr> {
        let SpecialForm { arguments, span, tail } = form;
        let (test, then, otherwise) = match arguments {
            [test, then] => (test, then, None),
            [test, then, otherwise] => (test, then, Some(otherwise)),
            _ if negated => return Err(invalid("(if-not test then else?)")),
            _ => return Err(invalid("(if test then else?)")),
        };
        let test = self.form(test, false)?;
        let then = self.form(then, tail)?;
        let otherwise = self.optional(otherwise, span, tail)?;
        Ok(Expr::branch(if negated { [test, otherwise, then] } else { [test, then, otherwise] }, span))
    }

    pub(super) fn optional(&mut self, form: Option<&Form>, span: Span, tail: bool) -> Result<Expr> {
        form.map_or_else(|| Ok(Expr::constant(Value::Nil, span)), |form| self.form(form, tail))
    }

    pub(super) fn form_when(&mut self, form: SpecialForm<'_>, negated: bool) -> Result<Expr> {
        let SpecialForm { arguments, span, tail } = form;
        let [test, body @ ..] = arguments else {
            return Err(invalid(if negated { "(when-not test body...)" } else { "(when test body...)" }));
        };
        let test = self.form(test, false)?;
        let body = self.body(body, span, tail)?;
        let nothing = Expr::constant(Value::Nil, span);
        Ok(Expr::branch(if negated { [test, nothing, body] } else { [test, body, nothing] }, span))
    }

    pub(super) fn form_cond(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        if !arguments.len().is_multiple_of(2) {
            return Err(Error::new(ErrorKind::InvalidForm, "cond requires an even number of forms"));
        }
        let mut clauses = Vec::new();
        for clause in arguments.chunks_exact(2) {
            // Clauses after an always-true test are still compiled, so that mistakes in them are found.
            let test = self.form(&clause[0], false)?;
            clauses.push((test, self.form(&clause[1], tail)?));
        }
        let otherwise = Expr::constant(Value::Nil, span);
        Ok(Expr::new(NodeKind::Cond(clauses, Box::new(otherwise)), span))
    }

    pub(super) fn form_condp(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let [predicate, value, clauses @ ..] = arguments else {
            return Err(invalid("(condp predicate value test result... default?)"));
        };
        let (p, v) = (self.fresh("predicate"), self.fresh("value"));
        let symbol = |name: &crate::reader::Name| Form::new(FormKind::Symbol(name.clone()), span);
        let mut remaining = clauses;
        let mut steps = Vec::new();
        let mut otherwise = None;
        while !remaining.is_empty() {
            let is_arrow = |form: &Form| matches!(&form.kind, FormKind::Keyword(name) if name.full() == ">>");
            match remaining {
                [test, arrow, function, rest @ ..] if is_arrow(arrow) => {
                    steps.push((test, function, true));
                    remaining = rest;
                }
                [test, result, rest @ ..] => {
                    steps.push((test, result, false));
                    remaining = rest;
                }
                [default] => {
                    otherwise = Some(default.clone());
                    remaining = &[];
                }
                [] => {}
            }
        }
        let mut form = otherwise.unwrap_or_else(|| internal("no-matching-clause*", [symbol(&v)], span));
        for (test, result, arrow) in steps.into_iter().rev() {
            let call = Form::list([symbol(&p), test.clone(), symbol(&v)], test.span);
            form = if arrow {
                let found = self.fresh("found");
                let then = Form::list([result.clone(), symbol(&found)], result.span);
                list("clojure.core/if-let", [Form::vector([symbol(&found), call], span), then, form], span)
            } else {
                list("if", [call, result.clone(), form], span)
            };
        }
        let bindings = Form::vector([symbol(&p), predicate.clone(), symbol(&v), value.clone()], span);
        self.form(&list("clojure.core/let", [bindings, form], span), tail)
    }

    pub(super) fn form_case(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let [value, clauses @ ..] = arguments else {
            return Err(invalid("(case value constant result... default?)"));
        };
        let value = self.form(value, false)?;
        let slot = self.level().reserve(1)?;
        let mut compiled: Vec<(Vec<Value>, Expr)> = Vec::new();
        let mut seen = Set::new();
        let pairs = clauses.chunks_exact(2);
        let default = pairs.remainder().first();
        for pair in pairs {
            // A list of constants matches any of its items.
            let constants = match &pair[0].kind {
                FormKind::List(items) => items.iter().map(form_to_value).collect::<Result<Vec<_>>>()?,
                _ => vec![form_to_value(&pair[0])?],
            };
            for constant in &constants {
                if seen.contains(constant) {
                    return Err(malformed("case has the same constant twice", pair[0].span));
                }
            }
            for constant in &constants {
                seen.insert(constant.clone());
            }
            compiled.push((constants, self.form(&pair[1], tail)?));
        }
        let otherwise = match default {
            Some(form) => self.form(form, tail)?,
            None => self.core("no-matching-clause*", vec![Self::local(slot, span)], span),
        };
        let case = NodeKind::Case {
            value: Box::new(Self::local(slot, span)),
            clauses: compiled,
            otherwise: Box::new(otherwise),
        };
        let bindings = vec![crate::compile::node::Binding::One(slot, value)];
        Ok(Expr::new(NodeKind::Let(bindings, Box::new(Expr::new(case, span))), span))
    }
}
