//! `let`, `letfn`, `loop`, `recur`, `fn`, and the branches that bind.

use super::{SpecialForm, Test, invalid};
use crate::compile::analyse::{Analyser, malformed};
use crate::compile::functions::FunctionForm;
use crate::compile::node::{Binding, Expr, NodeKind};
use crate::compile::scope::Target;
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, Span};
use crate::value::Value;

impl Analyser<'_> {
    pub(super) fn form_let(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let [bindings, body @ ..] = arguments else { return Err(invalid("(let [name value ...] body...)")) };
        let pairs = self.pairs("let", bindings)?;
        let mark = self.level().mark();
        let mut compiled = Vec::new();
        for pair in pairs.chunks_exact(2) {
            let value = self.form(&pair[1], false)?;
            self.bind(&pair[0], value, &mut compiled)?;
        }
        let body = self.body(body, span, tail)?;
        self.level().reset(mark);
        Ok(Expr::new(NodeKind::Let(compiled, Box::new(body)), span))
    }

    /// Returns the name and value pairs of a binding vector.
    pub(super) fn pairs<'f>(&self, form: &str, bindings: &'f Form) -> Result<&'f [Form]> {
        match bindings.as_vector() {
            Some(pairs) if pairs.len() % 2 == 0 => Ok(pairs),
            Some(_) => {
                Err(malformed(format!("{form} bindings require an even number of forms"), bindings.span))
            }
            None => Err(malformed(format!("{form} bindings must be a vector"), bindings.span)),
        }
    }

    pub(super) fn form_letfn(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let [specifications, body @ ..] = arguments else {
            return Err(invalid("(letfn [(name [x] body...) ...] body...)"));
        };
        let specifications =
            specifications.as_vector().ok_or_else(|| invalid("(letfn [(name [x] body...) ...] body...)"))?;
        let mut written = Vec::new();
        let mut names = Vec::new();
        for specification in specifications {
            let (name, rest) = match specification.as_list() {
                Some([name, rest @ ..]) => (name.as_symbol(), rest),
                _ => (None, &[][..]),
            };
            let name = name.ok_or_else(|| invalid("(name [x] body...) for each function of letfn"))?.clone();
            names.push(name.clone());
            written.push(FunctionForm::parse(Some(name), rest, specification.span)?);
        }
        let count = names.len() as u16;
        let functions = self.group(names.clone(), written)?;
        let mark = self.level().mark();
        let first = self.level().reserve(names.len())?;
        for (slot, name) in (first..).zip(names) {
            self.level().name(name, slot);
        }
        let body = Box::new(self.body(body, span, tail)?);
        self.level().reset(mark);
        Ok(Expr::new(NodeKind::Group { functions, first, count, body }, span))
    }

    pub(super) fn form_fn(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let (name, rest) = match arguments {
            [name, rest @ ..] if name.as_symbol().is_some() => (name.as_symbol().cloned(), rest),
            rest => (None, rest),
        };
        // Clojure has no docstring here, but it is harmless and models often write one.
        let rest = match rest {
            [doc, more @ ..]
                if !more.is_empty() && matches!(doc.kind, crate::reader::FormKind::String(_)) =>
            {
                more
            }
            rest => rest,
        };
        let written = FunctionForm::parse(name, rest, span)?;
        let function = self.function(written)?;
        Ok(Expr::new(NodeKind::Function(function), span))
    }

    pub(super) fn form_loop(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [bindings, body @ ..] = arguments else { return Err(invalid("(loop [name value ...] body...)")) };
        let pairs = self.pairs("loop", bindings)?;
        let count = pairs.len() / 2;
        let mark = self.level().mark();
        // Each initial value may use the earlier names, so they are bound one by one and then moved into the
        // slots that `recur` fills.
        let mut outer = Vec::new();
        let mut values = Vec::new();
        for pair in pairs.chunks_exact(2) {
            let value = self.form(&pair[1], false)?;
            let slot = self.level().reserve(1)?;
            outer.push(Binding::One(slot, value));
            self.bind_slot(&pair[0], slot, &mut outer)?;
            values.push(slot);
        }
        let first = self.level().reserve(count)?;
        let initial = values.into_iter().map(|slot| Self::local(slot, span)).collect();
        let mut inner = Vec::new();
        for (slot, pair) in (first..).zip(pairs.chunks_exact(2)) {
            self.bind_slot(&pair[0], slot, &mut inner)?;
        }
        let level = self.level();
        let target = level.target.replace(Target { first, count: count as u16, of_loop: true });
        let inside_try = std::mem::replace(&mut level.inside_try, false);
        let body = self.body(body, span, true);
        let level = self.level();
        level.target = target;
        level.inside_try = inside_try;
        level.reset(mark);
        let mut body = body?;
        if !inner.is_empty() {
            body = Expr::new(NodeKind::Let(inner, Box::new(body)), span);
        }
        let node = Expr::new(NodeKind::Loop { first, initial, body: Box::new(body) }, span);
        Ok(Expr::new(NodeKind::Let(outer, Box::new(node)), span))
    }

    pub(super) fn form_recur(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let error = |message: String| Error::new(ErrorKind::InvalidRecur, message).at(span);
        let level = self.level();
        let inside_try = level.inside_try;
        let Some(target) = level.target.filter(|_| !inside_try) else {
            let message =
                if inside_try { "cannot recur across try" } else { "recur needs a loop or a fn around it" };
            return Err(error(message.to_owned()));
        };
        if !tail {
            return Err(error("can only recur from tail position".to_owned()).hint(
                "nothing may be done with the value of recur; move it to the end or use a recursive call",
            ));
        }
        if arguments.len() != usize::from(target.count) {
            let (wanted, given) = (target.count, arguments.len());
            return Err(error(format!("recur takes {wanted} arguments here, got {given}")));
        }
        let arguments = self.forms(arguments)?;
        Ok(Expr::new(NodeKind::Recur { first: target.first, arguments, of_loop: target.of_loop }, span))
    }

    /// Compiles `if-let` and `if-some`, or, with a body instead of branches, `when-let` and `when-some`.
    pub(super) fn form_let_branch(&mut self, form: SpecialForm<'_>, test: Test, body: bool) -> Result<Expr> {
        let SpecialForm { arguments, span, tail } = form;
        let (bindings, then, otherwise) = match arguments {
            [bindings, then @ ..] if body => (bindings, then, None),
            [bindings, branches @ ..] if matches!(branches.len(), 1 | 2) => {
                (bindings, &branches[..1], branches.get(1))
            }
            _ if body => return Err(invalid("(when-let [name value] body...)")),
            _ => return Err(invalid("(if-let [name value] then else?)")),
        };
        let Some([pattern, value]) = bindings.as_vector() else {
            return Err(invalid("a vector of one name and one value").at(bindings.span));
        };
        let value = self.form(value, false)?;
        let slot = self.level().reserve(1)?;
        let condition = match test {
            Test::Truthy => Self::local(slot, span),
            Test::Some => {
                let is_nil = self.core("nil?", vec![Self::local(slot, span)], span);
                self.core("not", vec![is_nil], span)
            }
        };
        let mark = self.level().mark();
        let mut inner = Vec::new();
        self.bind_slot(pattern, slot, &mut inner)?;
        let mut then = self.body(then, span, tail)?;
        self.level().reset(mark);
        if !inner.is_empty() {
            then = Expr::new(NodeKind::Let(inner, Box::new(then)), span);
        }
        let otherwise = self.optional(otherwise, span, tail)?;
        let branch = Expr::branch([condition, then, otherwise], span);
        Ok(Expr::new(NodeKind::Let(vec![Binding::One(slot, value)], Box::new(branch)), span))
    }

    pub(super) fn form_when_first(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let [bindings, body @ ..] = arguments else {
            return Err(invalid("(when-first [name sequence] body...)"));
        };
        let Some([pattern, value]) = bindings.as_vector() else {
            return Err(invalid("a vector of one name and one value").at(bindings.span));
        };
        let value = self.form(value, false)?;
        let sequence = self.core("seq", vec![value], span);
        let slot = self.level().reserve(1)?;
        let mark = self.level().mark();
        let first = self.core("first", vec![Self::local(slot, span)], span);
        let mut inner = Vec::new();
        self.bind(pattern, first, &mut inner)?;
        let body = self.body(body, span, tail)?;
        self.level().reset(mark);
        let then = Expr::new(NodeKind::Let(inner, Box::new(body)), span);
        let branch = Expr::branch([Self::local(slot, span), then, Expr::constant(Value::Nil, span)], span);
        Ok(Expr::new(NodeKind::Let(vec![Binding::One(slot, sequence)], Box::new(branch)), span))
    }
}
