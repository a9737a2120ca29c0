//! Programs about times, dates with offsets and periods, here and in Clojure.

/// Texts of dates with offsets, good and bad.
const STAMPS: &[&str] = &[
    "2026-01-02T03:04:05Z",
    "2026-01-02t03:04:05z",
    "2026-01-02T03:04:05+01:00",
    "2026-01-02T03:04:05+01",
    "2026-01-02T03:04:05+0100",
    "2026-01-02T03:04:05+1",
    "2026-01-02T03:04Z",
    "2026-01-02T03Z",
    "2026-01-02T03:04:05.123456789-05:30",
    "2026-01-02T03:04:05.1Z",
    "2026-01-02T03:04:05+01:00:30",
    "2026-01-02T23:59:60Z",
    "2026-01-02T22:59:60Z",
    "2026-01-02 03:04:05Z",
    "2026-01-02T03:04:05",
    "2026-01-02T03:04:05-00:00",
    "2026-01-02T03:04:05+18:00",
    "2026-01-02T03:04:05+18:01",
    "2026-01-02T03:04:05+00:60",
    "2026-01-02T03:04:05Z[UTC]",
    "2026-01-02T03:04:05+01:00[+01:00]",
    "2026-01-02T03:04:05+02:00[UTC]",
    "2026-01-02T03:04:05[UTC]",
    "2026-02-30T03:04:05Z",
    "",
    "x",
];

const OFFSETS: &[&str] = &[
    "Z", "z", "+1", "+01", "+0130", "+01:30", "+1:30", "-18", "+18:01", "+01:60", "+010203", "01:00",
    "+00:00", "",
];

const TIMES: &[&str] =
    &["10:15", "10:15:30", "10:15:30.5", "10", "24:00", "9:00", "10:15:60", "T10:15", "10:15Z"];

const PERIODS: &[&str] =
    &["P1D", "P1Y2M3D", "P2W", "P1W2D", "-P1D", "P-1D", "PT1H", "P", "p1d", "P1M", "P1.5D", "P1Y2W", "P1D2M"];

/// Values to which amounts are added, and which are cut and measured.
const VALUES: &[&str] = &[
    "(LocalDate/of 2026 1 31)",
    "(LocalDate/of 2024 2 29)",
    "(LocalDateTime/of 2026 1 31 10 17 3)",
    "(OffsetDateTime/parse \"2026-01-31T23:04:05.678+05:30\")",
    "(OffsetDateTime/parse \"2026-03-01T00:04:05Z\")",
    "(ZonedDateTime/parse \"2026-01-31T23:04:05-08:00\")",
    "(.atZone (Instant/ofEpochMilli -1500) (ZoneId/of \"UTC\"))",
    "(Instant/ofEpochMilli -1500)",
    "(Instant/parse \"2026-01-02T03:04:05.678Z\")",
    "(LocalTime/of 23 30)",
    "(LocalTime/parse \"00:15:30.5\")",
    "(Duration/ofSeconds 3700)",
    "(Period/of 1 14 3)",
];

const AMOUNTS: &[&str] = &[
    "(Period/of 0 1 1)",
    "(Period/ofDays 2)",
    "(Duration/ofHours 50)",
    "(Duration/ofMillis -1500)",
    "3 ChronoUnit/DAYS",
    "2 ChronoUnit/WEEKS",
    "13 ChronoUnit/MONTHS",
    "1 ChronoUnit/YEARS",
    "5 ChronoUnit/HOURS",
    "1500 ChronoUnit/MILLIS",
];

const UNITS: &[&str] = &["MILLIS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS", "YEARS"];

const METHODS: &[&str] = &[
    ".toInstant",
    ".toLocalDate",
    ".toLocalTime",
    ".toLocalDateTime",
    ".toOffsetDateTime",
    ".toEpochSecond",
    ".getOffset",
    ".getZone",
    ".getYear",
    ".getHour",
    ".getNano",
    ".getDayOfWeek",
    ".getDays",
    ".getMonths",
    ".toTotalMonths",
    ".toSecondOfDay",
    ".lengthOfYear",
];

const PATTERNS: &[&str] =
    &["yyyy-MM-dd HH:mm X", "HH:mm:ss.SSS", "dd/MMM/yyyy:HH:mm:ss Z", "XX XXX x xx xxx", "yyyy"];

