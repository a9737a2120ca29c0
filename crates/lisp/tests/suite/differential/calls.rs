//! Calls of every library function on edge values, here and in Clojure.
//!
//! The calls are generated from a seed. One process of Clojure makes all of them: it resolves each function
//! once and applies it, so that tens of thousands take seconds. Values are compared as text; both sides may
//! also fail. Every difference must be listed in `differences.txt`, by function and by kind, with a reason.
//!
//! `LISP_CALLS` sets the number of calls of each function and number of arguments, `LISP_CALLS_SEED` the seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use backstitch_lisp::{Limits, MachineOutcome, read_edn, to_edn};

use super::{from_environment, run_clojure};
use crate::support::engine;

/// The calls of each function with one number of arguments.
const CALLS: u64 = 40;

/// Values at the edges of their types, and functions to call.
const VALUES: &[&str] = &[
    "nil",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "1.5",
    "-0.5",
    "0.0",
    "##NaN",
    "##Inf",
    "1/2",
    "-7/3",
    "10N",
    "9223372036854775807",
    "-9223372036854775808",
    "\\a",
    "\"\"",
    "\"a\"",
    "\"abc\"",
    "\"a,b\"",
    "\"12\"",
    "\" x \"",
    "\"ä€\"",
    ":a",
    ":b/c",
    "'sym",
    "[]",
    "[1 2 3]",
    "[[1 2] [3 4]]",
    "[:a :b]",
    "'()",
    "'(1 2)",
    "'(3 1 2)",
    "#{}",
    "#{1 2}",
    "{}",
    "{:a 1}",
    "{:a 1, :b 2}",
    "{\"k\" 1}",
    "[nil]",
    "#\"a\"",
    "inc",
    "+",
    "odd?",
    "identity",
    "str",
    "<",
    "compare",
    "count",
    "first",
    "nil?",
    "conj",
    "(fn [& xs] (vec xs))",
    "(range 5)",
    "(map inc [1 2 3])",
    "[3 1 2]",
    "[\"b\" \"a\"]",
];

/// Names whose results depend on more than their arguments, or that print, end or block.
const SKIPPED: &[&str] = &[
    "rand",
    "rand-int",
    "rand-nth",
    "shuffle",
    "random-sample",
    "random-uuid",
    "System/currentTimeMillis",
    "LocalDate/now",
    "LocalDateTime/now",
    "OffsetDateTime/now",
    "ZonedDateTime/now",
    "LocalTime/now",
    "YearMonth/now",
    "Instant/now",
    "Date.",
    "Math/random",
    "clojure.math/random",
    "atom",
    "volatile!",
    "hash",
    "return",
    "fail",
    "identical?",
    "transient",
    "persistent!",
    "conj!",
    "assoc!",
    "dissoc!",
    "disj!",
    "pop!",
    "type",
    "class",
    "pmap",
    "pcalls",
    "flush",
    "print",
    "println",
    "pr",
    "prn",
    "printf",
    "newline",
    "pprint",
    "clojure.pprint/pprint",
    "memoize",
    "read-string",
    "clojure.edn/read-string",
];

