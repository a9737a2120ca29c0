//! Stored functions: their text and their captured values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::damaged;
use crate::compile::{Builtins, Code, NameEnvironment, Origin, compile_function};
use crate::error::{Error, ErrorKind, Result};
use crate::inputs::Tools;
use crate::memory::Memory;
use crate::reader::{Form, FormKind, ReadLimits, read_all};
use crate::value::{Closure, Map, Stamp, Value};

/// Returns the node of a function whose captured values are already in the table.
pub(super) fn function_node(closure: &Closure, captured: Vec<Json>) -> Result<Json> {
    let code = closure.code();
    let names: Vec<&str> = code.captured_names().collect();
    let (member, stamp) = (closure.member(), closure.stamp().0);
    let description = match &code.origin {
        Origin::Program(source) => {
            json!({"text": text_of(code, source)?, "names": names, "member": member, "stamp": stamp})
        }
        Origin::Library(number) => {
            json!({"library": number, "about": about(code), "names": names, "member": member, "stamp": stamp})
        }
    };
    let mut node = vec![json!("fn"), description];
    node.extend(captured);
    Ok(Json::Array(node))
}

/// Returns the text that compiles to this code again: a function form, or a `letfn` of functions that refer
/// to each other.
fn text_of(code: &Code, source: &str) -> Result<String> {
    let mut texts = Vec::with_capacity(code.functions.len());
    for function in &code.functions {
        let text = function.span.text(source).ok_or_else(|| damaged("a function outside of its text"))?;
        texts.push(text);
    }
    match &texts[..] {
        [only] if !is_spec(code, only) => Ok((*only).to_owned()),
        _ => Ok(format!("(letfn [{}] nil)", texts.join("\n"))),
    }
}

/// Returns whether the text of a function is a `letfn` spec, `(name [x] ...)`, which is not a form by itself.
fn is_spec(code: &Code, text: &str) -> bool {
    let name = code.functions.first().and_then(|function| function.name.as_ref());
    let head = read_all(text, &ReadLimits::default()).ok().and_then(|forms| {
        let head = forms.first()?.as_list()?.first()?.as_symbol()?.full().to_owned();
        Some(head)
    });
    match (name, head) {
        (Some(name), Some(head)) => head == name.full() && !matches!(&*head, "fn" | "fn*" | "defn" | "defn-"),
        _ => false,
    }
}

/// Returns the signature by which a library function is recognised when the library has changed.
fn about(code: &Code) -> String {
    let mut text = String::new();
    for function in &code.functions {
        text.push_str(function.name.as_ref().map_or("fn", |name| name.full()));
        for parameters in &function.parameters {
            text.push(' ');
            text.push_str(parameters);
        }
        text.push(';');
    }
    text
}

/// Compiles stored functions, each text once.
pub(super) struct FunctionReader<'a> {
    pub(super) builtins: &'a Builtins,
    pub(super) library: &'a [Arc<Code>],
    pub(super) data: &'a Map,
    pub(super) tools: &'a Tools,
    pub(super) compiled: HashMap<(String, Vec<Box<str>>), Arc<Code>>,
}

impl FunctionReader<'_> {
    pub(super) fn closure(
        &mut self,
        description: &Json,
        captured: Vec<Value>,
        memory: &mut Memory,
    ) -> Result<Closure> {
        let number = |name: &str| description.get(name).and_then(Json::as_u64);
        let names: Option<Vec<Box<str>>> = description
            .get("names")
            .and_then(Json::as_array)
            .and_then(|names| names.iter().map(|name| name.as_str().map(Box::from)).collect());
        let (Some(names), Some(member), Some(stamp)) = (names, number("member"), number("stamp")) else {
            return Err(damaged("a function without its description"));
        };
        let code = match (description.get("text").and_then(Json::as_str), number("library")) {
            (Some(text), _) => self.compile(text, &names, memory)?,
            (None, Some(place)) => {
                self.of_library(place, description.get("about").and_then(Json::as_str), &names)?
            }
            _ => return Err(damaged("a function without its text")),
        };
        let fits =
            code.captured_names().eq(names.iter().map(|name| &**name)) && names.len() == captured.len();
        let member = u32::try_from(member).ok().filter(|member| (*member as usize) < code.functions.len());
        let (true, Some(member)) = (fits, member) else {
            return Err(damaged("a function that captures other values than its text says"));
        };
        memory.note_stamp(stamp);
        Ok(Closure::new(code, member, captured.into(), Stamp(stamp)))
    }

    fn compile(&mut self, text: &str, names: &[Box<str>], memory: &mut Memory) -> Result<Arc<Code>> {
        let key = (text.to_owned(), names.to_vec());
        if let Some(code) = self.compiled.get(&key) {
            return Ok(code.clone());
        }
        let forms = read_all(text, &ReadLimits::default()).map_err(|error| not_compiled(&error))?;
        let [form] = &forms[..] else { return Err(damaged("the text of a function is not one form")) };
        if !is_function_form(form) {
            return Err(damaged("the text of a function is none"));
        }
        let around = NameEnvironment { builtins: self.builtins, data: self.data, tools: self.tools };
        let (code, grown) = compile_function(text.into(), form, names, around, memory.names.clone())
            .map_err(|error| not_compiled(&error))?;
        memory.names = grown;
        self.compiled.insert(key, code.clone());
        Ok(code)
    }

    /// Returns a library function by its index or, if the library has changed since, the only one with the
    /// same signature.
    fn of_library(&self, place: u64, like: Option<&str>, names: &[Box<str>]) -> Result<Arc<Code>> {
        let fits = |code: &Arc<Code>| {
            Some(&*about(code)) == like && code.captured_names().eq(names.iter().map(|name| &**name))
        };
        let there = usize::try_from(place).ok().and_then(|place| self.library.get(place));
        if let Some(code) = there.filter(|code| fits(code)) {
            return Ok(code.clone());
        }
        let mut alike = self.library.iter().filter(|code| fits(code));
        match (alike.next(), alike.next()) {
            (Some(code), None) => Ok(code.clone()),
            _ => Err(Error::new(
                ErrorKind::InvalidStored,
                "a stored value holds a function of the library that this version does not have",
            )),
        }
    }
}

/// Returns whether a form creates a function and does nothing else.
fn is_function_form(form: &Form) -> bool {
    let FormKind::List(items) = &form.kind else { return false };
    let head = items.first().and_then(Form::as_symbol).map(|name| name.name());
    matches!(head, Some("fn" | "fn*" | "defn" | "defn-" | "letfn"))
}

fn not_compiled(error: &Error) -> Error {
    Error::new(ErrorKind::InvalidStored, format!("a stored function does not compile: {}", error.message()))
}
