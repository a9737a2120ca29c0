//! `cargo +nightly fuzz run view_snapshot_decoder`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    backstitch_fuzz::decoders::view_snapshot_decoder(bytes);
});
