//! `clojure.string`, text functions of `clojure.core` and the methods of String.

use crate::support::{fails, gives};

#[test]
fn changing_case() {
    gives(r#"(str/upper-case "straße")"#, r#""STRASSE""#);
    gives(r#"(str/lower-case "ÀB")"#, r#""àb""#);
    gives(r#"(str/upper-case :key)"#, r#"":KEY""#);
    gives(r#"(str/capitalize "hELLO wORLD")"#, r#""Hello world""#);
    gives(r#"(str/capitalize "")"#, r#""""#);
    fails("(str/upper-case nil)", "type_error");
    fails("(str/upper-case)", "arity_error");
    fails("(str/lower-case \"a\" \"b\")", "arity_error");
}

#[test]
fn trimming() {
    gives(r#"(str/trim " \t a b\n ")"#, r#""a b""#);
    gives(r#"(str/triml "  a ")"#, r#""a ""#);
    gives(r#"(str/trimr "  a ")"#, r#""  a""#);
    gives(r#"(str/trim-newline "a\r\n\n")"#, r#""a""#);
    gives("(str/trim \"\u{2003}a\u{2003}\")", r#""a""#);
    gives("(str/trim \"\u{a0}a\")", "\"\u{a0}a\"");
    gives(r#"(.trim " a ")"#, r#""a""#);
    fails("(str/trim nil)", "type_error");
    fails("(str/trim :a)", "type_error");
}

#[test]
fn blank_texts() {
    gives(
        "[(str/blank? nil) (str/blank? \"\") (str/blank? \" \\t\") (str/blank? \"a\")]",
        "[true true true false]",
    );
    fails("(str/blank? 1)", "type_error");
}

#[test]
fn searching() {
    gives(
        r#"[(str/includes? "hello" "ell") (str/includes? "hello" "") (str/includes? "" "a")]"#,
        "[true true false]",
    );
    gives(
        r#"[(str/starts-with? "hello" "he") (str/ends-with? "hello" "lo") (str/starts-with? :ab ":a")]"#,
        "[true true true]",
    );
    gives(
        r#"[(str/index-of "hello" "l") (str/index-of "hello" \l 3) (str/index-of "hello" "z")]"#,
        "[2 3 nil]",
    );
    gives(r#"[(str/index-of "hello" "" 10) (str/index-of "hello" "h" -5)]"#, "[5 0]");
    gives(
        r#"[(str/last-index-of "hello" "l") (str/last-index-of "hello" "l" 2) (str/last-index-of "hello" "z")]"#,
        "[3 2 nil]",
    );
    gives(
        r#"[(.indexOf "hello" "l") (.indexOf "hello" "z") (.lastIndexOf "hello" "l") (.indexOf "hello" "l" 3)]"#,
        "[2 -1 3 3]",
    );
    gives(r#"(str/index-of "λ😀x" "x")"#, "3");
    gives(r#"[(str/index-of :abc "b") (str/last-index-of 1221 "2")]"#, "[2 2]");
    gives(r#"[(.indexOf "abc" 98) (.lastIndexOf "abca" 97) (.indexOf "abc" 97 1)]"#, "[1 3 -1]");
    gives(
        r#"[(.startsWith "abc" "b" 1) (.startsWith "abc" "a" -1) (.startsWith "abc" "" 4)]"#,
        "[true false false]",
    );
    fails(r#"(str/includes? nil "a")"#, "type_error");
    fails(r#"(str/includes? "a" nil)"#, "type_error");
    fails(r#"(str/includes? "a" \a)"#, "type_error");
    fails(r#"(str/index-of nil "a")"#, "type_error");
}

#[test]
fn splitting() {
    gives(r#"(str/split "a,b,,c,," #",")"#, r#"["a" "b" "" "c"]"#);
    gives(r#"(str/split "a,b,,c,," #"," -1)"#, r#"["a" "b" "" "c" "" ""]"#);
    gives(r#"(str/split "a,b,c" #"," 2)"#, r#"["a" "b,c"]"#);
    gives(r#"(str/split "" #",")"#, r#"[""]"#);
    gives(r#"(str/split "abc" #"")"#, r#"["a" "b" "c"]"#);
    gives(r#"(str/split ",a" #",")"#, r#"["" "a"]"#);
    gives(r#"(str/split "," #",")"#, "[]");
    gives(r#"(str/split "a1b22c" #"\d+")"#, r#"["a" "b" "c"]"#);
    gives(r#"(str/split-lines "a\nb\r\nc\n\n")"#, r#"["a" "b" "c"]"#);
    gives(r#"(str/split-lines "")"#, r#"[""]"#);
    gives(r#"(str/split-lines "a\r")"#, r#"["a\r"]"#);
    gives(r#"(.split "a-b-c" "-")"#, r#"["a" "b" "c"]"#);
    fails(r#"(str/split "a" ",")"#, "type_error");
    fails(r#"(str/split nil #",")"#, "type_error");
    fails(r#"(str/split "a")"#, "arity_error");
}

#[test]
fn joining() {
    gives(r#"(str/join ", " [1 nil :a "b" \c [2 "x"]])"#, r#""1, , :a, b, c, [2 \"x\"]""#);
    gives(r#"(str/join [1 2])"#, r#""12""#);
    gives(r#"(str/join "," nil)"#, r#""""#);
    gives(r#"(str/join \- "abc")"#, r#""a-b-c""#);
    fails(r#"(str/join "," 5)"#, "type_error");
}

#[test]
fn replacing() {
    gives(r#"(str/replace "banana" "an" "AN")"#, r#""bANANa""#);
    gives(r#"(str/replace "banana" \a \o)"#, r#""bonono""#);
    gives(r#"(str/replace "a1b22" #"\d+" "<$0>")"#, r#""a<1>b<22>""#);
    gives(r#"(str/replace "John Smith" #"(\w+) (\w+)" "$2, $1")"#, r#""Smith, John""#);
    gives(r#"(str/replace "a.b" "." "$1")"#, r#""a$1b""#);
    gives(r#"(str/replace "ab" #"(?<x>a)" "[${x}]")"#, r#""[a]b""#);
    gives(r#"(str/replace "abc" #"b" "\\$")"#, r#""a$c""#);
    gives(r#"(str/replace "abc" "" "-")"#, r#""-a-b-c-""#);
    gives(r#"(str/replace "abc" #"" "-")"#, r#""-a-b-c-""#);
    gives(r#"(str/replace-first "banana" "an" "AN")"#, r#""bANana""#);
    gives(r#"(str/replace-first "a1b2" #"\d" "x")"#, r#""axb2""#);
    gives(r#"(str/re-quote-replacement "$1\\")"#, r#""\\$1\\\\""#);
    gives(
        r#"[(.replace "aXa" "a" "b") (.replaceAll "a1b2" "\\d" "-") (.replaceFirst "a1b2" "\\d" "-")]"#,
        r#"["bXb" "a-b-" "a-b2"]"#,
    );
    fails(r#"(str/replace nil "a" "b")"#, "type_error");
    fails(r#"(str/replace "a" "a" 1)"#, "type_error");
    fails(r#"(str/replace "a" #"a" "$1")"#, "invalid_argument");
    fails(r#"(str/replace "a" #"a" "$")"#, "invalid_argument");
    fails(r#"(str/replace "a" 1 "b")"#, "type_error");
}

#[test]
fn a_replacement_cannot_grow_without_bounds() {
    let program = r#"(str/replace (.repeat "a" 1000000) "a" (.repeat "b" 100000))"#;
    fails(program, "size_exceeded");
    fails(r#"(.repeat "a" 100000000000)"#, "size_exceeded");
}

#[test]
fn reversing_and_escaping() {
    gives(r#"(str/reverse "abλ😀")"#, r#""😀λba""#);
    gives(r#"(str/escape "a<b>" {\< "&lt;" \> "&gt;"})"#, r#""a&lt;b&gt;""#);
    gives(r#"(str/escape "abc" {\b 5})"#, r#""a5c""#);
    fails("(str/reverse nil)", "type_error");
}

#[test]
fn making_text() {
    gives("(str)", r#""""#);
    gives(r#"(str nil 1 1.5 :a 'b \c "d" true)"#, r#""11.5:abcdtrue""#);
    gives(r#"(str [1 "a" \b nil] {:a 1 :b "x"} #{1})"#, r#""[1 \"a\" \\b nil]{:a 1, :b \"x\"}#{1}""#);
    gives(
        "[(str 5N) (str 1/3) (str ##Inf) (str ##NaN) (str [##Inf]) (str 1e10) (str 1e-5) (str 100.0)]",
        r#"["5" "1/3" "Infinity" "NaN" "[##Inf]" "1.0E10" "1.0E-5" "100.0"]"#,
    );
    gives(r##"[(str #"a.b") (pr-str #"a.b")]"##, r##"["a.b" "#\"a.b\""]"##);
    gives(
        r#"[(pr-str "a\n" \a nil :k) (pr-str) (print-str "a" [\b "c"]) (println-str 1) (prn-str "x")]"#,
        r#"["\"a\\n\" \\a nil :k" "" "a [b c]" "1\n" "\"x\"\n"]"#,
    );
}

#[test]
fn parts_of_text() {
    gives(
        r#"[(subs "hello" 1) (subs "hello" 1 3) (subs "hello" 5) (subs "hello" 2 2)]"#,
        r#"["ello" "el" "" ""]"#,
    );
    gives(r#"[(subs "λ😀x" 0 1) (subs "λ😀x" 3) (.substring "λ😀x" 1 3)]"#, r#"["λ" "x" "😀"]"#);
    fails(r#"(subs "hello" 6)"#, "index_out_of_bounds");
    fails(r#"(subs "hello" -1)"#, "index_out_of_bounds");
    fails(r#"(subs "hello" 3 2)"#, "index_out_of_bounds");
    fails(r#"(subs "😀" 1)"#, "invalid_argument");
    fails("(subs nil 1)", "type_error");
    fails(r#"(subs "a" "b")"#, "type_error");
}

#[test]
fn names() {
    gives(
        r#"[(name :a/b) (name 'x/y) (name "s") (namespace :a/b) (namespace :b) (namespace 'x/y)]"#,
        r#"["b" "y" "s" "a" nil "x"]"#,
    );
    gives(
        r#"[(keyword "a") (keyword "a" "b") (keyword 'c/d) (keyword :e) (keyword nil "f") (keyword 1)]"#,
        "[:a :a/b :c/d :e :f nil]",
    );
    gives(r#"[(symbol "a") (symbol "a" "b") (symbol :c)]"#, "[a a/b c]");
    fails("(name 1)", "type_error");
    fails("(name nil)", "type_error");
    fails(r#"(namespace "a")"#, "type_error");
    fails("(symbol 1)", "type_error");
}

#[test]
fn methods_of_strings() {
    gives(
        r#"[(.length "λ😀") (.isEmpty "") (.isBlank " ") (.contains "abc" "b") (.startsWith "abc" "a") (.endsWith "abc" "c")]"#,
        "[3 true true true true true]",
    );
    gives(
        r#"[(.toUpperCase "a") (.toLowerCase "A") (.concat "a" "b") (.charAt "abc" 1) (.repeat "ab" 2)]"#,
        r#"["A" "a" "ab" \b "abab"]"#,
    );
    gives(
        r#"[(.equals "a" "a") (.equalsIgnoreCase "Ab" "aB") (.compareTo "a" "b") (.matches "ab" "a|ab") (.toString :a)]"#,
        r#"[true true -1 true ":a"]"#,
    );
    gives(r#"[(String/valueOf 1) (String/join "," ["a" "b"]) (String/format "%d" 1)]"#, r#"["1" "a,b" "1"]"#);
    fails("(.length nil)", "type_error");
    fails(r#"(.charAt "a" 1)"#, "index_out_of_bounds");
}

#[test]
fn characters() {
    gives(
        r"[(char 97) (char \b) (Character/isDigit \5) (Character/isLetter \λ) (Character/toUpperCase \a)]",
        r"[\a \b true true \A]",
    );
    gives(
        r"[(Character/isWhitespace \space) (Character/isUpperCase \a) (Character/getNumericValue \7)]",
        "[true false 7]",
    );
    fails("(char -1)", "invalid_argument");
    fails("(char 55296)", "invalid_argument");
    fails("(char \"a\")", "type_error");
}

#[test]
fn reading_text() {
    gives(r#"(read-string "[1 (a b) {:c \"d\"}] rest")"#, r#"[1 (a b) {:c "d"}]"#);
    gives(r##"(clojure.edn/read-string "#{1 2}")"##, "#{1 2}");
    gives("(clojure.edn/read-string nil)", "nil");
    fails(r#"(read-string "(1")"#, "invalid_text");
    fails(r#"(read-string "")"#, "invalid_text");
    fails("(read-string 1)", "type_error");
}
