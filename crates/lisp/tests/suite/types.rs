//! The vocabulary of types.

use backstitch_lisp::{Limits, read_edn, type_label};

#[test]
fn every_type_has_its_word() {
    for (text, label) in [
        ("[]", "list[0]"),
        ("[1 2 3]", "list[3]"),
        ("()", "list[0]"),
        ("(1 2)", "list[2]"),
        ("{}", "map[0]"),
        ("{:a 1}", "map[1]"),
        ("#{}", "set[0]"),
        ("#{1 2 3}", "set[3]"),
        ("\"a\"", "string"),
        ("1", "integer"),
        ("100000000000000000000", "integer"),
        ("1.5", "float"),
        ("##NaN", "float"),
        ("true", "boolean"),
        (":a", "keyword"),
        ("nil", "nil"),
        ("1/2", "ratio"),
        ("\\a", "char"),
        ("sym", "symbol"),
        ("#\"a\"", "regex"),
        ("#time/date \"2026-01-02\"", "date"),
        ("#inst \"2026-01-02\"", "date"),
    ] {
        assert_eq!(type_label(&read_edn(text, &Limits::default()).unwrap()), label, "{text}");
    }
}
