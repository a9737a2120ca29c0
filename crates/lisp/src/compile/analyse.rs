//! From forms to the tree: resolves names, dispatches special forms, compiles calls.

use std::sync::Arc;

use super::builtins::{Builtins, INTERNAL, is_internal};
use super::forms::{foreign, unsupported};
use super::names::Names;
use super::node::{Expr, NodeKind, Slot};
use super::scope::{Level, is_local, resolve};
use crate::edn::literal;
use crate::error::{Error, ErrorKind, Result, did_you_mean};
use crate::inputs::Tools;
use crate::reader::{Form, FormKind, Name, Span};
use crate::value::{Map, Symbol, Value};

/// The deepest nesting of forms after expansion. The compiler recurses.
const DEEPEST: usize = 250;

/// The environment in which the names of a program are resolved.
pub(crate) struct NameEnvironment<'a> {
    pub(crate) builtins: &'a Builtins,
    pub(crate) data: &'a Map,
    pub(crate) tools: &'a Tools,
}

/// The state of compiling one program.
pub(crate) struct Analyser<'a> {
    pub(crate) around: NameEnvironment<'a>,
    pub(crate) names: Names,
    /// The text of the program; `None` while the library itself is compiled.
    pub(crate) source: Option<Arc<str>>,
    pub(crate) levels: Vec<Level>,
    /// True for a stored function, which may name tools and data that do not exist at the moment.
    pub(crate) is_stored: bool,
    /// Code of the library, numbered in the order of compilation.
    pub(crate) library_code: Vec<Arc<super::Code>>,
    /// Names that the library has defined so far.
    pub(crate) library_names: Vec<(Box<str>, Value)>,
    /// The places of definitions, by number.
    pub(crate) places: Vec<(u32, Span)>,
    depth: usize,
    gensyms: u32,
}

impl<'a> Analyser<'a> {
    pub(crate) fn new(around: NameEnvironment<'a>, names: Names, source: Option<Arc<str>>) -> Self {
        let (levels, library_code, library_names) = (Vec::new(), Vec::new(), Vec::new());
        let is_stored = false;
        let (places, depth, gensyms) = (Vec::new(), 0, 0);
        Self { around, names, source, levels, is_stored, library_code, library_names, places, depth, gensyms }
    }

