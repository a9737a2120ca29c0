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

/// Returns whether the text reads as a symbol.
pub(crate) fn is_symbol_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let signed = bytes.next().is_some_and(|byte| byte == b'+' || byte == b'-');
    let first = if signed { bytes.next() } else { text.bytes().next() };
    let number = first.is_some_and(|byte| byte.is_ascii_digit())
        || text.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let other = text.starts_with([':', '#', '\'', '%']) || matches!(text, "nil" | "true" | "false");
    !number && !other && backstitch_lisp::is_keyword_name(text)
}
