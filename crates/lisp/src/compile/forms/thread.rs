//! The threading macros, `doto` and `..`.

use super::{SpecialForm, invalid, list};
use crate::compile::analyse::Analyser;
use crate::compile::node::Expr;
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, FormKind, Name, Span};

/// The argument position of the threaded value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadPosition {
    First,
    Last,
}

/// Inserts the threaded value into a step.
fn insert(value: Form, step: &Form, place: ThreadPosition) -> Form {
    match &step.kind {
        FormKind::List(items) if !items.is_empty() => {
            let mut forms: Vec<Form> = items.to_vec();
            let at = match place {
                ThreadPosition::First => 1,
                ThreadPosition::Last => forms.len(),
            };
            forms.insert(at, value);
            Form::list(forms, step.span)
        }
        _ => Form::list([step.clone(), value], step.span),
    }
}

fn symbol(name: &Name, span: Span) -> Form {
    Form::new(FormKind::Symbol(name.clone()), span)
}

impl Analyser<'_> {
    pub(super) fn form_thread(&mut self, form: SpecialForm<'_>, place: ThreadPosition) -> Result<Expr> {
        let SpecialForm { arguments, tail, .. } = form;
        let [value, steps @ ..] = arguments else { return Err(invalid("(-> value step...)")) };
        let threaded = steps.iter().fold(value.clone(), |value, step| insert(value, step, place));
        self.form(&threaded, tail)
    }

    pub(super) fn form_some_thread(&mut self, form: SpecialForm<'_>, place: ThreadPosition) -> Result<Expr> {
        let SpecialForm { arguments, span, .. } = form;
        let [value, steps @ ..] = arguments else { return Err(invalid("(some-> value step...)")) };
        let name = self.fresh("some");
        let mut bindings = vec![symbol(&name, span), value.clone()];
        for step in steps {
            let test = list("clojure.core/nil?", [symbol(&name, step.span)], step.span);
            let next = insert(symbol(&name, step.span), step, place);
            let nil = Form::new(FormKind::Nil, step.span);
            bindings.extend([symbol(&name, step.span), list("if", [test, nil, next], step.span)]);
        }
        self.form(&list("clojure.core/let", [Form::vector(bindings, span), symbol(&name, span)], span), false)
    }

    pub(super) fn form_cond_thread(&mut self, form: SpecialForm<'_>, place: ThreadPosition) -> Result<Expr> {
        let SpecialForm { arguments, span, .. } = form;
        let [value, clauses @ ..] = arguments else { return Err(invalid("(cond-> value test step...)")) };
        if clauses.len() % 2 != 0 {
            return Err(Error::new(ErrorKind::InvalidForm, "cond-> requires pairs of test and step"));
        }
        let name = self.fresh("cond");
        let mut bindings = vec![symbol(&name, span), value.clone()];
        for clause in clauses.chunks_exact(2) {
            let at = clause[1].span;
            let next = insert(symbol(&name, at), &clause[1], place);
            bindings
                .extend([symbol(&name, at), list("if", [clause[0].clone(), next, symbol(&name, at)], at)]);
        }
        self.form(&list("clojure.core/let", [Form::vector(bindings, span), symbol(&name, span)], span), false)
    }

    pub(super) fn form_as_thread(&mut self, arguments: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let [value, name, steps @ ..] = arguments else { return Err(invalid("(as-> value name step...)")) };
        let mut bindings = vec![name.clone(), value.clone()];
        for step in steps {
            bindings.extend([name.clone(), step.clone()]);
        }
        self.form(&list("clojure.core/let", [Form::vector(bindings, span), name.clone()], span), tail)
    }

    pub(super) fn form_doto(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [value, steps @ ..] = arguments else { return Err(invalid("(doto value step...)")) };
        let name = self.fresh("doto");
        let bindings = Form::vector([symbol(&name, span), value.clone()], span);
        let steps = steps.iter().map(|step| insert(symbol(&name, step.span), step, ThreadPosition::First));
        let body: Vec<Form> = std::iter::once(bindings).chain(steps).chain([symbol(&name, span)]).collect();
        self.form(&list("clojure.core/let", body, span), false)
    }

    pub(super) fn form_dot_dot(&mut self, arguments: &[Form], tail: bool) -> Result<Expr> {
        let [value, steps @ ..] = arguments else { return Err(invalid("(.. value step...)")) };
        let threaded = steps.iter().fold(value.clone(), |value, step| {
            let items = match step.as_list() {
                Some(items) => items.to_vec(),
                None => vec![step.clone()],
            };
            list(".", std::iter::once(value).chain(items), step.span)
        });
        self.form(&threaded, tail)
    }
}