    pub(crate) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("invariant: forms are compiled inside a function")
    }

    /// Returns a name that no program can write.
    pub(crate) fn fresh(&mut self, hint: &str) -> Name {
        self.gensyms += 1;
        Name::new(format!(" {hint}{}", self.gensyms))
    }

    /// Compiles a form. `tail` is true if its value is the value of the enclosing function or loop.
    pub(crate) fn form(&mut self, form: &Form, tail: bool) -> Result<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.depth -= 1;
            return Err(Error::new(ErrorKind::NestingExceeded, "forms are nested too deep").at(form.span));
        }
        let node = self.form_inner(form, tail);
        self.depth -= 1;
        node.map_err(|error| error.at(form.span))
    }

    fn form_inner(&mut self, form: &Form, tail: bool) -> Result<Expr> {
        let span = form.span;
        if let Some(value) = literal(form)? {
            return Ok(Expr::constant(value, span));
        }
        match &form.kind {
            FormKind::Symbol(name) => self.symbol(name, span),
            FormKind::Vector(items) => self.collection(items, span, NodeKind::Vector, Value::vector),
            FormKind::Map(items) => self.collection(items, span, NodeKind::Map, |values| {
                let entries = values.chunks_exact(2).map(|entry| (entry[0].clone(), entry[1].clone()));
                Value::Map(entries.collect())
            }),
            FormKind::Set(items) => {
                self.collection(items, span, NodeKind::Set, |values| Value::Set(values.into_iter().collect()))
            }
            FormKind::List(items) if items.is_empty() => Ok(Expr::constant(Value::list(Vec::new()), span)),
            FormKind::List(items) => self.list(items, span, tail),
            _ => Ok(Expr::constant(Value::Nil, span)),
        }
    }

    /// Compiles a collection: a constant if all of its items are.
    fn collection(
        &mut self,
        items: &[Form],
        span: Span,
        node: fn(Vec<Expr>) -> NodeKind,
        value: fn(Vec<Value>) -> Value,
    ) -> Result<Expr> {
        let nodes = self.forms(items)?;
        if nodes.iter().all(is_constant) {
            return Ok(Expr::constant(value(nodes.into_iter().filter_map(constant).collect()), span));
        }
        Ok(Expr::new(node(nodes), span))
    }

    /// Compiles forms none of which is in tail position.
    pub(crate) fn forms(&mut self, forms: &[Form]) -> Result<Vec<Expr>> {
        forms.iter().map(|form| self.form(form, false)).collect()
    }

    /// Compiles a body. Its last form is in tail position if the body is.
    pub(crate) fn body(&mut self, forms: &[Form], span: Span, tail: bool) -> Result<Expr> {
        self.joined(forms, span, tail, Value::Nil, NodeKind::Do)
    }

    /// Compiles forms of which the last one is in tail position to a node of them all. Without forms the
    /// value is `empty`.
    pub(crate) fn joined(
        &mut self,
        forms: &[Form],
        span: Span,
        tail: bool,
        empty: Value,
        node: fn(Vec<Expr>) -> NodeKind,
    ) -> Result<Expr> {
        match forms {
            [] => Ok(Expr::constant(empty, span)),
            [only] => self.form(only, tail),
            [first @ .., last] => {
                let mut nodes = self.forms(first)?;
                nodes.push(self.form(last, tail)?);
                Ok(Expr::new(node(nodes), span))
            }
        }
    }

    fn list(&mut self, items: &[Form], span: Span, tail: bool) -> Result<Expr> {
        let (head, arguments) = (&items[0], &items[1..]);
        if let Some(name) = head.as_symbol() {
            if let Some(node) = self.special(name, items, span, tail)? {
                return Ok(node);
            }
            if let Some(node) = self.interop(name, items, span)? {
                return Ok(node);
            }
            if !is_local(&self.levels, name)
                && let Some(tool) = self.tool_name(name)
            {
                let arguments = self.forms(arguments)?;
                return Ok(Expr::new(NodeKind::CallTool(tool, arguments), span));
            }
        }
        let function = self.form(head, false)?;
        let arguments = self.forms(arguments)?;
        if is_native(&function, "/") && arguments.len() > 1 && is_double(&arguments[0]) {
            return Ok(self.core("divide-double*", arguments, span));
        }
        Ok(call(function, arguments, span))
    }

    /// Returns the tool that a name in call position refers to.
    fn tool_name(&self, name: &Name) -> Option<Box<str>> {
        match name.namespace() {
            Some("tool") if self.is_stored => Some(name.name().into()),
            Some("tool") => self.around.tools.find(name.name()).map(Into::into),
            Some(_) => None,
            None => {
                let known = self.names.globals.number(name.full()).is_some()
                    || self.names.referred.contains_key(name.full())
                    || self.written_builtin(name.full()).is_some()
                    || self.data_key(name.full()).is_some();
                if known { None } else { self.around.tools.find(name.full()).map(Into::into) }
            }
        }
    }

    /// Returns the key of a data item.
    fn data_key(&self, name: &str) -> Option<Value> {
        let exact = [Value::keyword(name), Value::string(name)];
        exact.into_iter().find(|key| self.around.data.get_exact(key).is_some())
    }

    fn symbol(&mut self, name: &Name, span: Span) -> Result<Expr> {
        if let Some(kind) = resolve(&mut self.levels, name) {
            return Ok(Expr::new(kind, span));
        }
        if let Some(namespace) = name.namespace() {
            return self.qualified(namespace, name, span);
        }
        let text = name.full();
        if matches!(text, "*1" | "*2" | "*3") {
            let number = self.names.data.number_or_add(text);
            return Ok(Expr::new(NodeKind::Data(number), span));
        }
        if let Some(number) = self.names.globals.number(text) {
            return Ok(Expr::new(NodeKind::Global(number), span));
        }
        if let Some(full) = self.names.referred.get(text).cloned() {
            let full = Name::new(&*full);
            return self.qualified(full.namespace().unwrap_or_default(), &full, span);
        }
        if let Some(value) = self.written_builtin(text) {
            return Ok(Expr::constant(value, span));
        }
        let tool = self.around.tools.find(text).map(str::to_owned);
        let data = self.data_key(text);
        if self.is_stored && (tool.is_some() == data.is_some()) {
            // The name was a tool or data when the function was compiled. If it no longer exists, using it is
            // an error.
            return Ok(match self.names.data.number(text) {
                Some(number) => Expr::new(NodeKind::Data(number), span),
                None => Expr::constant(Value::Tool(Symbol::new(text)), span),
            });
        }
        match (tool, data) {
            (Some(tool), None) => Ok(Expr::constant(Value::Tool(Symbol::new(tool)), span)),
            (None, Some(_)) => {
                let number = self.names.data.number_or_add(text);
                Ok(Expr::new(NodeKind::Data(number), span))
            }
            (Some(tool), Some(_)) => Err(Tools::ambiguous(text, &tool)),
            (None, None) => Err(self.unbound(text)),
        }
    }

    /// Resolves a bare name of the source. Unlike [`Analyser::builtin`], it does not find internal names.
    fn written_builtin(&self, name: &str) -> Option<Value> {
        if self.source.is_some() && is_internal(name) {
            return None;
        }
        self.builtin(name)
    }

    /// Resolves a bare name of the library, including internal names that no program can write.
    pub(crate) fn builtin(&self, name: &str) -> Option<Value> {
        if self.source.is_none()
            && let Some((_, value)) = self.library_names.iter().rev().find(|(other, _)| **other == *name)
        {
            return Some(value.clone());
        }
        self.around.builtins.bare(name).cloned()
    }

    fn qualified(&mut self, namespace: &str, name: &Name, span: Span) -> Result<Expr> {
        if self.source.is_none()
            && let Some((_, value)) =
                self.library_names.iter().rev().find(|(other, _)| **other == *name.full())
        {
            return Ok(Expr::constant(value.clone(), span));
        }
        let short = name.name();
        match namespace {
            "user" => match self.names.globals.number(short) {
                Some(number) => Ok(Expr::new(NodeKind::Definition(number), span)),
                None => {
                    let error =
                        Error::new(ErrorKind::UnboundVar, format!("`{}` is not defined", name.full()));
                    let known: Vec<&str> = self.names.globals.iter().map(|name| &**name).collect();
                    Err(with_hint(error, did_you_mean(short, known)))
                }
            },
            "data" if !self.is_stored && self.data_key(short).is_none() => Err(self.unknown_data(short)),
            "data" => {
                let number = self.names.data.number_or_add(short);
                Ok(Expr::new(NodeKind::Data(number), span))
            }
            "tool" => match self.around.tools.find(short) {
                Some(tool) => Ok(Expr::constant(Value::Tool(Symbol::new(tool)), span)),
                None if self.is_stored => Ok(Expr::constant(Value::Tool(Symbol::new(short)), span)),
                None => Err(self.around.tools.unknown(short)),
            },
            _ => {
                let alias = self.names.aliases.get(namespace).cloned();
                let namespace = alias.as_deref().unwrap_or(namespace);
                let found = match namespace {
                    INTERNAL => self.builtin(short),
                    _ if canonical_is_core(namespace) => self.written_builtin(short),
                    _ if self.source.is_some() && is_internal(short) => None,
                    _ => self.around.builtins.qualified(namespace, short).cloned(),
                };
                match found {
                    Some(value) => Ok(Expr::constant(value, span)),
                    None => Err(self.unknown_in(namespace, short)),
                }
            }
        }
    }

    fn unknown_in(&self, namespace: &str, name: &str) -> Error {
        let class = super::builtins::without_package(namespace).unwrap_or(namespace);
        let advice = foreign(&format!("{class}/{name}"));
        if !self.around.builtins.knows_namespace(namespace) {
            let error =
                Error::new(ErrorKind::UnboundVar, format!("there is no namespace or class `{namespace}`"));
            if let Some(advice) = advice {
                return error.hint(advice);
            }
            // The same name elsewhere is a likelier intention than any other name: `s/join` is `str/join`.
            let mut elsewhere = self.around.builtins.written_as(name);
            elsewhere.sort_unstable();
            return error.hint(match &elsewhere[..] {
                [] => format!("known are {}", self.around.builtins.namespaces().join(" ")),
                names => format!("did you mean {}?", names.join(" or ")),
            });
        }
        let error = Error::new(ErrorKind::UnboundVar, format!("`{namespace}/{name}` does not exist"));
        if let Some(advice) = advice {
            return error.hint(advice);
        }
        let prefix = format!("{}/", super::builtins::canonical_namespace(namespace).unwrap_or(class));
        let mut known: Vec<&str> =
            self.around.builtins.names().filter_map(|known| known.strip_prefix(&prefix)).collect();
        known.sort_unstable();
        // A truncated or extended name is a likelier intention than one that differs by a few letters.
        let longer: Vec<String> = known
            .iter()
            .filter(|known| known.starts_with(name) || name.starts_with(**known))
            .map(|known| format!("`{namespace}/{known}`"))
            .collect();
        if !longer.is_empty() {
            return error.hint(format!("did you mean {}?", longer.join(" or ")));
        }
        match did_you_mean(name, known.iter().copied()) {
            Some(hint) => error.hint(hint.replace(" `", &format!(" `{namespace}/"))),
            None => error.hint(format!("{prefix} has {}", known.join(", "))),
        }
    }

    fn unbound(&self, name: &str) -> Error {
        let error = Error::new(ErrorKind::UnboundVar, format!("`{name}` is not defined"));
        // The most common case: a function of clojure.string or clojure.set without its namespace.
        for namespace in ["clojure.string", "clojure.set", "clojure.walk"] {
            if self.around.builtins.qualified(namespace, name).is_some() {
                let short = namespace.trim_start_matches("clojure.");
                let alias = if short == "string" { "str" } else { short };
                return error.hint(format!("did you mean `{alias}/{name}`?"));
            }
        }
        if let Some(unsupported) = unsupported(name) {
            return unsupported;
        }
        // What the program itself calls something comes first.
        let mut own: Vec<&str> = self.levels.iter().flat_map(Level::known_names).collect();
        own.extend(self.names.globals.iter().map(|name| &**name));
        own.extend(self.around.tools.names());
        own.extend(self.data_names());
        own.retain(|known| !known.starts_with(' '));
        if let Some(hint) = did_you_mean(name, own.iter().copied()) {
            return error.hint(hint);
        }
        if let Some(advice) = foreign(name) {
            return error.hint(advice);
        }
        if name.ends_with('\'') {
            return error.hint("a string is written in double quotes: `\"text\"`");
        }
        // A name that starts with a lowercase letter is not meant as a class.
        let is_class = name.starts_with(char::is_uppercase);
        let known: Vec<&str> = self
            .around
            .builtins
            .names()
            .filter(|known| !known.contains('/') && !known.starts_with('.') && !known.ends_with('.'))
            .filter(|known| known.starts_with(char::is_uppercase) == is_class)
            .collect();
        with_hint(error, did_you_mean(name, known))
    }

    fn data_names(&self) -> impl Iterator<Item = &str> {
        self.around.data.keys().filter_map(|key| match key {
            Value::Keyword(name) => Some(name.full()),
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The error for a data item that does not exist.
    fn unknown_data(&self, name: &str) -> Error {
        /// The most items that are listed.
        const MOST: usize = 20;
        let error = Error::new(ErrorKind::UnboundVar, format!("there is no data item `{name}`"));
        let known: Vec<&str> = self.data_names().collect();
        if known.is_empty() {
            return error.hint("there is no data; your own definitions have no prefix");
        }
        let listed: Vec<String> = known.iter().take(MOST).map(|name| format!("data/{name}")).collect();
        let listed = format!("there is {}", listed.join(", "));
        error.hint(match did_you_mean(name, known.iter().copied()) {
            Some(guess) => format!("{guess} {listed}"),
            None => listed,
        })
    }

    /// Calls a function of `clojure.core`, even if the program shadows its name.
    pub(crate) fn core(&mut self, name: &str, arguments: Vec<Expr>, span: Span) -> Expr {
        let function = self.builtin(name).unwrap_or_else(|| Value::symbol(name));
        call(Expr::constant(function, span), arguments, span)
    }

    pub(crate) fn local(slot: Slot, span: Span) -> Expr {
        Expr::new(NodeKind::Local { slot, last: false }, span)
    }
}

/// Builds a call. A native function is called directly, without pushing it on the stack.
pub(crate) fn call(function: Expr, arguments: Vec<Expr>, span: Span) -> Expr {
    match function.kind {
        NodeKind::Constant(Value::Native(native)) => Expr::new(NodeKind::CallNative(native, arguments), span),
        _ => Expr::new(NodeKind::Call(Box::new(function), arguments), span),
    }
}

fn is_native(function: &Expr, name: &str) -> bool {
    matches!(&function.kind, NodeKind::Constant(Value::Native(native)) if native.name == name)
}

/// Returns whether a value is a double whatever the program's data are, as Clojure's compiler knows it.
fn is_double(node: &Expr) -> bool {
    match &node.kind {
        NodeKind::Constant(value) => matches!(value, Value::Float(_)),
        NodeKind::CallNative(native, arguments) => match native.name {
            "double" | "float" | "divide-double*" => true,
            "Math/sqrt" | "Math/pow" | "Math/floor" | "Math/ceil" | "Math/exp" | "Math/log" => true,
            "+" | "-" | "*" | "/" | "inc" | "dec" => arguments.iter().any(is_double),
            _ => false,
        },
        _ => false,
    }
}

/// The error for a form that is not written as it should be.
pub(crate) fn malformed(message: impl Into<String>, span: Span) -> Error {
    Error::new(ErrorKind::InvalidForm, message).at(span)
}

pub(crate) fn with_hint(error: Error, hint: Option<String>) -> Error {
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn canonical_is_core(namespace: &str) -> bool {
    super::builtins::canonical_namespace(namespace) == Some("")
}

fn is_constant(node: &Expr) -> bool {
    matches!(&node.kind, NodeKind::Constant(value) if !matches!(value, Value::Native(_) | Value::Closure(_) | Value::Tool(_) | Value::Var(_)))
}

fn constant(node: Expr) -> Option<Value> {
    match node.kind {
        NodeKind::Constant(value) => Some(value),
        _ => None,
    }
}
