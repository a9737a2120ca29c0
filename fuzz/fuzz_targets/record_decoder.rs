//! `cargo +nightly fuzz run record_decoder`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_fuzz::decoders::record_decoder(bytes);
});
