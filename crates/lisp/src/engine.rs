//! The engine: the library, compiled once and shared by all programs.

use std::sync::Arc;

use crate::compile::{Builtins, Code, NameEnvironment, Program, compile_library, compile_program};
use crate::effort::{self, Watch};
use crate::error::Result;
use crate::inputs::Inputs;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::reader::{Name, ReadLimits, read_all, repair};
use crate::value::Value;

/// The version of the interpreter. The same program with the same inputs and answers takes the same steps in
/// all interpreters of this version, so every change of values, calls or fuel raises the number after the
/// slash.
pub const INTERPRETER: &str = concat!(env!("CARGO_PKG_VERSION"), "/6");

/// The first stamp that no function of the library has.
pub(crate) const FIRST_STAMP: u64 = 1 << 20;

/// The language with its library. Cloning is cheap, and one engine may serve any number of programs
/// concurrently.
///
/// ```
/// use backstitch_lisp::{Engine, Inputs, MachineOutcome, Request, Tools, Value};
///
/// let engine = Engine::new();
/// let inputs = Inputs { tools: Tools::new().with("price", ["item"]), ..Inputs::default() };
/// let program = engine.compile("(reduce + (map tool/price [\"tea\" \"milk\"]))", &inputs)?;
/// let mut machine = engine.start(&program, inputs);
/// let finished = loop {
///     match machine.run() {
///         MachineOutcome::Finished(finished) => break finished,
///         MachineOutcome::Suspended(requests) => {
///             for request in requests {
///                 // The host may answer at any later time: the program is suspended until then.
///                 machine.resume(request.path(), Ok(Value::Integer(2)));
///             }
///         }
///         _ => unreachable!(),
///     }
/// };
/// assert_eq!(finished.result?, Value::Integer(4));
/// # Ok::<(), backstitch_lisp::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

/// The state that all clones of an engine share.
pub(crate) struct EngineInner {
    pub(crate) builtins: Builtins,
    /// Library code by index.
    pub(crate) library_code: Vec<Arc<Code>>,
    read_limits: ReadLimits,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// Creates an engine. This compiles the library.
    pub fn new() -> Self {
        let mut builtins = Builtins::default();
        for native in crate::library::tables() {
            builtins.define(native.name, Value::Native(native));
        }
        for (name, value) in crate::library::constants().iter().flat_map(|table| table.iter()) {
            builtins.define(name, value());
        }
        for (name, value) in crate::library::enumerated() {
            builtins.define(&name, value);
        }
        for class in crate::library::CLASSES {
            builtins.define(class, Value::symbol(*class));
        }
        for (name, original) in crate::library::SYNONYMS {
            if let Some(value) = builtins.get(original).cloned() {
                builtins.define(name, value);
            }
        }
        let library_code = compile_library(crate::library::PRELUDE, &mut builtins)
            .unwrap_or_else(|error| panic!("invariant: the library compiles: {}", error.render()));
        Self(Arc::new(EngineInner { builtins, library_code, read_limits: ReadLimits::default() }))
    }

    /// Reads and compiles a program. Its names are resolved against the memory, data and tools of the inputs.
    pub fn compile(&self, source: &str, inputs: &Inputs) -> Result<Program> {
        // Compiling may not cost more than running: regular expressions, above all, are large for their text.
        let watch = Watch::begin(0, None);
        watch.allow(compiling_budget(&inputs.limits));
        let compiled = self.compile_watched(source, inputs);
        if effort::gives_up() { Err(effort::given_up()) } else { compiled }
    }

    fn compile_watched(&self, source: &str, inputs: &Inputs) -> Result<Program> {
        let source: Arc<str> = repair(source).into();
        let forms = read_all(&source, &self.0.read_limits.with_bytes(longest_source(&inputs.limits)))?;
        let around = NameEnvironment { builtins: &self.0.builtins, data: &inputs.data, tools: &inputs.tools };
        compile_program(source, &forms, around, inputs.memory.names.clone())
    }

    /// Creates a machine for a program that was compiled against the same inputs.
    pub fn start(&self, program: &Program, inputs: Inputs) -> Machine {
        Machine::new(self, program, inputs)
    }

    /// Returns every name of the library, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.builtins.names().collect();
        names.sort_unstable();
        names
    }

    /// Describes a name of the library in one line; `None` if there is no such name. The name may be written
    /// as in a program: `str/join`, `java.time.LocalDate/parse`.
    pub fn doc(&self, name: &str) -> Option<String> {
        let builtins = &self.0.builtins;
        let value = match Name::new(name) {
            name if crate::compile::is_internal(name.name()) => None,
            name => match name.namespace() {
                Some(namespace) => builtins.qualified(namespace, name.name()),
                None => builtins.bare(name.full()),
            },
        };
        Some(match value? {
            Value::Native(native) => {
                let counts = match (native.arity.least, native.arity.most) {
                    (least, Some(most)) if least == most => format!("{least}"),
                    (least, Some(most)) => format!("{least} to {most}"),
                    (least, None) => format!("{least} or more"),
                };
                format!("a function of the library that takes {counts} arguments")
            }
            Value::Closure(closure) => {
                let parameters: Vec<&str> = closure.parameters().collect();
                format!("a function of the library, ({name} {})", parameters.join(" "))
            }
            other => {
                format!("a {} of the library: {}", crate::types::type_label(other), crate::to_edn(other))
            }
        })
    }

    pub(crate) fn inner(&self) -> &Arc<EngineInner> {
        &self.0
    }
}

/// Returns the number of elementary operations that compiling may take.
fn compiling_budget(limits: &Limits) -> u64 {
    (limits.memory_bytes as u64 / 2).min(limits.fuel.saturating_mul(effort::OPERATIONS_PER_UNIT)).max(4 << 20)
}

/// Returns the longest source in bytes. A byte may become a form of about eighty bytes, and reading a program
/// should not take more memory than running it may.
fn longest_source(limits: &Limits) -> usize {
    (limits.memory_bytes / 64).max(64 << 10)
}
