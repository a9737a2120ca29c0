//! `format`, checked against what Java prints.

use crate::support::{fails, gives};

#[track_caller]
fn formats(arguments: &str, expected: &str) {
    gives(&format!("(format {arguments})"), &format!("{expected:?}"));
}

#[test]
fn integers() {
    formats(r#""%d" 42"#, "42");
    formats(r#""%5d|%-5d|%05d" 42 42 -42"#, "   42|42   |-0042");
    formats(r#""%,d %+d % d %(d" 1234567 5 42 -5"#, "1,234,567 +5  42 (5)");
    formats(r#""%x %X %o %#x" 255 255 8 255"#, "ff FF 10 0xff");
    formats(r#""%x" -1"#, "ffffffffffffffff");
    formats(r#""%d" 100000000000000000000"#, "100000000000000000000");
    formats(r#""%,d" -1234"#, "-1,234");
}

#[test]
fn doubles_round_half_up_from_their_shortest_digits() {
    formats(r#""%.2f" 1.005"#, "1.01");
    formats(r#""%.2f %.1f %.0f %.0f" 0.125 0.25 0.5 1.5"#, "0.13 0.3 1 2");
    formats(r#""%f %.10f" 3.14159 0.1"#, "3.141590 0.1000000000");
    formats(r#""%.20f" 0.1"#, "0.10000000000000000000");
    formats(r#""%,.2f %08.2f %(,.2f" 1234567.891 -3.14159 -1234.5"#, "1,234,567.89 -0003.14 (1,234.50)");
    formats(r#""%.2f %.0f" 999.999 9.5"#, "1000.00 10");
    formats(r#""%.3f" 1e-9"#, "0.000");
    formats(r#""%.1f" 1e21"#, "1000000000000000000000.0");
    formats(r#""%f %08f %f" ##Inf ##-Inf ##NaN"#, "Infinity -Infinity NaN");
}

#[test]
fn scientific_and_general() {
    formats(r#""%e %.3e %.0e %E" 12345.678 0.0 12345.0 1e-10"#, "1.234568e+04 0.000e+00 1e+04 1.000000E-10");
    formats(
        r#""%g %g %g %g %.3g" 123456.789 1e-5 0.0 1e10 1234.5"#,
        "123457 1.00000e-05 0.00000 1.00000e+10 1.23e+03",
    );
    formats(r#""%e" 1e100"#, "1.000000e+100");
}

#[test]
fn texts() {
    formats(r#""%s %s %s %s" nil :a [1 "a" nil] 1/3"#, "null :a [1 \"a\" nil] 1/3");
    formats(r#""%-5s|%5s|%.2s|%S" "ab" "ab" "abc" "abc""#, "ab   |   ab|ab|ABC");
    formats(r#""%s" 1e10"#, "1.0E10");
    formats(r#""%b %b %b %5b" nil 1 false true"#, "false true false  true");
    formats(r#""%c%c" \a \λ"#, "aλ");
    formats(r#""%d%%%n" 5"#, "5%\n");
    formats(r#""%5%|""#, "    %|");
    formats(r#""plain""#, "plain");
    formats(r#""%d %.2f" nil nil"#, "null nu");
}

#[test]
fn indices() {
    formats(r#""%2$s %1$s" 1 2"#, "2 1");
    formats(r#""%s %<s %s" 1 2"#, "1 1 2");
}

#[test]
fn what_java_refuses() {
    fails(r#"(format "%d" 1.0)"#, "invalid_argument");
    fails(r#"(format "%f" 1)"#, "invalid_argument");
    fails(r#"(format "%f" 1/3)"#, "invalid_argument");
    fails(r#"(format "%c" 97)"#, "invalid_argument");
    fails(r#"(format "%s %s" 1)"#, "invalid_argument");
    fails(r#"(format "%<s" 1)"#, "invalid_argument");
    fails(r#"(format "%y" 1)"#, "invalid_argument");
    fails(r#"(format "%")"#, "invalid_argument");
    fails(r#"(format "%-d" 5)"#, "invalid_argument");
    fails(r#"(format "%.2d" 5)"#, "invalid_argument");
    fails(r#"(format "%0$s" 5)"#, "invalid_argument");
    fails(r#"(format "%tY" "x")"#, "invalid_argument");
    fails(r#"(format "%tH" (LocalDate/of 2026 1 2))"#, "invalid_argument");
    fails(r#"(format "%tK" 0)"#, "invalid_argument");
    fails(r#"(format "%t" 0)"#, "invalid_argument");
    fails(r#"(format "%h" [1])"#, "invalid_argument");
    fails(r#"(format "%a" 1.5)"#, "unsupported");
    fails("(format nil)", "type_error");
    fails("(format)", "arity_error");
}

#[test]
fn widths_are_bounded() {
    fails(r#"(format "%1000000000d" 5)"#, "size_exceeded");
    fails(r#"(format "%.1000000000f" 5.0)"#, "size_exceeded");
    fails(r#"(format "%99999999999999999999d" 5)"#, "size_exceeded");
}

#[test]
fn dates() {
    let date = "(java.util.Date. 1234567890123)";
    formats(&format!("\"%tF %<tT\" {date}"), "2009-02-13 23:31:30");
    formats(
        &format!(
            "\"%tB %<tb %<tA %<ta %<te %<tH %<tI %<tl %<tk %<tM %<tS %<tL %<tN %<tp %<tj %<ty %<tC\" {date}"
        ),
        "February Feb Friday Fri 13 23 11 11 23 31 30 123 123000000 pm 044 09 20",
    );
    formats(
        &format!("\"%ts %<tQ %<tR %<tr %<tD %<tz %<tZ %<th\" {date}"),
        "1234567890 1234567890123 23:31 11:31:30 PM 02/13/09 +0000 UTC Feb",
    );
    formats(&format!("\"%tc\" {date}"), "Fri Feb 13 23:31:30 UTC 2009");
    formats(&format!("\"%TB|%10tY|\" {date} {date}"), "FEBRUARY|      2009|");
    formats("\"%tY %tF\" 0 (LocalDate/of 2026 1 2)", "1970 2026-01-02");
    formats("\"%tY\" nil", "null");
}

#[test]
fn hashes() {
    formats(
        r#""%h %H %h %h %h %h %h %h" "abc" "abc" 5 5000000000 \a true 1.5 nil"#,
        "17862 17862 5 2a05f201 61 4cf 3ff80000 null",
    );
}
