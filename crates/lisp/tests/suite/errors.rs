//! Errors: stable names, and the same text for people and models.

use backstitch_lisp::{Error, ErrorKind, ReadLimits, Span, read_all};

#[test]
fn names_are_unique_snake_case_and_found_again() {
    for (at, kind) in ErrorKind::ALL.iter().enumerate() {
        let name = kind.name();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(ErrorKind::from_name(name), Some(*kind));
        assert_eq!(
            ErrorKind::ALL.iter().position(|other| other.name() == name),
            Some(at),
            "{name} occurs twice"
        );
    }
    assert_eq!(ErrorKind::from_name("no_such_kind"), None);
}

#[test]
fn an_error_shows_its_line_with_a_caret_and_the_hint() {
    let source = "(def total 1)\n  (str total \"a\\d\")";
    let error = read_all(source, &ReadLimits::default()).unwrap_err();
    insta::assert_snapshot!(error.render(), @r#"
    parse_error: `\d` is not an escape in a string
      at line 2, column 16
      2 |   (str total "a\d")
        |                ^^
    hint: write `\\d` for a backslash, or a regex as `#"\d"`
    "#);
}

#[test]
fn columns_count_characters() {
    let error = Error::new(ErrorKind::Type, "no").at(Span::new(8, 11)).locate("\"λλ\" \"→\"");
    assert_eq!(error.column(), Some(7));
    insta::assert_snapshot!(error, @r#"
    type_error: no
      at line 1, column 7
      1 | "λλ" "→"
        |       ^
    "#);
}

#[test]
fn a_form_over_several_lines_is_marked_in_its_first() {
    let source = "(a\n  (b\n   c))";
    let error = Error::new(ErrorKind::Arity, "no").at(Span::new(5, 13)).locate(source);
    insta::assert_snapshot!(error, @"
    arity_error: no
      at line 2, column 3
      2 |   (b
        |   ^^
    ");
}

#[test]
fn long_lines_are_cut_around_the_place() {
    let source = format!("{}(oops){}", "a ".repeat(1000), " b".repeat(1000));
    let error = Error::new(ErrorKind::UnboundVar, "no").at(Span::new(2000, 2006)).locate(&source);
    assert_eq!(error.column(), Some(2001));
    let text = error.render();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].chars().count() < 120, "{text}");
    let caret = lines[3].find('^').unwrap();
    assert_eq!(&lines[2][caret..caret + 6], "(oops)");
}

#[test]
fn a_place_outside_of_the_text_is_its_end() {
    for span in [Span::new(100, 200), Span::new(5, 2), Span::new(u32::MAX, u32::MAX)] {
        let error = Error::new(ErrorKind::Parse, "no").at(span).locate("λ\n(a");
        assert!(error.line().is_some(), "{error}");
    }
    let empty = Error::new(ErrorKind::Parse, "no").at(Span::new(0, 0)).locate("");
    assert_eq!((empty.line(), empty.column()), (Some(1), Some(1)));
}

#[test]
fn the_first_place_and_the_first_source_stay() {
    let error = Error::new(ErrorKind::Type, "no")
        .at(Span::new(1, 2))
        .at(Span::new(0, 9))
        .locate("abc")
        .locate("\n\n\nx");
    assert_eq!((error.span(), error.line()), (Some(Span::new(1, 2)), Some(1)));
}

#[test]
fn an_error_without_a_place_is_one_line() {
    assert_eq!(Error::new(ErrorKind::FuelExceeded, "used up").render(), "fuel_exceeded: used up");
}
