//! Cycles between modules are found, and nothing else is reported as one.

use super::source::{SourceFile, cycles, module_uses, production_code, uses_below};

fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, text)).collect();
    cycles(&module_uses(&files))
}

fn circle(names: &[&str]) -> Vec<Vec<String>> {
    vec![names.iter().map(|name| (*name).to_owned()).collect()]
}

#[test]
fn modules_that_use_each_other_are_a_cycle_however_it_is_written() {
    let ways = [
        "use crate::b::Thing;",
        "use crate::{c, b::{self, Thing}};",
        "fn f() { crate::b::thing() }",
        "use super::b::Thing;",
        "mod inline { use super::super::b::Thing; }",
        "macro_rules! m { () => { $crate::b::thing() } }",
        "#[cfg(feature = \"test\")] use crate::b;",
        "use crate::Thing;",
        "use crate::Renamed as Other;",
    ];
    let root = ("lib.rs", "mod a; mod b; mod c; pub use b::{Thing, Inner as Renamed};");
    for way in ways {
        assert_eq!(
            cycles_of(&[root, ("a.rs", way), ("b.rs", "use crate::a;")]),
            circle(&["a", "b"]),
            "{way}"
        );
        let none: Vec<Vec<String>> = Vec::new();
        assert_eq!(cycles_of(&[root, ("a.rs", way), ("b.rs", "use std::fmt;")]), none, "{way}");
    }
    let deep = [("a/mod.rs", ""), ("a/x/y.rs", "use super::super::super::b;"), ("b.rs", "use super::a;")];
    assert_eq!(cycles_of(&deep), circle(&["a", "b"]));
}

#[test]
fn cycles_inside_of_a_folder_are_found_by_both_kinds_of_paths() {
    let found = |way: &str| {
        let files = [
            ("mod.rs", "mod a; mod b; pub(crate) use b::Thing;"),
            ("a/mod.rs", way),
            ("b.rs", "use super::a;"),
            ("a/deep.rs", "use super::super::super::b; use crate::b; use crate::outer::b;"),
        ];
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, text)).collect();
        cycles(&uses_below(&files, &["outer", "inner"]))
    };
    for way in
        ["use super::b;", "use crate::outer::inner::b::X;", "use crate::outer::{x, inner::{Thing, y}};"]
    {
        assert_eq!(found(way), circle(&["a", "b"]), "{way}");
    }
    assert!(found("use crate::inner::b; use super::super::b; use crate::outer::inner;").is_empty());
}

#[test]
fn a_longer_cycle_is_found_without_the_modules_beside_it() {
    let files = [
        ("a.rs", "use crate::b;"),
        ("b/mod.rs", "mod inner;"),
        ("b/inner.rs", "use crate::c::C;"),
        ("c.rs", "use crate::{a, leaf};"),
        ("leaf.rs", ""),
        ("top.rs", "use crate::a;"),
    ];
    assert_eq!(cycles_of(&files), circle(&["a", "b", "c"]));
}

#[test]
fn comments_texts_tests_and_visibilities_are_no_uses() {
    let harmless = [
        "// use crate::b;",
        "//! See [`crate::b`].",
        "/* use /* nested */ crate::b; */",
        "const S: &str = \"crate::b\";",
        "const R: &str = r#\"say \"crate::b\" \"#;",
        "const C: char = '\"'; // crate::b \"",
        "#[cfg(test)] mod tests { use crate::b; fn f() { { crate::b::x() } } }",
        "#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\n#[cfg(test)] use crate::{b, b::c};",
        "#[cfg(all(test, unix))] fn f() { crate::b::x() }",
        "pub(in crate::b) fn f() {}",
        "mod inline { use super::b; }",
    ];
    for text in harmless {
        let found = cycles_of(&[("a.rs", text), ("b.rs", "use crate::a;")]);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
    // Code after them still counts.
    for text in harmless {
        let more = format!("{text}\nfn g<'a>(x: &'a str) {{ crate::b::x() }}");
        let found = cycles_of(&[("a.rs", &more), ("b.rs", "use crate::a;")]);
        assert_eq!(found, circle(&["a", "b"]), "{more}");
    }
}

#[test]
fn production_code_keeps_its_lines() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() { \"d\\\"e\" }\n";
    let code = production_code(text);
    assert_eq!(code.lines().count(), text.lines().count());
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["fn", "a()", "{}", "fn", "c()", "{", "}"]);
}