/// Programs whose value is shown as text, unless it is a number or a boolean.
const OTHERS: &[&str] = &[
    "[(str (DayOfWeek/of 1)) (str (DayOfWeek/of 7)) (str (Month/of 1)) (str (Month/of 12))]",
    "(DayOfWeek/of 0)",
    "(DayOfWeek/of 8)",
    "(Month/of 13)",
    "(LocalDate/of 2026 Month/MARCH 31)",
    "(LocalDate/of 2026 DayOfWeek/MONDAY 1)",
    "(LocalDateTime/of 2026 Month/MARCH 1 10 0)",
    "(YearMonth/of 2026 13)",
    "(YearMonth/of 2026 Month/MARCH)",
    "(YearMonth/from (LocalDate/of 2026 3 31))",
    "(YearMonth/from (OffsetDateTime/parse \"2026-03-01T00:04:05Z\"))",
    "(YearMonth/from (YearMonth/of 2026 3))",
    "(YearMonth/from (LocalTime/of 1 0))",
    "(YearMonth/parse \"03/2026\" (DateTimeFormatter/ofPattern \"MM/yyyy\"))",
    "(YearMonth/parse \"1.3.2026\" (DateTimeFormatter/ofPattern \"d.M.yyyy\"))",
    "(YearMonth/parse \"2026\" (DateTimeFormatter/ofPattern \"yyyy\"))",
    "(.format (YearMonth/of 2026 3) (DateTimeFormatter/ofPattern \"MMM yyyy\"))",
    "(.atDay (YearMonth/of 2026 2) 28)",
    "(.atDay (YearMonth/of 2026 2) 29)",
    "(.atDay (LocalDate/of 2026 2 1) 2)",
    "(.lengthOfMonth (YearMonth/of 2024 2))",
    "(.lengthOfYear (YearMonth/of 2024 2))",
    "(map str [(.plusMonths (YearMonth/of 2026 12) 1) (.minusMonths (YearMonth/of 2026 1) 13) (.plusYears (YearMonth/of 2026 1) 2)])",
    "(.plusDays (YearMonth/of 2026 12) 1)",
    "(.plusWeeks (YearMonth/of 2026 12) 1)",
    "[(str (.withMonth (YearMonth/of 2026 12) 2)) (str (.withYear (YearMonth/of 2026 12) 2024))]",
    "(.withDayOfMonth (YearMonth/of 2026 12) 2)",
    "(.getDayOfMonth (YearMonth/of 2026 12))",
    "(.between ChronoUnit/MONTHS (YearMonth/of 2026 12) (YearMonth/of 2025 1))",
    "(.between ChronoUnit/YEARS (YearMonth/of 2024 3) (YearMonth/of 2026 2))",
    "(.between ChronoUnit/DAYS (YearMonth/of 2024 3) (YearMonth/of 2026 2))",
    "(.until (YearMonth/of 2024 3) (YearMonth/of 2026 2) ChronoUnit/MONTHS)",
    "[(.isBefore (YearMonth/of 2026 1) (YearMonth/of 2026 2)) (.isAfter (YearMonth/of 2026 1) (YearMonth/of 2026 2))]",
    "[(= (YearMonth/of 2026 1) (YearMonth/parse \"2026-01\")) (= (YearMonth/of 2026 1) (LocalDate/of 2026 1 1))]",
    "(map str (sort [(YearMonth/of 2026 2) (YearMonth/of 2025 12)]))",
    "(update-vals (group-by #(str (YearMonth/from %)) [(LocalDate/of 2026 1 2) (LocalDate/of 2026 1 3)]) count)",
    "(instance? java.time.YearMonth (YearMonth/of 2026 1))",
    "(LocalDate/ofYearDay 2026 60)",
    "(LocalDate/ofYearDay 2024 366)",
    "(LocalDate/ofYearDay 2026 366)",
    "(LocalDate/ofYearDay 2026 0)",
    "(ZoneOffset/ofHours 2)",
    "(ZoneOffset/ofHours 19)",
    "(.atZone (LocalDateTime/of 2026 1 1 0 0) (ZoneId/of \"+02:00\"))",
    "(.atOffset (Instant/ofEpochMilli 0) (ZoneOffset/ofHours 2))",
    "(.atOffset (Instant/ofEpochMilli 0) (ZoneId/of \"UTC\"))",
    "(.toInstant (LocalDateTime/of 2026 1 1 0 0) (ZoneOffset/ofHours 2))",
    "(.withOffsetSameInstant (OffsetDateTime/parse \"2026-01-02T00:04:05+01:00\") ZoneOffset/UTC)",
    "(.withZoneSameInstant (ZonedDateTime/parse \"2026-01-02T00:04:05+01:00\") (ZoneId/of \"UTC\"))",
    "(= (OffsetDateTime/parse \"2026-01-02T01:00:00+01:00\") (OffsetDateTime/parse \"2026-01-02T00:00:00Z\"))",
    "(.isEqual (OffsetDateTime/parse \"2026-01-02T01:00:00+01:00\") (OffsetDateTime/parse \"2026-01-02T00:00:00Z\"))",
    "(compare (OffsetDateTime/parse \"2026-01-02T01:00:00+01:00\") (OffsetDateTime/parse \"2026-01-02T00:00:00Z\"))",
    "(.isBefore (LocalTime/of 1 0) (LocalTime/of 2 0))",
    "(.atTime (LocalDate/of 2026 1 1) (LocalTime/of 9 5))",
    "(.atDate (LocalTime/of 9 5) (LocalDate/of 2026 1 1))",
    "[(str LocalTime/MIDNIGHT) (str LocalTime/NOON) (str Period/ZERO) (str ZoneOffset/UTC)]",
    "(LocalTime/of 25 0)",
    "(.plusHours (LocalTime/of 23 30) 1)",
    "(.plusDays (OffsetDateTime/parse \"2026-01-02T03:04:05+05:30\") 1)",
    "(.withDayOfMonth (OffsetDateTime/parse \"2026-01-02T03:04:05+05:30\") 1)",
    "(LocalDateTime/ofInstant (Instant/ofEpochMilli 0) ZoneOffset/UTC)",
    "(LocalDate/ofInstant (Instant/ofEpochMilli 0) (ZoneOffset/ofHours -1))",
    "(OffsetDateTime/ofInstant (Instant/ofEpochMilli 0) (ZoneOffset/ofHours 1))",
    "(ZonedDateTime/ofInstant (Instant/ofEpochMilli 0) (ZoneId/of \"UTC\"))",
    "(OffsetDateTime/of (LocalDateTime/of 2026 1 1 0 0) ZoneOffset/UTC)",
    "(Period/between (LocalDate/of 2026 1 31) (LocalDate/of 2026 3 1))",
    "(Period/between (LocalDate/of 2026 3 1) (LocalDate/of 2026 1 31))",
    "(.until (LocalDate/of 2026 1 1) (LocalDate/of 2026 3 5))",
    "(Duration/between (LocalTime/of 10 0) (LocalTime/of 9 30))",
    "(Duration/between (Instant/ofEpochMilli 0) (OffsetDateTime/parse \"2026-01-02T00:30:00Z\"))",
    "(Duration/between (OffsetDateTime/parse \"2026-01-02T00:30:00Z\") (Instant/ofEpochMilli 0))",
    "(OffsetDateTime/parse \"02/Jan/2026:03:04:05 +0100\" (DateTimeFormatter/ofPattern \"dd/MMM/yyyy:HH:mm:ss Z\"))",
    "(OffsetDateTime/parse \"2026-01-02 03:04 Z\" (DateTimeFormatter/ofPattern \"yyyy-MM-dd HH:mm X\"))",
    "(OffsetDateTime/parse \"2026-01-02 03:04 +01\" (DateTimeFormatter/ofPattern \"yyyy-MM-dd HH:mm X\"))",
    "(OffsetDateTime/parse \"2026-01-02 03:04 +0130\" (DateTimeFormatter/ofPattern \"yyyy-MM-dd HH:mm X\"))",
    "(OffsetDateTime/parse \"2026-01-02 03:04 +01:30\" (DateTimeFormatter/ofPattern \"yyyy-MM-dd HH:mm XXX\"))",
    "(LocalTime/parse \"9:05\" (DateTimeFormatter/ofPattern \"H:mm\"))",
    "(map str (sort [(OffsetDateTime/parse \"2026-01-02T01:00:00+01:00\") (OffsetDateTime/parse \"2026-01-01T23:00:00Z\")]))",
    "[(instance? java.time.ZoneId ZoneOffset/UTC) (inst? (OffsetDateTime/parse \"2026-01-02T00:30:00Z\"))]",
];

