//! `cargo +nightly fuzz run snapshot_decoder`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_fuzz::decoders::snapshot_decoder(bytes);
});
