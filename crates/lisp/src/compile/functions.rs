//! `fn`, `letfn`, `defn`: functions and their arities.

use std::sync::Arc;

use super::analyse::{Analyser, malformed};
use super::code::{Code, Function, Origin};
use super::emit::{Frame, emit};
use super::node::{Expr, FunctionNode, NodeKind};
use super::scope::{Level, Target};
use crate::error::Result;
use crate::reader::{Form, FormKind, Name, Span};
use crate::value::Symbol;

/// A function form: its name and its arities, each a parameter vector and a body.
pub(crate) struct FunctionForm<'f> {
    pub(crate) name: Option<Name>,
    pub(crate) arities: Vec<(&'f Form, &'f [Form])>,
    pub(crate) span: Span,
}

impl<'f> FunctionForm<'f> {
    /// Parses the part after the name of a function: `[x] body...` or `([x] body...) ([x y] body...)`.
    pub(crate) fn parse(name: Option<Name>, rest: &'f [Form], span: Span) -> Result<Self> {
        let mut arities = Vec::new();
        match rest.first().map(|form| &form.kind) {
            Some(FormKind::Vector(_)) => arities.push((&rest[0], &rest[1..])),
            Some(FormKind::List(_)) => {
                for arity in rest {
                    match arity.as_list() {
                        Some([parameters, body @ ..]) if parameters.as_vector().is_some() => {
                            arities.push((parameters, body));
                        }
                        _ => {
                            let message = "each arity of a function is written ([parameters] body...)";
                            return Err(malformed(message, span)
                                .hint("parameters stand in square brackets: `(fn [x] ...)`"));
                        }
                    }
                }
            }
            _ => return Err(malformed("a function needs a vector of parameters: (fn [x] body...)", span)),
        }
        Ok(Self { name, arities, span })
    }
}

