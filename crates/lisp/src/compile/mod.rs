//! The compiler: from forms to instructions with every name resolved.
//!
//! [`analyse`] and [`forms`] turn forms into a small tree and report every mistake that can be found without
//! running; [`liveness`] finds the last use of each local; [`emit`] writes instructions. The library's own
//! code is compiled in the same way, once per engine.

mod analyse;
mod builtins;
mod code;
mod destructure;
mod emit;
mod forms;
mod functions;
mod library;
mod liveness;
mod names;
mod node;
mod purity;
mod scope;

use std::sync::Arc;

pub(crate) use analyse::{Analyser, NameEnvironment};
pub(crate) use builtins::{Builtins, is_internal};
pub(crate) use code::{Body, Capture, Case, Code, Function, Op, Origin, Proto};
pub(crate) use library::compile_library;
pub(crate) use names::Names;
use node::{Expr, NodeKind};
use scope::Level;

use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, Span};

/// The number under which the places of a program have that of its last form.
pub(crate) const LAST_FORM: u32 = u32::MAX;

/// A program compiled for a memory, data and tools.
#[derive(Clone)]
pub struct Program {
    pub(crate) code: Arc<Code>,
    pub(crate) names: Names,
    pub(crate) source: Arc<str>,
    /// The places of its definitions, by number.
    pub(crate) places: Arc<[(u32, Span)]>,
}

impl Program {
    /// Returns the text that was compiled, after repair.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// Compiles the forms of a program.
pub(crate) fn compile_program(
    source: Arc<str>,
    forms: &[Form],
    around: NameEnvironment<'_>,
    names: Names,
) -> Result<Program> {
    let mut analyser = Analyser::new(around, names, Some(source.clone()));
    let code = top_level(&mut analyser, forms, &source).map_err(|error| error.locate(&source))?;
    analyser.places.extend(forms.last().map(|form| (LAST_FORM, form.span)));
    let places = analyser.places.into();
    Ok(Program { code, names: analyser.names, source, places })
}

/// Compiles a stored function from its text and the names of its captured values.
pub(crate) fn compile_function(
    source: Arc<str>,
    form: &Form,
    captured: &[Box<str>],
    around: NameEnvironment<'_>,
    names: Names,
) -> Result<(Arc<Code>, Names)> {
    let mut analyser = Analyser::new(around, names, Some(source.clone()));
    analyser.is_stored = true;
    let code = function_of(&mut analyser, form, captured).map_err(|error| error.locate(&source))?;
    Ok((code, analyser.names))
}

fn top_level(analyser: &mut Analyser<'_>, forms: &[Form], source: &Arc<str>) -> Result<Arc<Code>> {
    analyser.levels.push(Level::new(Vec::new()));
    let mut nodes = Vec::with_capacity(forms.len());
    for form in forms {
        nodes.push(analyser.form(form, false)?);
    }
    let span = Span::new(0, u32::try_from(source.len()).unwrap_or(u32::MAX));
    let slots = analyser.level().slots();
    let node = if nodes.len() == 1 { nodes.remove(0) } else { Expr::new(NodeKind::Do(nodes), span) };
    let frame = emit::Frame { parameters: 0, variadic: false, slots, source: Some(source.clone()) };
    let body = emit::emit(node, frame)?;
    let function = Function { name: None, fixed: vec![body], variadic: None, parameters: Vec::new(), span };
    Ok(Arc::new(Code {
        functions: vec![function],
        captured_names: Vec::new(),
        origin: Origin::Program(source.clone()),
    }))
}

/// Returns the only function that a form creates, with its captures in the given order.
fn function_of(analyser: &mut Analyser<'_>, form: &Form, captured: &[Box<str>]) -> Result<Arc<Code>> {
    analyser.levels.push(Level::new(Vec::new()));
    for name in captured {
        let slot = analyser.level().reserve(1)?;
        analyser.level().name(crate::reader::Name::new(&**name), slot);
    }
    let node = analyser.form(form, false)?;
    functions::single(node, captured.len())
        .ok_or_else(|| Error::new(ErrorKind::InvalidStored, "a stored function is not a function"))
}
