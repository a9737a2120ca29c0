//! Reading numbers: every notation, their limits, and text that only begins like one.

use backstitch_lisp::{ErrorKind, FormKind, read_all};

use crate::reader::{error, limits, one, shapes};

#[test]
fn integers_in_every_notation() {
    for (text, value) in [
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("42", 42),
        ("-17", -17),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0Xff", 255),
        ("017", 15),
        ("2r101", 5),
        ("36rZZ", 1295),
        ("36rZZN", 46643),
        ("-16rff", -255),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("4/2", 2),
        ("0/5", 0),
        ("00", 0),
    ] {
        assert_eq!(one(text), FormKind::Integer(value), "{text}");
    }
}

#[test]
fn integers_beyond_64_bits_and_with_the_suffix_are_big() {
    for (text, shown) in [
        ("9223372036854775808", "9223372036854775808N"),
        ("-9223372036854775809", "-9223372036854775809N"),
        ("1N", "1N"),
        ("-0x1fN", "-31N"),
        ("017N", "15N"),
        ("0N", "0N"),
    ] {
        assert_eq!(shapes(text), shown, "{text}");
    }
}

#[test]
fn ratios_are_in_lowest_terms() {
    assert_eq!(shapes("1/3 -6/4 10/15"), "1/3 -3/2 2/3");
    assert_eq!(error("1/0").kind(), ErrorKind::Parse);
}

#[test]
fn doubles() {
    assert_eq!(shapes("1.5 -0.5 1. 1e3 2.5E+10 1e-7 -0.0"), "1.5 -0.5 1.0 1000.0 25000000000.0 1e-7 -0.0");
    assert_eq!(shapes("##Inf ##-Inf ##NaN 1e400"), "inf -inf NaN inf");
    assert_eq!(error("##Infinity").kind(), ErrorKind::Parse);
    assert!(error(".5").advice().is_some_and(|hint| hint.contains("0.5")));
    assert!(error("-.5").advice().is_some());
}

#[test]
fn what_only_begins_as_a_number_is_refused() {
    for text in [
        "1abc", "08", "0x", "0xg", "2r102", "1r0", "37r1", "1e", "1.5.2", "1_000", "0b11", "1/2N", "1//2",
        "1+", "12#",
    ] {
        assert_eq!(error(text).kind(), ErrorKind::Parse, "{text}");
    }
    let decimal = error("1.50M");
    assert_eq!(decimal.kind(), ErrorKind::Unsupported);
    assert!(decimal.advice().is_some_and(|hint| hint.contains("`1.50`")));
}

#[test]
fn a_number_has_a_limited_length() {
    let source = "9".repeat(20_000);
    assert_eq!(error(&source).kind(), ErrorKind::NumberSizeExceeded);
    assert!(read_all(&source, &limits().with_number_digits(30_000)).is_ok());
}
