//! `cargo +nightly fuzz run conversation_decoder`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_fuzz::decoders::conversation_decoder(bytes);
});
