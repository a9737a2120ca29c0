//! The same programs in Clojure: valid programs have the same meaning there and here.
//!
//! Small programs are generated from a seed, all are evaluated in one process of Clojure and one by one here,
//! and the values are compared; both may also fail. Reading Clojure's output makes the order of maps and sets
//! the same. If `clojure` is not installed, nothing is compared, and the test reports that.
//!
//! `LISP_DIFFERENTIAL` sets the number of programs, `LISP_DIFFERENTIAL_SEED` the seed.

mod calls;
mod collections;
mod dates;
mod generator;
mod scalars;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use backstitch_lisp::{Limits, read_edn, to_edn};

use crate::support::run;
use generator::Generator;

/// The default number of programs.
const PROGRAMS: u64 = 2_000;

/// Evaluates the programs of a file, one string literal per line. Prints the text of each value as a string,
/// or nil if the program fails.
const EVALUATE: &str = r#"
(require '[clojure.string :as str] '[clojure.set :as set] 'clojure.walk)
(import '(java.time LocalDate LocalDateTime LocalTime Instant Duration Period DayOfWeek Month YearMonth OffsetDateTime ZonedDateTime ZoneOffset ZoneId)
        '(java.time.format DateTimeFormatter) '(java.time.temporal ChronoUnit))
(with-open [in (clojure.java.io/reader (first *command-line-args*))]
  (doseq [line (line-seq in)]
    (prn (try (pr-str (eval (read-string (read-string line)))) (catch Throwable _ nil)))))
(shutdown-agents)
"#;

#[test]
fn programs_mean_the_same_in_clojure() {
    let count = from_environment("LISP_DIFFERENTIAL").unwrap_or(PROGRAMS);
    let seed = from_environment("LISP_DIFFERENTIAL_SEED").unwrap_or(1);
    let programs: Vec<String> = (0..count).map(|at| Generator::new(seed, at).program()).collect();
    compare(&programs, &format!("seed {seed}"));
}

/// Evaluates programs here and in Clojure. Panics with those that differ.
fn compare(programs: &[String], origin: &str) {
    let Some(theirs) = evaluate_in_clojure(programs) else { return };
    let count = programs.len();
    assert_eq!(theirs.len(), count, "Clojure answered every program");
    let mut differences = Vec::new();
    let mut values = 0;
    for (program, theirs) in programs.iter().zip(&theirs) {
        let ours = run(program).map(|value| to_edn(&value));
        let same = match (&ours, theirs) {
            (Ok(ours), Some(theirs)) => {
                values += 1;
                ours == theirs
            }
            (Err(_), None) => true,
            _ => false,
        };
        if !same {
            let ours = ours.unwrap_or_else(|error| error.to_string());
            let theirs = theirs.as_deref().unwrap_or("an exception");
            differences.push(format!("{program}\n  here     {ours}\n  Clojure  {theirs}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {count} programs differ ({origin}):\n{}",
        differences.len(),
        differences[..differences.len().min(40)].join("\n")
    );
    // If most programs failed, the comparison would show little.
    assert!(values * 2 > count, "only {values} of {count} programs have a value");
}

/// Returns the result of each program in Clojure, as this language prints it; `None` if it fails.
fn evaluate_in_clojure(programs: &[String]) -> Option<Vec<Option<String>>> {
    let lines: String = programs.iter().map(|program| quoted(program) + "\n").collect();
    let printed = run_clojure(EVALUATE, &[("programs.edn", &lines)])?;
    let limits = Limits::default();
    let read = |line: &str| {
        let text = read_edn(line, &limits).unwrap_or_else(|error| panic!("{line}\n{error}"));
        let backstitch_lisp::Value::String(text) = text else { return None };
        Some(match read_edn(&text, &limits) {
            Ok(value) => to_edn(&value),
            Err(_) => text.to_string(),
        })
    };
    Some(printed.lines().map(read).collect())
}

/// Runs a script in one process of Clojure, with the paths of these files as its arguments. Returns what it
/// prints; `None`, with a line that says so, if there is no Clojure.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stderr,
    reason = "it starts Clojure"
)]
fn run_clojure(script: &str, files: &[(&str, &str)]) -> Option<String> {
    // Tests of one process may run at the same time.
    static SCRIPTS: AtomicU64 = AtomicU64::new(0);
    let number = SCRIPTS.fetch_add(1, Ordering::Relaxed);
    let name = format!("backstitch-differential-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).expect("a directory for temporary files");
    let path = directory.join("evaluate.clj");
    std::fs::write(&path, script).expect("the script can be written");
    // Its output has the encoding of the locale, which may be unset.
    let mut command = Command::new("clojure");
    command.env("LC_ALL", "C.UTF-8").arg(&path);
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("the file can be written");
        command.arg(path);
    }
    let output = command.output();
    std::fs::remove_dir_all(&directory).expect("the files are still there");
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: nothing was compared with Clojure, because it cannot be started: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("Clojure prints UTF-8"))
}

/// Quotes a string so that both languages read it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[expect(clippy::disallowed_methods, reason = "a person may ask for more programs")]
fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}
