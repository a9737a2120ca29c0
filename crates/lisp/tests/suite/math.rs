//! `Math/...`, `clojure.math`, conversions, numbers from text, bits.

use crate::support::{fails, gives};

#[test]
fn functions_of_doubles() {
    gives(
        "[(Math/sqrt 16) (Math/pow 2 10) (Math/floor 2.7) (Math/ceil 2.1) (Math/floor 5/2) (Math/cbrt 27)]",
        "[4.0 1024.0 2.0 3.0 2.0 3.0]",
    );
    gives(
        "[(Math/sqrt -1) (Math/log 1) (Math/exp 0) (Math/hypot 3 4) (Math/signum -2.5) (Math/rint 2.5)]",
        "[##NaN 0.0 1.0 5.0 -1.0 2.0]",
    );
    gives(
        "[(clojure.math/sqrt 9) (clojure.math/to-radians 180) Math/PI]",
        "[3.0 3.141592653589793 3.141592653589793]",
    );
    gives("(Math/pow 1 ##NaN)", "##NaN");
    fails("(Math/sqrt \"x\")", "type_error");
    fails("(Math/sqrt nil)", "type_error");
    fails("(Math/sqrt)", "arity_error");
}

#[test]
fn rounding() {
    gives(
        "[(Math/round 2.5) (Math/round -2.5) (Math/round 2.4) (Math/round ##NaN) (Math/round 1e300)]",
        "[3 -2 2 0 9223372036854775807]",
    );
    gives("(Math/round 0.49999999999999994)", "0");
    gives("[(clojure.math/round 5) (clojure.math/round 5/2)]", "[5 3]");
    fails("(Math/round 5)", "type_error");
    fails("(Math/round nil)", "type_error");
}

#[test]
fn absolute_values_and_extremes() {
    gives("[(abs -5) (abs -5.5) (abs -1/2) (abs -5N) (abs -0.0) (Math/abs -3)]", "[5 5.5 1/2 5N 0.0 3]");
    gives("(abs -9223372036854775808)", "-9223372036854775808");
    gives(
        "[(Math/max 1 2) (Math/min 1 2) (Math/max 1.0 2.5) (Math/max 1.0 ##NaN) (Math/min -0.0 0.0)]",
        "[2 1 2.5 ##NaN -0.0]",
    );
    fails("(Math/max 1 2.5)", "type_error");
    fails("(Math/abs 1/2)", "type_error");
    fails("(Math/abs 5N)", "type_error");
    gives("[(Math/floorDiv -7 2) (Math/floorMod -7 2)]", "[-4 1]");
    fails("(Math/floorDiv 1 0)", "arithmetic_error");
    fails("(Math/addExact 9223372036854775807 1)", "arithmetic_error");
    fails("(abs nil)", "type_error");
    fails("(abs \"1\")", "type_error");
}

