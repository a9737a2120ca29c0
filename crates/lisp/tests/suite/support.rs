//! Runs programs and checks their results.

use std::sync::OnceLock;

use backstitch_lisp::{Engine, Error, Inputs, MachineOutcome, Value, to_edn};

/// The engine that all tests share.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}

/// Runs a program that calls no tools, on the second of January 2026.
pub(crate) fn run(source: &str) -> Result<Value, Error> {
    let inputs = Inputs { now: 1_767_323_045_000, ..Inputs::default() };
    let program = engine().compile(source, &inputs)?;
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => finished.result,
        _ => panic!("{source} waits for the host"),
    }
}

/// Checks that a program returns a value, written as EDN.
#[track_caller]
pub(crate) fn gives(source: &str, expected: &str) {
    match run(source) {
        Ok(value) => assert_eq!(to_edn(&value), expected, "{source}"),
        Err(error) => panic!("{source}\n{error}"),
    }
}

/// Checks that a program fails with an error of this kind.
#[track_caller]
pub(crate) fn fails(source: &str, kind: &str) {
    match run(source) {
        Ok(value) => panic!("{source} gives {}", to_edn(&value)),
        Err(error) => assert_eq!(error.kind().name(), kind, "{source}\n{error}"),
    }
}
