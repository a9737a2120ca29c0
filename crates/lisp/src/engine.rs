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

/// Which interpreter this is. The same program with the same inputs and answers takes the same steps in all that have this
/// name; so the number after the slash is raised with any change of what a program gives, calls or uses up.
pub const INTERPRETER: &str = concat!(env!("CARGO_PKG_VERSION"), "/3");

/// The language with its library. Cloning is cheap, and one engine may serve any number of programs at once.
///
/// ```
/// use backstitch_lisp::{Engine, Inputs, Outcome, Request, Tools, Value};
///
/// let engine = Engine::new();
/// let inputs = Inputs { tools: Tools::new().with("price", ["item"]), ..Inputs::default() };
/// let program = engine.compile("(reduce + (map tool/price [\"tea\" \"milk\"]))", &inputs)?;
/// let mut machine = engine.start(&program, inputs);
/// let finished = loop {
///     match machine.run() {
///         Outcome::Finished(finished) => break finished,
///         Outcome::Suspended(requests) => {
///             for request in requests {
///                 // The host may take its time here: nothing runs meanwhile.
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

/// What all clones of an engine share.
pub(crate) struct EngineInner {
    pub(crate) builtins: Builtins,
    /// Code of the library by its number.
    pub(crate) library_code: Vec<Arc<Code>>,
    read_limits: ReadLimits,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// Compiles the library.
    pub fn new() -> Self {
        let mut builtins = Builtins::default();
        for native in crate::library::tables() {
            builtins.define(native.name, Value::Native(native));
        }
        for (name, value) in crate::library::constants().iter().flat_map(|table| table.iter()) {
            builtins.define(name, value());
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

    /// Reads and compiles a program. The names in it are resolved against the memory, data and tools of the inputs.
    pub fn compile(&self, source: &str, inputs: &Inputs) -> Result<Program> {
        // Compiling may not take more than running: regular expressions, above all, are large for their text.
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

    /// A machine about to run a program that was compiled against the same inputs.
    pub fn start(&self, program: &Program, inputs: Inputs) -> Machine {
        Machine::new(self, program, inputs)
    }

    /// Every name of the library, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.builtins.names().collect();
        names.sort_unstable();
        names
    }

    /// What a name of the library stands for, in a line for people; `None` when there is no such name. The name may be
    /// written as in a program: `str/join`, `java.time.LocalDate/parse`.
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

impl EngineInner {
    /// The first stamp that no function of the library has.
    pub(crate) fn first_stamp(&self) -> u64 {
        1 << 20
    }
}

/// How many elementary operations compiling may take.
fn compiling_budget(limits: &Limits) -> u64 {
    (limits.memory_bytes as u64 / 2).min(limits.fuel.saturating_mul(effort::OPERATIONS_PER_UNIT)).max(4 << 20)
}

/// How long a source may be, in bytes: a byte of it may become a form of some eighty, and what a program takes to be read
/// should stay within what it may take to run.
fn longest_source(limits: &Limits) -> usize {
    (limits.memory_bytes / 64).max(64 << 10)
}