#[test]
fn numbers_from_text() {
    gives(
        r#"[(parse-long "12") (parse-long "+5") (parse-long "-7") (parse-long " 5") (parse-long "") (parse-long "-") (parse-long "1.5")]"#,
        "[12 5 -7 nil nil nil nil]",
    );
    gives(r#"(parse-long "9223372036854775808")"#, "nil");
    gives(
        r#"[(parse-double "1e3") (parse-double " 1.5 ") (parse-double "1.5d") (parse-double ".5") (parse-double "5.")]"#,
        "[1000.0 1.5 1.5 0.5 5.0]",
    );
    gives(
        r#"[(parse-double "NaN") (parse-double "Infinity") (parse-double "-Infinity") (parse-double "inf") (parse-double "x") (parse-double "")]"#,
        "[##NaN ##Inf ##-Inf nil nil nil]",
    );
    gives(
        r#"[(parse-double "0x1.8p1") (parse-double "-0x.8p1") (parse-double "0x1") (parse-double "0x1.0p0d")]"#,
        "[3.0 -1.0 nil 1.0]",
    );
    gives(r#"[(parse-boolean "true") (parse-boolean "false") (parse-boolean "TRUE")]"#, "[true false nil]");
    fails("(parse-long nil)", "type_error");
    fails("(parse-long 5)", "type_error");
    fails("(parse-double 5)", "type_error");
    gives(
        r#"[(Integer/parseInt "42") (Integer/parseInt "ff" 16) (Long/parseLong "-7") (Double/parseDouble "3.5") (Boolean/parseBoolean "True")]"#,
        "[42 255 -7 3.5 true]",
    );
    fails(r#"(Integer/parseInt "99999999999")"#, "invalid_text");
    fails(r#"(Integer/parseInt "x")"#, "invalid_text");
    fails("(Integer/parseInt nil)", "type_error");
    fails(r#"(Double/parseDouble "x")"#, "invalid_text");
    gives(
        r#"[(Integer/toString 255 16) (Integer/toBinaryString 5) (Integer/toHexString -1) (Long/toHexString -1)]"#,
        r#"["ff" "101" "ffffffff" "ffffffffffffffff"]"#,
    );
}

#[test]
fn from_one_kind_to_another() {
    gives(
        r"[(int 3.7) (int \a) (int 5N) (long -3.9) (long 7/2) (double 1/3) (double 5) (long ##NaN)]",
        "[3 97 5 -3 3 0.3333333333333333 5.0 0]",
    );
    gives("[(bigint 5.7) (bigint \"12\") (bigint 5) (bigint 1e20)]", "[5N 12N 5N 100000000000000000000N]");
    gives(
        "[(numerator 1/3) (denominator 1/3) (rationalize 0.1) (rationalize 1.5) (rationalize 5)]",
        "[1 3 1/10 3/2 5]",
    );
    fails("(int 3000000000)", "arithmetic_error");
    fails("(long 1e30)", "invalid_argument");
    fails("(byte 200)", "invalid_argument");
    fails("(int \"5\")", "type_error");
    fails("(long nil)", "type_error");
    fails("(numerator 4)", "type_error");
    fails("(bigint \"x\")", "invalid_text");
    fails("(rationalize ##NaN)", "invalid_argument");
}

#[test]
fn bits() {
    gives(
        "[(bit-and 12 10) (bit-or 12 10) (bit-xor 12 10) (bit-not 5) (bit-and-not 12 10)]",
        "[8 14 6 -6 4]",
    );
    gives(
        "[(bit-shift-left 1 10) (bit-shift-right -8 1) (unsigned-bit-shift-right -1 60) (bit-shift-left 1 64)]",
        "[1024 -4 15 1]",
    );
    gives("[(bit-set 0 3) (bit-clear 15 0) (bit-flip 5 1) (bit-test 5 2)]", "[8 14 7 true]");
    fails("(bit-and 1.0 1)", "type_error");
    fails("(bit-and nil 1)", "type_error");
    fails("(bit-not)", "arity_error");
}

#[test]
fn a_ratio_becomes_a_double_of_sixteen_digits() {
    // Clojure divides with sixteen digits, so the last one is not always that of the nearest double.
    gives(
        "[(double 1/3) (double 2/3) (double 1/7)]",
        "[0.3333333333333333 0.6666666666666667 0.1428571428571429]",
    );
    gives("[(+ 1/3 1.0) (* 2/3 1.0)]", "[1.3333333333333333 0.6666666666666667]");
    gives("(double 100000000000000000000/3)", "3.333333333333333E19");
    gives("(== (double 12345678901234567890/7) 1.763668414462081E18)", "true");
}

#[test]
fn the_least_of_one_value_is_that_value() {
    gives("[(min nil) (max nil) (min \"a\") (max \"a\")]", "[nil nil \"a\" \"a\"]");
    fails("(min 1 nil)", "type_error");
    fails("(max nil 1)", "type_error");
    fails("(min)", "arity_error");
}

#[test]
fn division_of_doubles_by_ratios_is_whole() {
    gives("[(quot 1.1 -7/2) (quot 7.5 1/2) (quot -7 2.0)]", "[0.0 15.0 -3.0]");
    gives("[(rem 1.1 -7/2) (mod 1.1 -7/2)]", "[1.1 -2.4]");
    gives("[(quot 7/2 2) (rem 7/2 2)]", "[1N 3/2]");
    fails("(quot 1.0 0)", "arithmetic_error");
}

#[test]
fn big_integers_of_doubles_are_those_of_their_text() {
    gives("[(bigint 1.9) (bigint -1.9) (bigint 0.1) (bigint 1/2)]", "[1N -1N 0N 0N]");
    gives(
        "[(bigint 1e20) (bigint 1.1e22) (bigint 1e15)]",
        "[100000000000000000000N 11000000000000000000000N 1000000000000000N]",
    );
    gives("(= (bigint 1.5e300) (* 15 (reduce *' (repeat 299 10))))", "true");
    gives("(bigint 9.007199254740993e15)", "9007199254740992N");
    fails("(bigint ##NaN)", "invalid_argument");
    fails("(bigint ##Inf)", "invalid_argument");
    fails("(bigint nil)", "type_error");
}
