//! Regular expressions: Java's notation and Clojure's functions on a linear engine.

use crate::support::{fails, gives};

#[test]
fn finding() {
    gives(r#"(re-find #"\d+" "a12b34")"#, r#""12""#);
    gives(r#"(re-find #"(\w)(\d)?" "a")"#, r#"["a" "a" nil]"#);
    gives(r#"(re-find #"x" "a")"#, "nil");
    gives(r#"(re-find #"" "a")"#, r#""""#);
    fails(r#"(re-find "a" "a")"#, "type_error");
    fails(r##"(re-find #"a" nil)"##, "type_error");
    fails(r##"(re-find #"a")"##, "arity_error");
}

#[test]
fn matching_the_whole_text() {
    gives(r#"(re-matches #"\d+" "12")"#, r#""12""#);
    gives(r#"(re-matches #"\d+" "12a")"#, "nil");
    gives(r#"(re-matches #"a|ab" "ab")"#, r#""ab""#);
    gives(r#"(re-matches #"(a|ab)(c|bcd)?" "abcd")"#, r#"["abcd" "a" "bcd"]"#);
    gives(r#"(re-matches #"a*?" "aaa")"#, r#""aaa""#);
    gives("(re-matches #\"(?x) a # comment\" \"a\")", r#""a""#);
    gives(r#"(re-matches #"(?x)a|ab # comment" "ab")"#, r#""ab""#);
}

#[test]
fn all_matches() {
    gives(r#"(re-seq #"\d+" "a1b22")"#, r#"("1" "22")"#);
    gives(r#"(re-seq #"(\w)=(\d)" "a=1 b=2")"#, r#"(["a=1" "a" "1"] ["b=2" "b" "2"])"#);
    gives(r#"(re-seq #"x" "a")"#, "nil");
    gives(r#"(re-seq #"a*" "baac")"#, r#"("" "aa" "" "")"#);
    gives(r#"(re-seq #"" "λx")"#, r#"("" "" "")"#);
}

#[test]
fn classes_are_those_of_java() {
    gives(r#"[(re-find #"\d" "٣") (re-find #"\w" "λ") (re-find #"(?U)\w" "λ")]"#, r#"[nil nil "λ"]"#);
    gives(
        r#"[(re-find #"\p{Alpha}+" "λab") (re-find #"\p{L}+" "λab") (re-find #"\p{IsAlphabetic}+" "λ1")]"#,
        r#"["ab" "λab" "λ"]"#,
    );
    gives(
        r#"[(re-find #"[\w.-]+" "a.b-c d") (re-find #"[^\s]+" " ab ") (re-find #"\p{Punct}" "a!")]"#,
        r#"["a.b-c" "ab" "!"]"#,
    );
    gives(r#"[(re-find #"[a-z&&[^b]]+" "bacb") (re-find #"[a-c[x-z]]+" "-axz")]"#, r#"["ac" "axz"]"#);
    gives(r#"[(re-find #"[+--]+" "a,-+") (re-find #"[]a]+" "x]a")]"#, r#"[",-+" "]a"]"#);
    gives(r#"(re-find #"\h+" "a  b")"#, r#""  ""#);
}

#[test]
fn escapes_of_java() {
    gives(
        r#"[(re-find #"\Qa.b\E+" "a.bbb") (re-find #"\u03bb" "λ") (re-find #"\x41" "A") (re-find #"\0101" "A")]"#,
        r#"["a.bbb" "λ" "A" "A"]"#,
    );
    gives(
        r#"[(re-find #"\<a\>" "<a>") (re-find #"a\/b" "a/b") (re-find #"\-\"" "-\"")]"#,
        r#"["<a>" "a/b" "-\""]"#,
    );
    gives(r#"(str/split "a\r\nb\nc" #"\R")"#, r#"["a" "b" "c"]"#);
}

#[test]
fn dots_and_flags() {
    gives(
        r#"[(re-find #"a.b" "a\nb") (re-find #"(?s)a.b" "a\nb") (re-find #"a.b" "a\rb")]"#,
        r#"[nil "a\nb" nil]"#,
    );
    gives(
        r#"[(re-find #"(?i)abc" "xABC") (re-find #"(?m)^b" "a\nb") (re-find #"a(?i:b)" "aB")]"#,
        r#"["ABC" "b" "aB"]"#,
    );
    gives(r#"(re-find #"(?<year>\d{4})-(?<month>\d\d)" "2026-01")"#, r#"["2026-01" "2026" "01"]"#);
}

#[test]
fn what_needs_backtracking_is_refused_by_name() {
    for pattern in [
        r"a(?=b)", r"a(?!b)", r"(?<=a)b", r"(?<!a)b", r"(?>a)", r"(a)\\1", r"a++", r"a*+", r"a?+", r"a{2}+",
        r"\\k<x>",
    ] {
        fails(&format!("(re-pattern \"{pattern}\")"), "invalid_regex");
    }
}

#[test]
fn what_is_no_pattern() {
    for pattern in ["(", ")", "[a", "*", "a{2,1}", r"\\", r"\\y", "(?z)", r"\\p{Nope}", r"\\u12"] {
        fails(&format!("(re-pattern \"{pattern}\")"), "invalid_regex");
    }
    fails("(re-pattern nil)", "type_error");
    fails("#\"(\"", "invalid_regex");
}

#[test]
fn patterns_have_a_size() {
    fails(r#"(re-pattern "((a{100}){100}){100}")"#, "invalid_regex");
    fails(r#"(re-pattern (.repeat "a" 5000))"#, "invalid_regex");
    fails(r#"(re-pattern (.repeat "(" 1000))"#, "invalid_regex");
}

#[test]
fn patterns_that_bring_down_other_engines() {
    gives(r#"(re-matches #"(a+)+b" (.repeat "a" 20000))"#, "nil");
    gives(r#"(re-find #"(a|aa)+$" (str (.repeat "a" 20000) "b"))"#, "nil");
    gives(r#"(re-pattern #"a")"#, "#\"a\"");
}

#[test]
fn searching_again_and_again_uses_up_fuel_before_time() {
    // Each search reads the whole rest before it finds one letter.
    fails(r#"(re-seq #".*[^A-Z]|[A-Z]" (.repeat "A" 1000000))"#, "fuel_exceeded");
    // Each byte is a new state, regardless of the bytes before.
    fails(r#"(dotimes [i 1000] (re-find #"(?:a|b)*a(?:a|b){500}c" (.repeat "ab" 100000)))"#, "fuel_exceeded");
    // Common patterns may search long texts.
    gives(r#"(count (re-seq #"\d+" (.repeat "abc 123 " 50000)))"#, "50000");
    gives(r#"(count (str/split (.repeat "a, b" 50000) #",\s*"))"#, "50001");
}
