//! The same programs in Clojure: in one process, warm, timed from inside.
//!
//! The rows have the system `clojure`. Without a `clojure` command there are no rows, and the reason is
//! printed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use serde_json::json;

use super::{CASES, ROWS, speed};
use crate::aims;
use crate::count::Counts;
use crate::measure::{Effort, Timing};
use crate::report::Report;

/// Unmeasured runs of Clojure before the first sample.
const WARM_UP: usize = 30;

/// Cases that are compared with an aim.
const COMPARED: [&str; 3] = ["lisp.sort_by", "lisp.group_by", "lisp.frequencies"];

/// `medians` are those of this language, by metric.
pub(super) fn run(report: &mut Report, text: &str, medians: &BTreeMap<&str, f64>) {
    let directory = std::env::temp_dir().join(format!("backstitch-bench-{}", std::process::id()));
    let measured = std::fs::create_dir_all(&directory).map_err(|error| error.to_string()).and_then(|()| {
        let (script, source) = (directory.join("bench.clj"), directory.join("source.clj"));
        let write = |path: &std::path::Path, text: &str| {
            std::fs::write(path, text).map_err(|error| error.to_string())
        };
        write(&source, text)?;
        write(&script, &program(&source.to_string_lossy()))?;
        let output = Command::new("clojure").arg(&script).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    // A directory that cannot be removed stays among the temporary files.
    let _ = std::fs::remove_dir_all(&directory);
    match measured {
        Ok(output) => print(report, &output, text.len(), medians),
        Err(error) => eprintln!("lisp: no rows for Clojure: {error}"),
    }
}

/// Lines of metric, value, and the nanoseconds of each sample: median, minimum, median of processor time.
fn print(ours: &mut Report, output: &str, bytes: usize, medians: &BTreeMap<&str, f64>) {
    let mut report = Report::of("clojure");
    for line in output.lines() {
        let mut fields = line.split('\t');
        let (Some(metric), Some(value)) = (fields.next(), fields.next()) else { continue };
        let numbers: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        let [median, minimum, cpu] = numbers[..] else { continue };
        let case = CASES.iter().find(|case| case.metric == metric);
        let Effort { samples, per_sample } = case.map_or(Effort::LARGE, |case| case.effort);
        let timing = Timing { median, minimum, cpu, counts: Counts::default(), samples, per_sample };
        match case {
            Some(case) => {
                assert_eq!(value, case.value, "Clojure disagrees about {}", case.source);
                report.time(metric, json!({ "program": case.source, "whole": case.whole }), &timing);
                if let Some(our_median) = medians.get(metric).filter(|_| COMPARED.contains(&metric)) {
                    aims::TO_CLOJURE.judge(ours, json!({ "of": metric }), our_median / median);
                }
            }
            None => speed(&mut report, bytes, &timing),
        }
    }
}

/// The Clojure program that measures all cases and the reading of a file.
fn program(source: &str) -> String {
    let mut program = format!(
        r#"
(def rows (vec (for [id (range {ROWS})] {{:id id :price (mod id 100) :name "item" :active (even? id)}})))
(def threads (java.lang.management.ManagementFactory/getThreadMXBean))
(defn cpu [] (.getCurrentThreadCpuTime ^java.lang.management.ThreadMXBean threads))
(defn measure [metric samples per-sample f]
  (dotimes [_ {WARM_UP}] (dotimes [_ per-sample] (f)))
  (let [all (vec (for [_ (range samples)]
                   (let [c (cpu) t (System/nanoTime)]
                     (dotimes [_ per-sample] (f))
                     [(/ (- (System/nanoTime) t) (double per-sample)) (/ (- (cpu) c) (double per-sample))])))
        wall (vec (sort (map first all)))
        processor (vec (sort (map second all)))
        middle (quot samples 2)]
    (println (clojure.string/join "\t" [metric (pr-str (f)) (wall middle) (wall 0) (processor middle)]))))
(require 'clojure.string)
"#
    );
    for case in CASES {
        let source = case.source.replace("data/rows", "rows");
        let Effort { samples, per_sample } = case.effort;
        let body = if case.whole { format!("(eval (read-string {:?}))", source) } else { source };
        let _ = writeln!(program, "(measure {:?} {samples} {per_sample} (fn [] {body}))", case.metric);
    }
    let Effort { samples, per_sample } = Effort::LARGE;
    let _ = writeln!(
        program,
        r#"
(def text (slurp {source:?}))
(defn read-all []
  (let [in (java.io.PushbackReader. (java.io.StringReader. text))]
    (loop [n 0] (if (= ::end (read {{:eof ::end}} in)) n (recur (inc n))))))
(measure "lisp.read" {samples} {per_sample} read-all)
(shutdown-agents)"#
    );
    program
}