#[test]
fn times_and_offsets_mean_the_same_in_clojure() {
    let mut calls = Vec::new();
    for class in ["Instant", "OffsetDateTime", "ZonedDateTime"] {
        calls.extend(STAMPS.iter().map(|text| format!("({class}/parse {text:?})")));
    }
    calls.extend(OFFSETS.iter().map(|text| format!("(ZoneOffset/of {text:?})")));
    calls.extend(OFFSETS.iter().map(|text| format!("(ZoneId/of {text:?})")));
    calls.extend(["UTC", "GMT", "Etc/UTC", "utc"].map(|text| format!("(ZoneId/of {text:?})")));
    calls.extend(TIMES.iter().map(|text| format!("(LocalTime/parse {text:?})")));
    let months = ["2026-01", "2026-1", "2026-13", "2026-01-02", "202601", "26-01", "", "2026-0a"];
    calls.extend(months.map(|text| format!("(YearMonth/parse {text:?})")));
    for amount in [
        "13 ChronoUnit/MONTHS",
        "1 ChronoUnit/YEARS",
        "(Period/of 1 2 0)",
        "(Period/ofDays 2)",
        "3 ChronoUnit/DAYS",
    ] {
        calls.push(format!("(.plus (YearMonth/of 2024 1) {amount})"));
        calls.push(format!("(.minus (YearMonth/of 2024 1) {amount})"));
    }
    for method in [
        ".atEndOfMonth",
        ".getYear",
        ".getMonth",
        ".getMonthValue",
        ".isLeapYear",
        ".getDayOfWeek",
        ".toLocalDate",
    ] {
        calls.push(format!("({method} (YearMonth/of 2024 1))"));
    }
    calls.extend(PERIODS.iter().map(|text| format!("(Period/parse {text:?})")));
    for value in VALUES {
        for amount in AMOUNTS {
            calls.push(format!("(.plus {value} {amount})"));
            calls.push(format!("(.minus {value} {amount})"));
        }
        for unit in UNITS {
            calls.push(format!("(.truncatedTo {value} ChronoUnit/{unit})"));
            let later = format!("(.plus {value} (Duration/ofHours 50))");
            calls.push(format!("(.between ChronoUnit/{unit} {value} {later})"));
            calls.push(format!("(.between ChronoUnit/{unit} {later} {value})"));
        }
        calls.extend(METHODS.iter().map(|method| format!("({method} {value})")));
        for pattern in PATTERNS {
            calls.push(format!("(.format (DateTimeFormatter/ofPattern {pattern:?}) {value})"));
        }
    }
    calls.extend(OTHERS.iter().map(|call| (*call).to_owned()));
    let shown = "(let [r CALL] (if (or (number? r) (boolean? r) (coll? r)) r (str r)))";
    let programs: Vec<String> = calls.iter().map(|call| shown.replace("CALL", call)).collect();
    super::compare(&programs, "times and offsets");
}

