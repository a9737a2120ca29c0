//! `try`, `catch`, `finally`, `assert`.

use super::{internal, invalid};
use crate::compile::analyse::Analyser;
use crate::compile::node::{Expr, NodeKind};
use crate::error::Result;
use crate::reader::{Form, FormKind, Span};
use crate::value::Value;

impl Analyser<'_> {
    pub(super) fn form_try(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let clause = |form: &Form, name: &str| {
            form.as_list().is_some_and(|items| items.first().is_some_and(|head| head.is_symbol(name)))
        };
        let body_end = arguments
            .iter()
            .position(|form| clause(form, "catch") || clause(form, "finally"))
            .unwrap_or(arguments.len());
        let (body, clauses) = arguments.split_at(body_end);
        let inside_try = std::mem::replace(&mut self.level().inside_try, true);
        let result = self.try_parts(body, clauses, span);
        self.level().inside_try = inside_try;
        result
    }

    fn try_parts(&mut self, body: &[Form], clauses: &[Form], span: Span) -> Result<Expr> {
        let body = self.body(body, span, false)?;
        let slot = self.level().reserve(1)?;
        let mut catches = Vec::new();
        let mut finally = None;
        for clause in clauses {
            let expected =
                || invalid("(catch Class name body...) or a last (finally body...)").at(clause.span);
            match clause.as_list() {
                Some([head, class, name, handler @ ..]) if head.is_symbol("catch") && finally.is_none() => {
                    let class = match &class.kind {
                        FormKind::Symbol(class) => class.full().to_owned(),
                        // `(catch :default e ...)`, as in ClojureScript.
                        FormKind::Keyword(_) => "Throwable".to_owned(),
                        _ => return Err(expected()),
                    };
                    let name = name.as_symbol().ok_or_else(expected)?;
                    let mark = self.level().mark();
                    self.level().name(name.clone(), slot);
                    let handler = self.body(handler, clause.span, false)?;
                    self.level().reset(mark);
                    catches.push((class.into(), slot, handler));
                }
                Some([head, cleanup @ ..]) if head.is_symbol("finally") && finally.is_none() => {
                    let result = self.level().reserve(2)?;
                    let cleanup = self.body(cleanup, clause.span, false)?;
                    finally = Some((result, result + 1, Box::new(cleanup)));
                }
                _ => return Err(expected()),
            }
        }
        Ok(Expr::new(NodeKind::Try { body: Box::new(body), catches, finally }, span))
    }

    pub(super) fn form_assert(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let (test, message) = match arguments {
            [test] => (test, None),
            [test, message] => (test, Some(message)),
            _ => return Err(invalid("(assert test message?)")),
        };
        let text = self.source.as_deref().and_then(|source| test.span.text(source)).unwrap_or("").to_owned();
        let text = Form::new(FormKind::String(text.into()), test.span);
        let fail = internal("assertion-failed*", std::iter::once(text).chain(message.cloned()), span);
        let test = self.form(test, false)?;
        let fail = self.form(&fail, false)?;
        Ok(Expr::branch([test, Expr::constant(Value::Nil, span), fail], span))
    }
}
