//! `cargo +nightly fuzz run lisp_evaluator`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_lisp::fuzzing::evaluator(bytes);
});