/// Reads one call on each line, `[function index...]`, and prints the text of its value as a string, nil if it
/// fails, or a keyword if it cannot be compared.
const EVALUATE: &str = r##"
(require '[clojure.string :as str] '[clojure.set :as set] 'clojure.walk 'clojure.math 'clojure.pprint)
(import '(java.time LocalDate LocalDateTime LocalTime Instant Duration Period DayOfWeek Month YearMonth OffsetDateTime ZonedDateTime ZoneOffset ZoneId)
        '(java.time.format DateTimeFormatter) '(java.time.temporal ChronoUnit) '(java.util Date UUID))
(def texts (read-string (slurp (first *command-line-args*))))
(def values (mapv eval texts))
(defn function-of [name arity]
  (try
    (let [s (symbol name) args (vec (repeatedly arity gensym))]
      (cond
        (or (str/starts-with? name ".") (str/ends-with? name ".")) (eval `(fn ~args (~s ~@args)))
        (and (namespace s) (not (str/starts-with? (namespace s) "clojure."))) (eval `(fn ~args (~s ~@args)))
        :else (let [v (resolve s)] (when (and (var? v) (fn? @v) (not (:macro (meta v)))) @v))))
    (catch Throwable _ nil)))
(def known (memoize function-of))
(defn shown [f args]
  (let [r (apply f args)
        r (if (seq? r) (doall (take 12 r)) r)]
    (binding [*print-length* 200 *print-namespace-maps* false] (pr-str r))))
(with-open [in (clojure.java.io/reader (second *command-line-args*))]
  (doseq [line (line-seq in)]
    (let [[name & places] (read-string line)
          f (known name (count places))
          args (map values places)]
      (prn (if (nil? f)
             :unknown
             (let [answer (future (binding [*out* (java.io.StringWriter.)]
                                    (try (shown f args) (catch Throwable _ nil))))
                   text (deref answer 3000 :timeout)]
               (if (and (string? text) (re-find #"#object\[|#error|LazySeq@|\$[a-zA-Z_]+[^ ]*@[0-9a-f]+" text)) :opaque text)))))))
(flush)
(System/exit 0)
"##;

struct Call {
    function: String,
    places: Vec<usize>,
}

impl Call {
    /// The program that makes the call here.
    fn program(&self) -> String {
        let arguments: Vec<&str> = self.places.iter().map(|place| VALUES[*place]).collect();
        format!("({} {})", self.function, arguments.join(" "))
    }
}

/// A small generator of numbers: the same seed gives the same calls.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

fn calls(count: u64, seed: u64) -> Vec<Call> {
    let mut calls = Vec::new();
    let names: Vec<String> = engine().names().into_iter().map(str::to_owned).collect();
    let is_constant = |name: &str| {
        name.rsplit('/')
            .next()
            .is_some_and(|last| last == "NaN" || last.chars().all(|c| c.is_uppercase() || c == '_'))
    };
    let is_value = |name: &str| name.len() > 1 && name.contains('/') && is_constant(name);
    let is_called = |name: &&String| !SKIPPED.contains(&name.as_str()) && !is_value(name);
    for function in names.iter().filter(is_called) {
        // The calls of a function do not depend on which others there are.
        let mut numbers = Numbers(
            function.bytes().fold(seed, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(byte.into())),
        );
        for arguments in 0..=3 {
            let most = VALUES.len().saturating_pow(arguments) as u64;
            for call in 0..count.min(most) {
                let places = match arguments {
                    // Every value once, as far as there are enough calls.
                    1 => vec![(call as usize + numbers.below(2)) % VALUES.len()],
                    _ => (0..arguments).map(|_| numbers.below(VALUES.len())).collect(),
                };
                calls.push(Call { function: function.clone(), places });
            }
        }
    }
    calls
}

/// The value of a call here, as text; `None` if it fails.
fn here(program: &str) -> Option<String> {
    let wrapped = format!("(let [r {program}] (if (seq? r) (doall (take 12 r)) r))");
    let mut limits = Limits::default();
    limits.fuel = 1_000_000;
    let inputs = backstitch_lisp::Inputs { limits, ..Default::default() };
    let compiled = engine().compile(&wrapped, &inputs).ok()?;
    match engine().start(&compiled, inputs).run() {
        MachineOutcome::Finished(finished) => finished.result.ok().map(|value| to_edn(&value)),
        MachineOutcome::Suspended(_) => None,
    }
}

/// Known differences: the function, then `refused` (a value there, an error here), `accepted` (an error there,
/// a value here) or `value`, then the reason.
fn known() -> BTreeMap<(String, String), String> {
    let mut known = BTreeMap::new();
    for line in include_str!("differences.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.splitn(3, char::is_whitespace);
        let (function, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let reason = words.next().unwrap_or_default().trim();
        assert!(["refused", "accepted", "value"].contains(&kind), "{line}");
        assert!(!reason.is_empty(), "a difference has a reason: {line}");
        let before = known.insert((function.to_owned(), kind.to_owned()), reason.to_owned());
        assert!(before.is_none(), "listed twice: {line}");
    }
    known
}

#[test]
fn calls_of_every_function_mean_the_same_in_clojure() {
    let count = from_environment("LISP_CALLS").unwrap_or(CALLS);
    let seed = from_environment("LISP_CALLS_SEED").unwrap_or(1);
    let calls = calls(count, seed);
    let values = format!(
        "[{}]",
        VALUES
            .iter()
            .map(|value| value
                .strip_prefix('\'')
                .map_or_else(|| (*value).to_owned(), |quoted| format!("(quote {quoted})")))
            .collect::<Vec<_>>()
            .join(" ")
    );
    let lines: String = calls
        .iter()
        .map(|call| {
            let places: Vec<String> = call.places.iter().map(ToString::to_string).collect();
            format!("[{:?} {}]\n", call.function, places.join(" "))
        })
        .collect();
    let Some(printed) = run_clojure(EVALUATE, &[("values.edn", &values), ("calls.edn", &lines)]) else {
        return;
    };
    let theirs: Vec<&str> = printed.lines().collect();
    assert_eq!(theirs.len(), calls.len(), "Clojure answered every call");
    let known = known();
    let mut found: BTreeMap<(String, String), String> = BTreeMap::new();
    let (mut compared, mut same_values) = (0, 0);
    for (call, line) in calls.iter().zip(theirs) {
        let answer = read_edn(line, &Limits::default()).unwrap_or_else(|error| panic!("{line}\n{error}"));
        let theirs = match answer {
            backstitch_lisp::Value::String(text) => Some(text.to_string()),
            backstitch_lisp::Value::Nil => None,
            // Unknown there, without end, or an object without a text.
            _ => continue,
        };
        compared += 1;
        let program = call.program();
        let ours = here(&program);
        let kind = match (&ours, &theirs) {
            (None, None) => continue,
            (None, Some(_)) => "refused",
            (Some(_), None) => "accepted",
            (Some(ours), Some(theirs)) => {
                let normal = |text: &str| match read_edn(text, &Limits::default()) {
                    Ok(value) => to_edn(&value),
                    Err(_) => text.to_owned(),
                };
                if normal(ours) == normal(theirs) {
                    same_values += 1;
                    continue;
                }
                "value"
            }
        };
        let entry = found.entry((call.function.clone(), kind.to_owned())).or_default();
        if entry.matches('\n').count() < 6 {
            let _ = write!(
                entry,
                "\n  {program}\n    here {}, Clojure {}",
                ours.as_deref().unwrap_or("fails"),
                theirs.as_deref().unwrap_or("fails")
            );
        }
    }
    let unlisted: Vec<String> = found
        .iter()
        .filter(|(key, _)| !known.contains_key(*key))
        .map(|((function, kind), examples)| format!("{function} {kind}{examples}"))
        .collect();
    assert!(
        unlisted.is_empty(),
        "{} differences of {compared} compared calls ({same_values} equal values) are not listed in differences.txt:\n{}",
        unlisted.len(),
        unlisted.join("\n")
    );
    let names = engine().names();
    let stale: Vec<&(String, String)> =
        known.keys().filter(|(name, _)| !names.contains(&name.as_str())).collect();
    assert!(stale.is_empty(), "there are no such functions: {stale:?}");
    assert!(compared > 10_000, "only {compared} calls were compared");
}