impl Analyser<'_> {
    /// Compiles a function that may call itself by its name.
    pub(crate) fn function(&mut self, written: FunctionForm<'_>) -> Result<FunctionNode> {
        let siblings = written.name.iter().cloned().collect();
        self.group(siblings, vec![written])
    }

    /// Compiles functions that may call each other.
    pub(crate) fn group(
        &mut self,
        siblings: Vec<Name>,
        functions: Vec<FunctionForm<'_>>,
    ) -> Result<FunctionNode> {
        self.levels.push(Level::new(siblings));
        let compiled: Result<Vec<Function>> =
            functions.into_iter().map(|written| self.arities(written)).collect();
        let level = self.levels.pop().expect("invariant: pushed above");
        let functions = compiled?;
        let (names, captures): (Vec<_>, Vec<_>) =
            level.captures.into_iter().map(|(name, capture)| (name.full().into(), capture)).unzip();
        let origin = match &self.source {
            Some(source) => Origin::Program(source.clone()),
            None => Origin::Library(self.library_code.len() as u32),
        };
        let code = Arc::new(Code { functions, captured_names: names, origin });
        if self.source.is_none() {
            self.library_code.push(code.clone());
        }
        Ok(FunctionNode { code, captures })
    }

    fn arities(&mut self, written: FunctionForm<'_>) -> Result<Function> {
        let name = written.name.as_ref().map(|name| Symbol::new(name.full()));
        let mut function =
            Function { name, fixed: Vec::new(), variadic: None, parameters: Vec::new(), span: written.span };
        for (parameters, body) in written.arities {
            function.parameters.push(describe(parameters));
            let body = self.arity(parameters, body, written.span)?;
            if body.variadic {
                if function.variadic.is_some() {
                    return Err(malformed("a function has at most one arity with &", parameters.span));
                }
                function.variadic = Some(body);
            } else if function.fixed.iter().any(|other| other.parameters == body.parameters) {
                let message = "two arities of a function take the same number of arguments";
                return Err(malformed(message, parameters.span));
            } else {
                function.fixed.push(body);
            }
        }
        if let Some(variadic) = &function.variadic
            && function.fixed.iter().any(|fixed| fixed.parameters > variadic.parameters)
        {
            let message = "an arity with & must have at least as many parameters as every other";
            return Err(malformed(message, written.span));
        }
        Ok(function)
    }

    fn arity(&mut self, parameters: &Form, body: &[Form], span: Span) -> Result<super::code::Body> {
        let patterns = parameters.as_vector().unwrap_or(&[]);
        let (fixed, rest) = split_rest(patterns, parameters.span)?;
        let count = fixed.len() + usize::from(rest.is_some());
        let level = self.level();
        level.restart();
        let first = level.reserve(count)?;
        level.target = Some(Target { first, count: count as u16, of_loop: false });
        let mut bindings = Vec::new();
        for (slot, pattern) in (first..).zip(fixed.iter().chain(rest)) {
            self.bind_slot(pattern, slot, &mut bindings)?;
        }
        let body = match body {
            [conditions, rest @ ..] if !rest.is_empty() && matches!(conditions.kind, FormKind::Map(_)) => {
                self.with_conditions(conditions, rest, span)?
            }
            body => self.body(body, span, true)?,
        };
        let node =
            if bindings.is_empty() { body } else { Expr::new(NodeKind::Let(bindings, Box::new(body)), span) };
        let frame = Frame {
            parameters: fixed.len() as u16,
            variadic: rest.is_some(),
            slots: self.level().slots(),
            source: self.source.clone(),
        };
        emit(node, frame)
    }

    /// Compiles a body that begins with `{:pre [...] :post [...]}`.
    fn with_conditions(&mut self, conditions: &Form, body: &[Form], span: Span) -> Result<Expr> {
        let entries = match &conditions.kind {
            FormKind::Map(entries) => entries,
            _ => return self.body(body, span, true),
        };
        let find = |wanted: &str| {
            entries.chunks_exact(2).find_map(|entry| match &entry[0].kind {
                FormKind::Keyword(name) if name.full() == wanted => entry[1].as_vector(),
                _ => None,
            })
        };
        let (before, after) = (find("pre"), find("post"));
        if before.is_none() && after.is_none() {
            let mut nodes = vec![self.form(conditions, false)?];
            nodes.push(self.body(body, span, true)?);
            return Ok(Expr::new(NodeKind::Do(nodes), span));
        }
        let assertion = |test: &Form| {
            Form::list([Form::symbol("clojure.core/assert", test.span), test.clone()], test.span)
        };
        let mut forms: Vec<Form> = before.unwrap_or(&[]).iter().map(assertion).collect();
        match after {
            None => forms.extend_from_slice(body),
            Some(after) => {
                let inner: Vec<Form> =
                    std::iter::once(Form::symbol("do", span)).chain(body.iter().cloned()).collect();
                let bound = Form::vector([Form::symbol("%", span), Form::list(inner, span)], span);
                let mut form = vec![Form::symbol("clojure.core/let", span), bound];
                form.extend(after.iter().map(assertion));
                form.push(Form::symbol("%", span));
                forms.push(Form::list(form, span));
            }
        }
        self.body(&forms, span, true)
    }
}

/// Splits parameters into those before `&` and the one after it.
pub(crate) fn split_rest(patterns: &[Form], span: Span) -> Result<(&[Form], Option<&Form>)> {
    match patterns.iter().position(|form| form.is_symbol("&")) {
        None => Ok((patterns, None)),
        Some(at) if at + 2 == patterns.len() => Ok((&patterns[..at], Some(&patterns[at + 1]))),
        Some(_) => Err(malformed("exactly one name follows &", span)),
    }
}

/// Describes parameters for display: names as they are, patterns as `_`.
fn describe(parameters: &Form) -> Box<str> {
    let names: Vec<&str> = parameters
        .as_vector()
        .unwrap_or(&[])
        .iter()
        .map(|form| form.as_symbol().map_or("_", |name| name.full()))
        .collect();
    format!("[{}]", names.join(" ")).into()
}

/// Returns the code of the only function that an expression creates; its captures must be slots below
/// `captured`.
pub(super) fn single(node: Expr, captured: usize) -> Option<Arc<Code>> {
    match node.kind {
        NodeKind::Function(function) => {
            let mapped: Option<Vec<usize>> =
                function.captures.iter().map(|capture| capture.slot().map(usize::from)).collect();
            // Captures are found in the order of their use, which is the order in which they were stored.
            mapped.filter(|slots| slots.iter().all(|slot| *slot < captured)).map(|_| function.code)
        }
        NodeKind::Define { value: Some(value), .. } => single(*value, captured),
        NodeKind::Group { functions, .. } => Some(functions.code),
        _ => None,
    }
}
