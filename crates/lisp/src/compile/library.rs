//! Compiles the part of the library that is written in the language.

use std::sync::Arc;

use super::Code;
use super::analyse::{Analyser, NameEnvironment};
use super::builtins::Builtins;
use super::functions::single;
use super::names::Names;
use super::scope::Level;
use crate::error::Result;
use crate::inputs::Tools;
use crate::reader::{ReadLimits, read_all};
use crate::value::{Closure, Map, Stamp, Value};

/// Compiles `(defn name ...)` forms, each of which may use earlier ones and itself. Returns the code of all
/// functions, inner ones included, in the order of compilation: a stored function is identified by this
/// index.
pub(crate) fn compile_library(sources: &[&str], builtins: &mut Builtins) -> Result<Vec<Arc<Code>>> {
    let mut all_code = Vec::new();
    let mut defined: Vec<(Box<str>, Value)> = Vec::new();
    for source in sources {
        let forms = read_all(source, &ReadLimits::default())?;
        let (data, tools) = (Map::new(), Tools::default());
        let around = NameEnvironment { builtins, data: &data, tools: &tools };
        let mut analyser = Analyser::new(around, Names::default(), None);
        analyser.library_code = std::mem::take(&mut all_code);
        analyser.library_names = defined;
        for form in &forms {
            analyser.levels.push(Level::new(Vec::new()));
            let node = analyser.form(form, false).map_err(|error| error.locate(source))?;
            analyser.levels.pop();
            let name =
                form.as_list().and_then(|items| items.get(1)).and_then(|form| form.as_symbol()).cloned();
            if let (Some(code), Some(name)) = (single(node, 0), name) {
                // Functions of the library have the lowest stamps.
                let stamp = Stamp(analyser.library_names.len() as u64);
                let closure = Closure::new(code, 0, Arc::new([]), stamp);
                analyser.library_names.push((name.full().into(), Value::Closure(Arc::new(closure))));
            }
        }
        all_code = analyser.library_code;
        defined = analyser.library_names;
    }
    for (name, value) in defined {
        builtins.define(&name, value);
    }
    Ok(all_code)
}
