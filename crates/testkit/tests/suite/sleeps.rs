//! Tests wait for what they wait for, and do not sleep for seconds in the hope that it has happened.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest sleep of a test, in milliseconds.
const LONGEST: u64 = 1_000;

#[test]
fn no_test_sleeps_for_more_than_a_second() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).expect("the crates are here").flatten() {
        let of_tests = sources(&entry.path().join("tests")).into_iter().map(|path| (path, true));
        let others = sources(&entry.path().join("src")).into_iter().map(|path| (path, false));
        for (path, is_of_tests) in of_tests.chain(others) {
            let text = fs::read_to_string(&path).expect("a source is text");
            // In other files, tests stand at the end.
            let start = if is_of_tests { Some(0) } else { text.find("#[cfg(test)]") };
            let Some(start) = start else { continue };
            let before = text[..start].lines().count();
            let long = long_sleeps(&text[start..]).into_iter();
            found.extend(
                long.map(|(number, millis)| format!("{}:{}: {millis} ms", path.display(), before + number)),
            );
        }
    }
    assert!(found.is_empty(), "wait for the condition instead of sleeping:\n{}", found.join("\n"));
}

/// The sleeps of a text that are too long: the line, and the time in milliseconds. Times that are computed are not seen.
fn long_sleeps(text: &str) -> Vec<(usize, u64)> {
    let lines = text.lines().enumerate();
    let sleeps =
        lines.flat_map(|(index, line)| line.split("sleep(").skip(1).map(move |rest| (index + 1, rest)));
    let times = sleeps.filter_map(|(number, rest)| Some((number, millis(rest)?)));
    times.filter(|(_, millis)| *millis > LONGEST).collect()
}

/// The milliseconds of a duration at the beginning of a text.
fn millis(text: &str) -> Option<u64> {
    let text = text.strip_prefix("std::time::").unwrap_or(text).strip_prefix("Duration::from_")?;
    let (unit, rest) = text.split_once('(')?;
    let digits: String = rest.chars().take_while(|digit| digit.is_ascii_digit() || *digit == '_').collect();
    let number: u64 = digits.replace('_', "").parse().ok()?;
    match unit {
        "secs" | "secs_f64" | "secs_f32" => Some(number * 1_000),
        "millis" => Some(number),
        "mins" => Some(number * 60_000),
        _ => None,
    }
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn long_sleeps_are_found() {
    let long = ["from_secs(2)", "from_millis(1_001)", "from_secs_f64(2.5)"];
    for duration in long {
        assert_eq!(
            long_sleeps(&format!("a;\nthread::{}(Duration::{duration})", "sleep")).len(),
            1,
            "{duration}"
        );
    }
    for duration in ["from_secs(1)", "from_millis(900)", "from_micros(5000)"] {
        let text = format!("time::{}(std::time::Duration::{duration})", "sleep");
        assert!(long_sleeps(&text).is_empty(), "{duration}");
    }
}
