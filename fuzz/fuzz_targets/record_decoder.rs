//! `cargo +nightly fuzz run record_decoder`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_core::fuzzing::record_decoder(bytes);
});
