//! `cargo +nightly fuzz run snapshot_decoder`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_core::fuzzing::snapshot_decoder(bytes);
});
