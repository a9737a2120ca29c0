//! Reading: every literal and collection, and refused notations.

use backstitch_lisp::{Error, ErrorKind, Form, FormKind, ReadLimits, is_keyword_name, read_all};

use crate::support::is_symbol_name;

pub(crate) fn limits() -> ReadLimits {
    ReadLimits::default()
}

pub(crate) fn read(source: &str) -> Vec<Form> {
    read_all(source, &limits()).unwrap_or_else(|error| panic!("{source:?}: {error}"))
}

pub(crate) fn one(source: &str) -> FormKind {
    let mut forms = read(source);
    assert_eq!(forms.len(), 1, "{source:?} holds {} forms", forms.len());
    forms.remove(0).kind
}

pub(crate) fn error(source: &str) -> Error {
    read_all(source, &limits()).expect_err(source)
}

/// Returns the form as text, to compare forms without spans.
fn shape(form: &Form) -> String {
    let inside = |items: &[Form]| items.iter().map(shape).collect::<Vec<_>>().join(" ");
    match &form.kind {
        FormKind::Nil => "nil".into(),
        FormKind::Boolean(value) => value.to_string(),
        FormKind::Integer(value) => value.to_string(),
        FormKind::BigInteger(value) => format!("{value}N"),
        FormKind::Ratio(value) => format!("{}/{}", value.0, value.1),
        FormKind::Double(value) => format!("{value:?}"),
        FormKind::Character(value) => format!("\\{value}"),
        FormKind::String(value) => format!("{value:?}"),
        FormKind::Regex(value) => format!("#{value:?}"),
        FormKind::Keyword(value) => format!(":{value}"),
        FormKind::Symbol(value) => value.to_string(),
        FormKind::List(items) => format!("({})", inside(items)),
        FormKind::Vector(items) => format!("[{}]", inside(items)),
        FormKind::Map(items) => format!("{{{}}}", inside(items)),
        FormKind::Set(items) => format!("#{{{}}}", inside(items)),
        FormKind::Tagged(tag, text) => format!("#{} {text:?}", tag.name()),
    }
}

pub(crate) fn shapes(source: &str) -> String {
    read(source).iter().map(shape).collect::<Vec<_>>().join(" ")
}

