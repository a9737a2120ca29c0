//! `cargo +nightly fuzz run lisp_reader`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_lisp::fuzzing::reader(bytes);
});
