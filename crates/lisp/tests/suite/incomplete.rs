//! Text that ends too early, is nested too deep or is too long, and the spans of forms.

use backstitch_lisp::{Completeness, ErrorKind, Form, FormKind, Reader, Span, completeness, read_all};

use crate::reader::{error, limits, read};

#[test]
fn every_form_knows_its_place() {
    fn check(form: &Form, source: &str) {
        let text =
            form.span.text(source).unwrap_or_else(|| panic!("{:?} lies outside of {source}", form.span));
        assert!(!text.is_empty() && text.trim() == text, "{text:?}");
        for child in form.kind.children().into_iter().flat_map(|children| children.iter()) {
            assert!(form.span.start <= child.span.start && child.span.end <= form.span.end);
            check(child, source);
        }
    }
    let source = "(defn f [x] {:a #{x \"λ\"} 'b #(g %2)}) ; end\n  @y #'z ^long w 1/2";
    for form in read(source) {
        check(&form, source);
    }
    let forms = read("(a \"λ\" bc)");
    let places: Vec<Span> = forms[0].as_list().unwrap().iter().map(|form| form.span).collect();
    assert_eq!(places, [Span::new(1, 2), Span::new(3, 7), Span::new(8, 10)]);
}

#[test]
fn brackets_that_do_not_match() {
    let stray = error("(a))");
    assert_eq!((stray.kind(), stray.column()), (ErrorKind::Parse, Some(4)));
    let wrong = error("(let [x 1)\n x)");
    assert!(wrong.message().contains("line 1, column 6"), "{}", wrong.message());
    assert!(wrong.message().contains("expected `]`"), "{}", wrong.message());
}

#[test]
fn incomplete_text_can_go_on() {
    let incomplete = [
        "(", "(+ 1", "[1 2", "{:a", "#{", "#(", "'", "#'", "@", "\"abc", "#\"a", "(a \"b)", "^", "#_",
        "(a ; b)",
    ];
    for source in incomplete {
        assert!(matches!(completeness(source, &limits()), Completeness::Incomplete(_)), "{source}");
        assert_eq!(error(source).kind(), ErrorKind::IncompleteForm, "{source}");
    }
    for source in ["", "1", "(+ 1 2)", "; comment", "(a) (b)"] {
        assert_eq!(completeness(source, &limits()), Completeness::Complete, "{source}");
    }
    for source in [")", "(]", "{:a}}", "1x", "(a) )"] {
        assert!(matches!(completeness(source, &limits()), Completeness::Invalid(_)), "{source}");
    }
    assert!(error("(a [b {:c 1").advice().is_some_and(|hint| hint.contains("`}])`")));
}

#[test]
fn one_form_after_the_other() {
    let source = "1 (a b) ; rest\n\"c\" ";
    let mut reader = Reader::new(source, &limits()).unwrap();
    let mut ends = Vec::new();
    while let Some(form) = reader.next_form().unwrap() {
        assert_eq!(form.span.end as usize, reader.offset());
        ends.push(reader.offset());
    }
    assert_eq!(ends, [1, 7, 18]);
}

#[test]
fn nesting_is_limited() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("'", " "), ("#_", " "), ("@", " "), ("^a ", " "), ("{1 ", "}")]
    {
        let deep = format!("{}x{}", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(error(&deep).kind(), ErrorKind::NestingExceeded, "{open}");
        let fine = format!("{}1{}", open.repeat(100), close.repeat(100));
        let _ = read_all(&fine, &limits());
    }
    let huge = limits().with_depth(usize::MAX);
    let deep = format!("{}1{}", "[".repeat(1_001), "]".repeat(1_001));
    assert_eq!(read_all(&deep, &huge).unwrap_err().kind(), ErrorKind::NestingExceeded);
    let deepest = format!("{}1{}", "#{".repeat(1_000), "}".repeat(1_000));
    assert_eq!(read_all(&deepest, &huge).unwrap().len(), 1);
}

#[test]
fn text_is_limited() {
    assert_eq!(read_all("(+ 1 2)", &limits().with_bytes(6)).unwrap_err().kind(), ErrorKind::SizeExceeded);
}

#[test]
fn dropping_a_deep_form_needs_no_stack() {
    let mut form = Form::symbol("x", Span::default());
    for _ in 0..1_000_000 {
        form = Form::list([form], Span::default());
    }
    let shared = form.clone();
    drop(form);
    drop(shared);
}

#[test]
fn names_of_one_text_are_shared() {
    let forms = read("name :name name");
    let pointer = |form: &Form| match &form.kind {
        FormKind::Symbol(name) | FormKind::Keyword(name) => name.full().as_ptr(),
        other => panic!("{other:?}"),
    };
    assert_eq!(pointer(&forms[0]), pointer(&forms[1]));
    assert_eq!(pointer(&forms[0]), pointer(&forms[2]));
}