#[test]
fn strings_resolve_escapes_and_keep_newlines() {
    for (source, text) in [
        (r#""""#, ""),
        (r#""plain""#, "plain"),
        (r#""a\tb\nc\rd\\e\"f\bg\fh""#, "a\tb\nc\rd\\e\"f\u{8}g\u{c}h"),
        (r#""\u03bbx""#, "λx"),
        (r#""\101\7\0""#, "A\u{7}\0"),
        (r#""\ud83d\ude00""#, "😀"),
        ("\"two\nlines\"", "two\nlines"),
        ("\"λ→😀\"", "λ→😀"),
        (r#""; no comment""#, "; no comment"),
    ] {
        assert_eq!(one(source), FormKind::String(text.into()), "{source}");
    }
}

#[test]
fn broken_escapes_are_named() {
    let escape = error(r#"(str "a\d+")"#);
    assert_eq!(escape.kind(), ErrorKind::Parse);
    assert_eq!((escape.line(), escape.column()), (Some(1), Some(8)));
    for source in [r#""\u12""#, r#""\u12g4""#, r#""\ud83d""#, r#""\ude00\ud83d""#, r#""\400""#, r#""\λ""#] {
        assert_eq!(error(source).kind(), ErrorKind::Parse, "{source}");
    }
}

#[test]
fn characters() {
    for (source, character) in [
        (r"\a", 'a'),
        (r"\λ", 'λ'),
        (r"\😀", '😀'),
        (r"\newline", '\n'),
        (r"\space", ' '),
        (r"\tab", '\t'),
        (r"\backspace", '\u{8}'),
        (r"\formfeed", '\u{c}'),
        (r"\return", '\r'),
        (r"\u03bb", 'λ'),
        (r"\o101", 'A'),
        (r"\o7", '\u{7}'),
        (r"\u", 'u'),
        (r"\o", 'o'),
        (r"\\", '\\'),
        (r"\(", '('),
        (r#"\""#, '"'),
        (r"\;", ';'),
        (r"\,", ','),
        (r"\ ", ' '),
    ] {
        assert_eq!(one(source), FormKind::Character(character), "{source}");
    }
    assert_eq!(shapes(r"[\a\b \( \)]"), r"[\a \b \( \)]");
    for source in [r"\abc", r"\u123", r"\u12345", r"\o400", r"\o8", r"\ud800", r"\(a"] {
        assert_eq!(error(source).kind(), ErrorKind::Parse, "{source}");
    }
    assert_eq!(error("\\").kind(), ErrorKind::IncompleteForm);
}

#[test]
fn keywords_and_symbols() {
    assert_eq!(shapes(":a :a/b :a.b/c-d? :1 :a:b :+ :/ :λ :a'"), ":a :a/b :a.b/c-d? :1 :a:b :+ :/ :λ :a'");
    assert_eq!(
        shapes("x a/b + - -> / clojure.core// x' *1 .trim Foo. % %1 & a#b é"),
        "x a/b + - -> / clojure.core// x' *1 .trim Foo. % %1 & a#b é"
    );
    assert_eq!(shapes("nil true false nilly truer"), "nil true false nilly truer");
    let FormKind::Symbol(name) = one("user/big?") else { panic!("not a symbol") };
    assert_eq!((name.namespace(), name.name()), (Some("user"), "big?"));
    let FormKind::Symbol(name) = one("clojure.core//") else { panic!("not a symbol") };
    assert_eq!((name.namespace(), name.name()), (Some("clojure.core"), "/"));
    for source in [
        ":",
        "a:",
        ":a:",
        "a/",
        "/a",
        "a/b/c",
        ":a/b/c",
        "a::b",
        ":a/:b",
        "a\u{a0}b",
        "a\u{200b}b",
        "a\u{0}b",
    ] {
        assert_eq!(error(source).kind(), ErrorKind::Parse, "{source:?}");
    }
    let double = error("::name");
    assert_eq!(double.kind(), ErrorKind::Unsupported);
    assert!(double.advice().is_some_and(|hint| hint.contains("`:name`")));
}

#[test]
fn names_that_would_read_back() {
    for name in ["a", "content-type", "a_b", "1", "a/b", "x'", "λ", "a:b"] {
        assert!(is_keyword_name(name), "{name}");
    }
    for name in ["", "a b", "a/b/c", "x(y", ":a", "a:", "a\"b", "a\nb", "a\u{a0}b", "/a", "a,b", "\u{feff}"] {
        assert!(!is_keyword_name(name), "{name:?}");
    }
    for name in ["1", "-1", "nil", "true", "#a", ":a", ".5", "'a"] {
        assert!(!is_symbol_name(name), "{name}");
    }
    for name in ["-", "+", "->", "/", "a/b", ".trim", "nil?"] {
        assert!(is_symbol_name(name), "{name}");
    }
}

#[test]
fn collections() {
    assert_eq!(shapes("() [] {} #{}"), "() [] {} #{}");
    assert_eq!(shapes("(a [b {:c #{d}}])"), "(a [b {:c #{d}}])");
    assert_eq!(shapes("{:a 1, :b 2,}"), "{:a 1 :b 2}");
    assert_eq!(shapes("(a(b)[c]\"d\"e)"), "(a (b) [c] \"d\" e)");
}

#[test]
fn odd_maps_and_duplicates_are_refused_as_in_clojure() {
    assert!(error("{:a}").message().contains("pairs"));
    for source in [
        "{:a 1 :a 2}",
        "#{1 1}",
        "#{1 1N}",
        "#{[1] (1)}",
        "#{0.0 -0.0}",
        "#{{:a 1 :b 2} {:b 2 :a 1}}",
        "#{#{1 2} #{2 1}}",
        "#{(rand) (rand)}",
        "{[1 2] 1 [1 2] 2}",
        "#{nil nil}",
        "#{\"a\" \"a\"}",
    ] {
        assert!(error(source).message().contains("twice"), "{source}");
    }
    let many: String = (0..100).map(|number| format!("{number} ")).collect();
    assert!(read_all(&format!("#{{{many}}}"), &limits()).is_ok());
    assert!(error(&format!("#{{{many} 57}}")).message().contains("`57`"));
    for source in
        ["#{1 1.0}", "#{:a \"a\" a}", "#{#\"a\" #\"a\"}", "#{##NaN ##NaN}", "{:a 1 :b 1}", "#{\\a \"a\"}"]
    {
        read(source);
    }
}

#[test]
fn short_notations_are_written_out() {
    assert_eq!(shapes("'x '(1 2) ''x"), "(quote x) (quote (1 2)) (quote (quote x))");
    assert_eq!(shapes("#'inc"), "(var inc)");
    assert_eq!(shapes("@state"), "(clojure.core/deref state)");
    assert_eq!(shapes("a@b"), "a (clojure.core/deref b)");
    assert_eq!(error("#'(a)").kind(), ErrorKind::Parse);
}

#[test]
fn short_functions() {
    assert_eq!(shapes("#(+ % 1)"), "(fn* [%1] (+ %1 1))");
    assert_eq!(shapes("#(f %3 %)"), "(fn* [%1 %2 %3] (f %3 %1))");
    assert_eq!(shapes("#(apply f %2 %&)"), "(fn* [%1 %2 & %&] (apply f %2 %&))");
    assert_eq!(shapes("#()"), "(fn* [] ())");
    assert_eq!(shapes("#(do {:a [%]})"), "(fn* [%1] (do {:a [%1]}))");
    assert_eq!(shapes("#(%) %"), "(fn* [%1] (%1)) %");
    assert_eq!(shapes("#(f %1 #_%2)"), "(fn* [%1 %2] (f %1))");
    assert!(error("#(map #(inc %) %)").message().contains("inside"));
    for source in ["#(%x)", "#(%0)", "#(%21)", "#(%-1)", "#(%1.5)"] {
        assert_eq!(error(source).kind(), ErrorKind::Parse, "{source}");
    }
    assert_eq!(shapes("[#(a %) #(b %2)]"), "[(fn* [%1] (a %1)) (fn* [%1 %2] (b %2))]");
}

#[test]
fn comments_and_discarded_forms() {
    assert_eq!(shapes("; one\n1 ; two\n#! three\n2"), "1 2");
    assert_eq!(shapes("[1 #_2 3 #_ (a b) #_ #_ 4 5 6]"), "[1 3 6]");
    assert_eq!(shapes("#_ 'x 1"), "1");
    assert_eq!(shapes("(comment a :b)"), "(comment a :b)");
    assert_eq!(shapes(""), "");
    assert_eq!(shapes(" ,\t\r\n ; only"), "");
    assert_eq!(error("[1 #_]").kind(), ErrorKind::Parse);
    assert_eq!(error("[']").kind(), ErrorKind::Parse);
    assert_eq!(error("#_").kind(), ErrorKind::IncompleteForm);
}

#[test]
fn metadata_that_says_nothing_here_is_dropped() {
    assert_eq!(shapes("^String x"), "x");
    assert_eq!(shapes("(def ^:private ^long x 1)"), "(def x 1)");
    assert_eq!(shapes("(defn f ^String [^\"[B\" x] x)"), "(defn f [x] x)");
    assert_eq!(shapes("(def ^{:doc \"text\"} x 1)"), "(def x 1)");
    assert_eq!(error("^{:a 1} [1]").kind(), ErrorKind::Unsupported);
    assert_eq!(error("^1 x").kind(), ErrorKind::Parse);
    assert_eq!(error("[^String]").kind(), ErrorKind::Parse);
    assert_eq!(error("^String").kind(), ErrorKind::IncompleteForm);
}

#[test]
fn regexes_keep_their_text() {
    assert_eq!(one(r#"#"\d+\"x\\""#), FormKind::Regex(r#"\d+\"x\\"#.into()));
    assert_eq!(one(r##"#"""##), FormKind::Regex("".into()));
}

#[test]
fn tagged_literals() {
    assert_eq!(
        shapes("#inst \"2026-01-02\" #uuid \"u\" #time/date \"d\""),
        "#inst \"2026-01-02\" #uuid \"u\" #time/date \"d\""
    );
    assert_eq!(error("#inst 5").kind(), ErrorKind::Parse);
    assert_eq!(error("#js {}").kind(), ErrorKind::Unsupported);
    assert_eq!(error("#inst").kind(), ErrorKind::IncompleteForm);
}

#[test]
fn what_clojure_has_and_we_have_not_is_named() {
    for source in
        ["`(a ~b)", "~x", "#?(:clj 1)", "#=(+ 1 2)", "#:a{:b 1}", "#^String x", "#<Object>", "#foo 1"]
    {
        let error = error(source);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{source}");
        assert!(error.advice().is_some(), "{source}");
    }
    for source in ["#", "#)", "# a", "#λ"] {
        assert_eq!(error(source).kind(), ErrorKind::Parse, "{source}");
    }
}
