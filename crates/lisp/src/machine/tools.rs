//! Tool calls: the arguments are matched with the tool's schema and realised, then the host is asked.

use std::sync::Arc;

use super::realise::{DeepWalk, Functions};
use super::request::{Request, ToolCall};
use super::work::{Host, Step, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::inputs::Tools;
use crate::value::{Map, Value};

pub(super) struct CallTool {
    name: Arc<str>,
    arguments: Value,
    walk: Option<DeepWalk>,
    asked: bool,
}

impl CallTool {
    pub(super) fn new(name: &str, arguments: Vec<Value>) -> Self {
        Self { name: name.into(), arguments: Value::vector(arguments), walk: None, asked: false }
    }
}

impl Work for CallTool {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        if self.asked {
            return Ok(Step::Return(incoming.unwrap_or_default()));
        }
        let walk = self.walk.get_or_insert_with(|| DeepWalk::new(&self.arguments, Functions::Opaque));
        if let Some(cell) = walk.advance(host.shared)? {
            return Ok(Step::Realise(cell));
        }
        if host.strand.foreign > 0 {
            let message = "a lazy sequence from outside of pmap calls a tool inside of it";
            return Err(Error::new(ErrorKind::ForbiddenEffect, message)
                .hint("realise the sequence before pmap: use `mapv` or `doall`"));
        }
        let Some(name) = host.shared.tools.find(&self.name).map(Arc::<str>::from) else {
            return Err(host.shared.tools.unknown(&self.name));
        };
        let given = match super::finish::harden(&self.arguments) {
            Value::Vector(given) => given.into_items(),
            _ => Vec::new(),
        };
        let arguments = lay_out(&host.shared.tools, &name, given)?;
        host.shared.count_tool_call()?;
        self.asked = true;
        let call = ToolCall { path: host.strand.path(), name, arguments: Value::Map(arguments) };
        Ok(Step::Ask(Box::new(Request::Tool(call))))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.arguments);
    }
}

/// Converts arguments to a map: from one map, alternating keywords and values, or values in the order of the
/// schema.
fn lay_out(tools: &Tools, name: &str, given: Vec<Value>) -> Result<Map> {
    let parameters = tools.parameters(name).unwrap_or(&[]);
    let mut arguments = Map::new();
    match given.as_slice() {
        [] => {}
        [Value::Map(map)] => {
            for (key, value) in map {
                arguments.insert(parameter(parameters, key), value.clone());
            }
        }
        [Value::Keyword(_), ..] if given.len().is_multiple_of(2) => {
            for pair in given.chunks_exact(2) {
                if !matches!(pair[0], Value::Keyword(_) | Value::String(_)) {
                    return Err(misplaced(parameters, name));
                }
                arguments.insert(parameter(parameters, &pair[0]), pair[1].clone());
            }
        }
        positional => {
            if positional.len() > parameters.len() {
                return Err(misplaced(parameters, name));
            }
            for (parameter, value) in parameters.iter().zip(positional) {
                arguments.insert(Value::string(parameter.as_str()), value.clone());
            }
        }
    }
    Ok(arguments)
}

#[cold]
fn misplaced(parameters: &[String], name: &str) -> Error {
    let example = parameters.first().map_or("parameter", String::as_str);
    let message = format!("tool/{name}: the arguments do not fit its parameters");
    Error::new(ErrorKind::InvalidToolArguments, message).hint(format!(
        "write `(tool/{name} {{:{example} value}})`; its parameters are: {}",
        parameters.join(", ")
    ))
}

/// Returns the name of a parameter as the schema has it. `_` replaces `-` only if the schema has that
/// spelling.
fn parameter(parameters: &[String], key: &Value) -> Value {
    let name = match key {
        Value::Keyword(name) => name.full(),
        Value::String(text) => text.as_str(),
        Value::Symbol(name) => name.full(),
        other => return other.clone(),
    };
    if !parameters.iter().any(|parameter| parameter == name) {
        let underscored = name.replace('-', "_");
        if parameters.contains(&underscored) {
            return Value::string(underscored);
        }
    }
    Value::string(name)
}

/// A task whose value is being recorded.
pub(super) struct TaskRecording(pub(super) Value);

impl Work for TaskRecording {
    fn step(&mut self, _: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        Ok(Step::Return(std::mem::take(&mut self.0)))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.0);
    }
}
