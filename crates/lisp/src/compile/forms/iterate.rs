//! `for`, `doseq`, `dotimes`, `while`, `lazy-seq`.

use super::{internal, invalid, list};
use crate::compile::analyse::{Analyser, malformed};
use crate::compile::functions::FunctionForm;
use crate::compile::node::{Expr, NodeKind};
use crate::error::Result;
use crate::reader::{Form, FormKind, Span};

/// One part of the binding vector of `for` and `doseq`.
enum Part<'f> {
    Each(&'f Form, &'f Form),
    Let(&'f Form),
    When(&'f Form),
    While(&'f Form),
}

fn parts<'f>(form: &str, bindings: &'f Form) -> Result<Vec<Part<'f>>> {
    let pairs = bindings.as_vector().filter(|pairs| pairs.len() % 2 == 0).ok_or_else(|| {
        let message = format!("{form} bindings must be a vector with an even number of forms");
        malformed(message, bindings.span)
    })?;
    let parts: Vec<Part<'f>> = pairs
        .chunks_exact(2)
        .map(|pair| match &pair[0].kind {
            FormKind::Keyword(name) => match name.full() {
                "let" => Ok(Part::Let(&pair[1])),
                "when" => Ok(Part::When(&pair[1])),
                "while" => Ok(Part::While(&pair[1])),
                other => {
                    let message = format!("{form} knows :let, :when and :while, not :{other}");
                    Err(malformed(message, pair[0].span))
                }
            },
            _ => Ok(Part::Each(&pair[0], &pair[1])),
        })
        .collect::<Result<_>>()?;
    match parts.first() {
        Some(Part::Each(..)) | None => Ok(parts),
        Some(_) => Err(malformed(format!("{form} begins with a name"), bindings.span)),
    }
}

impl Analyser<'_> {
    pub(super) fn form_for(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [bindings, body] = arguments else { return Err(invalid("(for [name sequence ...] body)")) };
        let parts = parts("for", bindings)?;
        if parts.is_empty() {
            return Err(invalid("(for [name sequence ...] body)"));
        }
        let form = for_parts(&parts, body, span);
        self.form(&form, false)
    }

    pub(super) fn form_doseq(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [bindings, body @ ..] = arguments else {
            return Err(invalid("(doseq [name sequence ...] body...)"));
        };
        let parts = parts("doseq", bindings)?;
        self.form(&doseq_parts(&parts, body, span), false)
    }

    pub(super) fn form_dotimes(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [bindings, body @ ..] = arguments else { return Err(invalid("(dotimes [name count] body...)")) };
        let Some([name, count]) = bindings.as_vector() else {
            return Err(invalid("(dotimes [name count] body...)"));
        };
        let limit = Form::new(FormKind::Symbol(self.fresh("limit")), span);
        let test = list("clojure.core/<", [name.clone(), limit.clone()], span);
        let again = list("recur", [list("clojure.core/inc", [name.clone()], span)], span);
        let steps =
            list("clojure.core/when", std::iter::once(test).chain(body.iter().cloned()).chain([again]), span);
        let start = Form::vector([name.clone(), Form::new(FormKind::Integer(0), span)], span);
        let looped = list("clojure.core/loop", [start, steps], span);
        let bound = Form::vector([limit, list("clojure.core/long", [count.clone()], count.span)], span);
        self.form(&list("clojure.core/let", [bound, looped], span), false)
    }

    pub(super) fn form_while(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [test, body @ ..] = arguments else { return Err(invalid("(while test body...)")) };
        let again = list("recur", [], span);
        let steps = list(
            "clojure.core/when",
            std::iter::once(test.clone()).chain(body.iter().cloned()).chain([again]),
            span,
        );
        self.form(&list("clojure.core/loop", [Form::vector(Vec::new(), span), steps], span), false)
    }

    pub(super) fn form_lazy_seq(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let parameters = Form::vector(Vec::new(), span);
        let forms: Vec<Form> = std::iter::once(parameters).chain(arguments.iter().cloned()).collect();
        let written = FunctionForm::parse(None, &forms, span)?;
        let function = self.function(written)?;
        Ok(Expr::new(NodeKind::Lazy(function), span))
    }

    pub(super) fn form_lazy_cat(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let parts = arguments.iter().map(|form| list("clojure.core/lazy-seq", [form.clone()], form.span));
        self.form(&list("clojure.core/concat", parts, span), false)
    }
}

/// Expands `doseq` to nested calls of `run!`, whose function gives a reduced value where a level ends early.
fn doseq_parts(parts: &[Part<'_>], body: &[Form], span: Span) -> Form {
    let nil = || Form::new(FormKind::Nil, span);
    match parts {
        [] => list("do", body.iter().cloned().chain([nil()]), span),
        [Part::Let(bindings), rest @ ..] => {
            list("clojure.core/let", [(*bindings).clone(), doseq_parts(rest, body, span)], span)
        }
        [Part::When(test), rest @ ..] => {
            list("if", [(*test).clone(), doseq_parts(rest, body, span), nil()], span)
        }
        [Part::While(test), rest @ ..] => {
            let stop = list("clojure.core/reduced", [nil()], span);
            list("if", [(*test).clone(), doseq_parts(rest, body, span), stop], span)
        }
        [Part::Each(pattern, source), rest @ ..] => {
            let parameters = Form::vector([(*pattern).clone()], pattern.span);
            let function = list("clojure.core/fn", [parameters, doseq_parts(rest, body, span)], span);
            internal("doseq*", [function, (*source).clone()], source.span)
        }
    }
}

/// Expands `for` to nested calls: each level maps its items to the sequences of the inner levels and
/// concatenates them.
fn for_parts(parts: &[Part<'_>], body: &Form, span: Span) -> Form {
    let [Part::Each(pattern, source), rest @ ..] = parts else { return body.clone() };
    if rest.is_empty() {
        let function =
            list("clojure.core/fn", [Form::vector([(*pattern).clone()], span), body.clone()], span);
        return list("clojure.core/map", [function, (*source).clone()], span);
    }
    let inner = for_step(rest, body, span);
    let function = list("clojure.core/fn", [Form::vector([(*pattern).clone()], span), inner], span);
    internal("for-concat*", [function, (*source).clone()], span)
}

/// Expands one item of a level: to a sequence, or to the marker that ends the level.
fn for_step(parts: &[Part<'_>], body: &Form, span: Span) -> Form {
    match parts {
        [] => list("clojure.core/list", [body.clone()], span),
        [Part::Let(bindings), rest @ ..] => {
            list("clojure.core/let", [(*bindings).clone(), for_step(rest, body, span)], span)
        }
        [Part::When(test), rest @ ..] => {
            let nil = Form::new(FormKind::Nil, span);
            list("if", [(*test).clone(), for_step(rest, body, span), nil], span)
        }
        [Part::While(test), rest @ ..] => {
            let stop = Form::new(FormKind::Boolean(false), span);
            list("if", [(*test).clone(), for_step(rest, body, span), stop], span)
        }
        [Part::Each(..), ..] => for_parts(parts, body, span),
    }
}
