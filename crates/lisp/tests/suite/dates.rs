//! Dates, instants, durations.

use backstitch_lisp::{ErrorKind, Limits, read_edn};

use crate::support::{fails, gives};

#[test]
fn local_dates() {
    gives(r#"(str (LocalDate/parse "2026-01-31"))"#, r#""2026-01-31""#);
    gives(r#"(java.time.LocalDate/parse "2026-01-31")"#, r##"#time/date "2026-01-31""##);
    gives(r#"(str (.plusMonths (LocalDate/parse "2026-01-31") 1))"#, r#""2026-02-28""#);
    gives(r#"(str (.minusDays (LocalDate/of 2024 3 1) 1))"#, r#""2024-02-29""#);
    gives(
        r#"[(.toEpochDay (LocalDate/parse "1970-01-11")) (.getYear (LocalDate/of 2026 5 6)) (.getMonthValue (LocalDate/of 2026 5 6)) (.getDayOfMonth (LocalDate/of 2026 5 6))]"#,
        "[10 2026 5 6]",
    );
    gives(
        r#"[(.isBefore (LocalDate/of 2026 1 1) (LocalDate/of 2026 1 2)) (.isAfter (LocalDate/of 2026 1 1) (LocalDate/of 2026 1 2))]"#,
        "[true false]",
    );
    gives(r#"(= (LocalDate/of 2026 1 1) (LocalDate/parse "2026-01-01"))"#, "true");
    for text in ["2026-13-01", "2026-02-30", "20260101", "x", "", "2026-01-01T00:00:00"] {
        fails(&format!("(LocalDate/parse {text:?})"), "invalid_text");
    }
    fails("(LocalDate/parse nil)", "type_error");
    fails("(LocalDate/of 2026 2 30)", "invalid_argument");
    fails("(.plusDays (LocalDate/of 2026 1 1) 100000000000)", "invalid_argument");
    fails("(.plusDays \"2026-01-01\" 1)", "type_error");
    fails("(.isBefore (LocalDate/of 2026 1 1) nil)", "type_error");
}

#[test]
fn instants_and_durations() {
    gives(r#"(.toEpochMilli (Instant/parse "1970-01-01T00:00:01.5Z"))"#, "1500");
    gives(r#"(str (Instant/parse "2026-01-02T03:04:05+01:00"))"#, r#""2026-01-02T02:04:05Z""#);
    gives(r#"(str (Instant/ofEpochMilli 1500))"#, r#""1970-01-01T00:00:01.500Z""#);
    gives(
        r#"(.toMillis (Duration/between (Instant/ofEpochMilli 0) (Instant/ofEpochMilli 90061001)))"#,
        "90061001",
    );
    gives(
        r#"[(.toDays (Duration/ofHours 49)) (.toHours (Duration/ofMinutes 119)) (.toMinutes (Duration/ofSeconds -90))]"#,
        "[2 1 -1]",
    );
    gives(
        r#"[(str (Duration/ofSeconds 5400)) (str (Duration/ofMillis -1500)) (str (Duration/ofDays 2)) (str Duration/ZERO)]"#,
        r#"["PT1H30M" "PT-1.5S" "PT48H" "PT0S"]"#,
    );
    gives(r#"(.toMinutes (Duration/parse "P1DT1H30M"))"#, "1530");
    fails(r#"(Instant/parse "2026-01-02")"#, "invalid_text");
    fails(r#"(Instant/parse "2026-01-02 03:04:05Z")"#, "invalid_text");
    fails(r#"(Duration/parse "P1M")"#, "invalid_text");
    fails("(Duration/between (LocalDate/of 2026 1 1) (LocalDate/of 2026 1 2))", "type_error");
    fails("(Duration/between (java.util.Date. 0) (java.util.Date. 1))", "type_error");
    gives("(str (.plusDays (LocalDate/of 2026 1 1) 1.9))", r#""2026-01-02""#);
    fails("(Duration/ofDays 9223372036854775807)", "arithmetic_error");
    fails("(.toEpochMilli nil)", "type_error");
}

#[test]
fn dates_of_java_util() {
    gives("(.getTime (java.util.Date. 1500))", "1500");
    gives("(str (java.util.Date. 0))", r#""Thu Jan 01 00:00:00 UTC 1970""#);
    gives("(java.util.Date. 1500)", r##"#inst "1970-01-01T00:00:01.500-00:00""##);
    gives(r#"(.getTime (java.util.Date. "Thu Jan 01 00:00:01 UTC 1970"))"#, "1000");
    gives(
        r#"[(.getTime (java.util.Date. "1 Jan 1970")) (.getTime (java.util.Date. "Jan 2, 1970"))]"#,
        "[0 86400000]",
    );
    fails(r#"(java.util.Date. "1970-01-01T00:00:01Z")"#, "invalid_text");
    fails("(java.util.Date. 1.5)", "type_error");
    fails("(.isBefore (java.util.Date. 0) (java.util.Date. 1))", "type_error");
    fails("(.before (LocalDate/of 2026 1 1) (LocalDate/of 2026 1 2))", "type_error");
    gives(r#"(.getTime (java.util.Date. "Thu, 1 Jan 1970 00:00:01 GMT"))"#, "1000");
    gives(
        r##"[(.getTime #inst "1970-01-01") (inst-ms #inst "1970-01-01T01:00:00.000+01:00") (inst? #inst "2026-01-02")]"##,
        "[0 0 true]",
    );
    gives(
        "[(.before (java.util.Date. 1) (java.util.Date. 2)) (.after (java.util.Date. 1) (java.util.Date. 2))]",
        "[true false]",
    );
    fails(r#"(java.util.Date. "x")"#, "invalid_text");
    fails("(java.util.Date. 9223372036854775807)", "invalid_argument");
}

#[test]
fn uuids() {
    gives(
        r#"(parse-uuid "123E4567-e89b-12d3-a456-426614174000")"#,
        r##"#uuid "123e4567-e89b-12d3-a456-426614174000""##,
    );
    gives(r#"(parse-uuid "x")"#, "nil");
    fails("(parse-uuid nil)", "type_error");
}

#[test]
fn literals_hold_what_their_tag_says() {
    let limits = Limits::default();
    for text in [
        "#inst \"x\"",
        "#uuid \"x\"",
        "#time/date \"2026-1-2\"",
        "#time/instant \"2026\"",
        "#time/duration \"1h\"",
    ] {
        assert_eq!(read_edn(text, &limits).unwrap_err().kind(), ErrorKind::InvalidText, "{text}");
    }
    for text in ["#inst \"2026\"", "#inst \"2026-01\"", "#inst \"2026-01-02T03:04:05\""] {
        assert!(read_edn(text, &limits).is_ok(), "{text}");
    }
}

#[test]
fn local_date_times() {
    gives(r#"(str (LocalDateTime/parse "2026-03-01T10:15"))"#, r#""2026-03-01T10:15""#);
    gives(r#"(str (java.time.LocalDateTime/parse "2026-03-01T10:15:30.5"))"#, r#""2026-03-01T10:15:30.500""#);
    gives("(LocalDateTime/of 2026 3 1 10 15)", r##"#time/date-time "2026-03-01T10:15""##);
    gives("(str (LocalDateTime/now))", r#""2026-01-02T03:04:05""#);
    gives(
        r#"(let [t (LocalDateTime/parse "2026-03-01T23:59")] [(str (.plusMinutes t 2)) (str (.plusMonths t 1)) (.getHour t) (.getDayOfMonth t) (str (.toLocalDate t))])"#,
        r#"["2026-03-02T00:01" "2026-04-01T23:59" 23 1 "2026-03-01"]"#,
    );
    gives(r#"(str (.atStartOfDay (LocalDate/of 2026 3 1)))"#, r#""2026-03-01T00:00""#);
    gives(
        r#"(str (.toInstant (LocalDateTime/parse "2026-03-01T10:15") ZoneOffset/UTC))"#,
        r#""2026-03-01T10:15:00Z""#,
    );
    gives(
        r#"(.toMinutes (Duration/between (LocalDateTime/parse "2026-03-01T10:15") (LocalDateTime/parse "2026-03-01T11:00")))"#,
        "45",
    );
    gives(
        r#"(.isBefore (LocalDateTime/parse "2026-03-01T10:15") (LocalDateTime/parse "2026-03-01T10:16"))"#,
        "true",
    );
    fails(r#"(LocalDateTime/parse "2026-03-01")"#, "invalid_text");
    fails(r#"(LocalDateTime/parse "2026-03-01T10:15Z")"#, "invalid_text");
    fails("(LocalDateTime/of 2026 2 30 1 1)", "invalid_argument");
    fails("(.getHour (LocalDate/of 2026 3 1))", "type_error");
}

#[test]
fn days_months_and_units() {
    gives(r#"(str (.getDayOfWeek (LocalDate/parse "2026-03-01")))"#, r#""SUNDAY""#);
    gives(r#"(= DayOfWeek/SUNDAY (.getDayOfWeek (LocalDate/parse "2026-03-01")))"#, "true");
    gives(
        r#"[(.getValue (.getDayOfWeek (LocalDate/parse "2026-03-01"))) (str (.getMonth (LocalDate/of 2026 3 1))) (.getValue Month/MAY)]"#,
        r#"[7 "MARCH" 5]"#,
    );
    gives("(.between ChronoUnit/DAYS (LocalDate/of 2026 3 1) (LocalDate/of 2026 3 31))", "30");
    gives(
        "(.between java.time.temporal.ChronoUnit/DAYS (LocalDate/of 2026 3 31) (LocalDate/of 2026 3 1))",
        "-30",
    );
    gives(
        "(let [a (LocalDate/of 2024 1 31) b (LocalDate/of 2026 3 1)] [(.between ChronoUnit/WEEKS a b) (.between ChronoUnit/MONTHS a b) (.between ChronoUnit/YEARS a b) (.until a b ChronoUnit/DAYS)])",
        "[108 25 2 760]",
    );
    gives(
        r#"(let [a (LocalDateTime/parse "2026-03-01T10:00") b (LocalDateTime/parse "2026-03-03T09:00")] [(.between ChronoUnit/HOURS a b) (.between ChronoUnit/DAYS a b)])"#,
        "[47 1]",
    );
    gives("(.between ChronoUnit/SECONDS (Instant/ofEpochMilli 0) (Instant/ofEpochMilli 2500))", "2");
    fails("(.between ChronoUnit/HOURS (LocalDate/of 2026 3 1) (LocalDate/of 2026 3 2))", "type_error");
    fails("(.between ChronoUnit/DAYS (LocalDate/of 2026 3 1) nil)", "type_error");
    gives("(str (.withDayOfMonth (LocalDate/of 2026 3 15) 1))", "\"2026-03-01\"");
    gives("(str (.withMonth (LocalDate/of 2026 3 31) 2))", "\"2026-02-28\"");
}

#[test]
fn months_of_years_are_values() {
    gives(r#"(YearMonth/parse "2026-01")"#, r##"#time/year-month "2026-01""##);
    gives(
        "(map str [(YearMonth/of 2026 2) (.atDay (YearMonth/of 2026 2) 28) (.atEndOfMonth (YearMonth/of 2024 2)) (.plusMonths (YearMonth/of 2026 12) 1)])",
        r#"("2026-02" "2026-02-28" "2024-02-29" "2027-01")"#,
    );
    gives(
        r#"(frequencies (map #(str (YearMonth/from (LocalDate/parse %))) ["2026-01-02" "2026-01-31" "2026-02-01"]))"#,
        r#"{"2026-01" 2, "2026-02" 1}"#,
    );
    gives(
        r#"(let [m (YearMonth/of 2024 2)] [(.getYear m) (.getMonthValue m) (.lengthOfMonth m) (.isLeapYear m) (str (.getMonth m)) (.format m (DateTimeFormatter/ofPattern "MMM yyyy"))])"#,
        r#"[2024 2 29 true "FEBRUARY" "Feb 2024"]"#,
    );
    gives(
        "(let [a (YearMonth/of 2026 1) b (YearMonth/of 2025 11)] [(.isAfter a b) (compare a a) (.between ChronoUnit/MONTHS b a) (sort [a b])])",
        r##"[true 0 2 (#time/year-month "2025-11" #time/year-month "2026-01")]"##,
    );
    gives(r#"(json/generate-string {:month (YearMonth/of 2026 1)})"#, r#""{\"month\":\"2026-01\"}""#);
    fails(r#"(YearMonth/parse "2026-13")"#, "invalid_text");
    fails("(YearMonth/of 2026 0)", "invalid_argument");
    fails("(.atDay (YearMonth/of 2026 2) 30)", "invalid_argument");
    fails("(.plusDays (YearMonth/of 2026 2) 1)", "type_error");
    fails("(.getDayOfMonth (YearMonth/of 2026 2))", "type_error");
    fails("(.between ChronoUnit/DAYS (YearMonth/of 2026 1) (YearMonth/of 2026 2))", "type_error");
    fails(r#"(.format (YearMonth/of 2026 1) (DateTimeFormatter/ofPattern "dd"))"#, "type_error");
}

#[test]
fn months_and_days_of_the_week_have_numbers() {
    gives(
        "(map str [(Month/of 3) (DayOfWeek/of 7) (LocalDate/of 2026 Month/MARCH 1)])",
        r#"("MARCH" "SUNDAY" "2026-03-01")"#,
    );
    gives("(str (LocalDateTime/of 2026 Month/MARCH 1 10 15))", r#""2026-03-01T10:15""#);
    for wrong in ["(Month/of 0)", "(Month/of 13)", "(DayOfWeek/of 8)", "(Month/of 300)"] {
        fails(wrong, "invalid_argument");
    }
    fails("(LocalDate/of 2026 1 Month/MARCH)", "type_error");
}

#[test]
fn the_present_is_that_of_a_zone() {
    let far = "(let [east (ZoneOffset/ofHours 14) west (ZoneOffset/ofHours -12)]";
    gives(
        &format!("{far} (.between ChronoUnit/HOURS (LocalDateTime/now west) (LocalDateTime/now east)))"),
        "26",
    );
    gives(&format!("{far} (.isBefore (LocalDate/now west) (LocalDate/now east)))"), "true");
    gives(
        &format!("{far} (= (.toInstant (OffsetDateTime/now west)) (.toInstant (ZonedDateTime/now east))))"),
        "true",
    );
    gives(&format!("{far} (= (.toLocalTime (OffsetDateTime/now east)) (LocalTime/now east)))"), "true");
    gives("(= (YearMonth/now) (YearMonth/from (LocalDate/now)))", "true");
    gives("(str (.getZone (ZonedDateTime/now)))", "\"UTC\"");
    fails("(LocalDate/now \"UTC\")", "type_error");
}

#[test]
fn formatters_write_and_read() {
    gives(
        r#"(.format (LocalDate/of 2026 3 1) (DateTimeFormatter/ofPattern "dd.MM.yyyy"))"#,
        r#""01.03.2026""#,
    );
    gives(
        r#"(.format (java.time.format.DateTimeFormatter/ofPattern "EEE, d MMM yy") (LocalDate/of 2026 3 1))"#,
        r#""Sun, 1 Mar 26""#,
    );
    gives(
        r#"(.format (LocalDateTime/parse "2026-03-01T15:05:09") (DateTimeFormatter/ofPattern "EEEE d MMMM yyyy 'at' h:mm:ss a"))"#,
        r#""Sunday 1 March 2026 at 3:05:09 PM""#,
    );
    gives(
        r#"(str (LocalDate/parse "01.03.2026" (DateTimeFormatter/ofPattern "dd.MM.yyyy")))"#,
        r#""2026-03-01""#,
    );
    gives(
        r#"(str (LocalDate/parse "Mar 1, 2026" (DateTimeFormatter/ofPattern "MMM d, yyyy")))"#,
        r#""2026-03-01""#,
    );
    gives(
        r#"(str (LocalDateTime/parse "2026-03-01 15:05" (DateTimeFormatter/ofPattern "yyyy-MM-dd HH:mm")))"#,
        r#""2026-03-01T15:05""#,
    );
    gives(r#"(str (LocalDate/parse "20260301" DateTimeFormatter/BASIC_ISO_DATE))"#, r#""2026-03-01""#);
    gives(r#"(.format (LocalDate/of 2026 3 1) DateTimeFormatter/ISO_LOCAL_DATE)"#, r#""2026-03-01""#);
    for (text, pattern) in [
        ("32.01.2026", "dd.MM.yyyy"),
        ("1.1.2026", "dd.MM.yyyy"),
        ("Mon 01.03.2026", "EEE dd.MM.yyyy"),
        ("x", "d"),
    ] {
        fails(
            &format!("(LocalDate/parse {text:?} (DateTimeFormatter/ofPattern {pattern:?}))"),
            "invalid_text",
        );
    }
    fails(r#"(DateTimeFormatter/ofPattern "zz")"#, "invalid_argument");
    fails(r#"(DateTimeFormatter/ofPattern "'open")"#, "invalid_argument");
    fails(r#"(.format (LocalDate/of 2026 3 1) (DateTimeFormatter/ofPattern "HH:mm"))"#, "type_error");
    fails(r#"(.format (LocalDate/of 2026 3 1) "dd")"#, "type_error");
}