#[test]
fn regions_are_refused_with_a_hint() {
    for program in [
        "(ZoneId/of \"Europe/Berlin\")",
        "(ZonedDateTime/parse \"2026-01-02T03:04:05+01:00[Europe/Berlin]\")",
    ] {
        let error = crate::support::run(program).unwrap_err();
        assert_eq!(error.kind(), backstitch_lisp::ErrorKind::InvalidArgument, "{error}");
        assert!(error.advice().unwrap_or_default().contains("offsets"), "{error}");
    }
}

#[test]
fn values_with_offsets_are_printed_and_read_back() {
    for program in [
        "(OffsetDateTime/parse \"2026-01-02T03:04:05+01:00\")",
        "(ZonedDateTime/parse \"2026-01-02T03:04:05Z[UTC]\")",
        "(ZoneOffset/ofHours -3)",
        "(ZoneId/of \"UTC\")",
        "(Period/of 1 2 3)",
        "(LocalTime/of 10 15)",
        "(YearMonth/of 2026 3)",
    ] {
        let value = crate::support::run(program).unwrap();
        let text = backstitch_lisp::to_edn(&value);
        let read = backstitch_lisp::read_edn(&text, &backstitch_lisp::Limits::default()).unwrap();
        assert_eq!(read, value, "{text}");
    }
}
