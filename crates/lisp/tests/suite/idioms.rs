//! Idioms of daily Clojure that models write: endless sources, long argument lists, pieces of lines, delays.

use backstitch_lisp::{Inputs, Limits, MachineOutcome, ProgramResult, to_edn};
use proptest::prelude::*;

use crate::support::{engine, fails, gives, run};

fn finished(source: &str, limits: Limits) -> ProgramResult {
    let inputs = Inputs { limits, ..Inputs::default() };
    let program = engine().compile(source, &inputs).unwrap_or_else(|error| panic!("{source}\n{error}"));
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => *finished,
        _ => panic!("{source} waits for the host"),
    }
}

fn prints(source: &str) -> Vec<String> {
    let finished = finished(source, Limits::default());
    if let Err(error) = &finished.result {
        panic!("{source}\n{error}");
    }
    finished.prints
}

#[test]
fn arguments_may_be_endless_where_clojure_is_lazy() {
    gives("(zipmap [:mon :tue] (iterate inc 10))", "{:mon 10, :tue 11}");
    gives("(zipmap (range) [:a :b])", "{0 :a, 1 :b}");
    gives("(zipmap [:a :b] (cycle [1]))", "{:a 1, :b 1}");
    gives("(take 3 (flatten (repeat [1 2])))", "(1 2 1)");
    gives("(flatten [1 [2 (list 3 [4])] #{5} nil {:a 1}])", "(1 2 3 4 #{5} nil {:a 1})");
    gives("[(flatten 5) (flatten nil) (flatten [])]", "[() () ()]");
    gives("(take 2 (sequence (map inc) (range)))", "(1 2)");
    gives("(sequence (comp (filter odd?) (partition-all 2)) (range 7))", "([1 3] [5])");
    gives("(sequence (take 2) (range))", "(0 1)");
    gives("(sequence (map +) [1 2] [10 20 30])", "(11 22)");
    gives("(sequence (map inc) [])", "()");
}

/// Functions that Clojure defines lazily, or that stop at the end of the shorter argument. `%` is the source.
const LAZY: &[&str] = &[
    "(map inc %)",
    "(map + % [1 2 3])",
    "(map-indexed vector %)",
    "(filter odd? %)",
    "(remove odd? %)",
    "(keep identity %)",
    "(keep-indexed vector %)",
    "(mapcat list %)",
    "(take-while #(< % 90) %)",
    "(drop 2 %)",
    "(drop-while neg? %)",
    "(take-nth 2 %)",
    "(interleave % [:a :b])",
    "(interpose :x %)",
    "(partition 2 %)",
    "(partition-all 2 %)",
    "(partition-by odd? %)",
    "(concat % %)",
    "(cons 1 %)",
    "(distinct %)",
    "(dedupe %)",
    "(reductions + %)",
    "(flatten %)",
    "(rest %)",
    "(next %)",
    "(cycle %)",
    "(replace {1 :one} %)",
    "(sequence (map inc) %)",
    "(eduction (map inc) %)",
    "(zipmap [:a :b] %)",
    "(mapv + % [1 2])",
    "(apply concat [1] (map list %))",
    "(list* 1 2 %)",
    "(drop-last 2 %)",
    "(split-at 2 %)",
    "(split-with neg? %)",
    "(lazy-cat % %)",
    "(nthrest % 2)",
    "(for [x % :while (< x 9)] x)",
    "(iterate inc (first %))",
    "(random-sample 1.0 %)",
    "(second %)",
    "(some #{5} %)",
    "(nth % 5)",
    "(take 3 (apply map vector [%]))",
    "((fn [a & more] a) (first %) (second %))",
    "(apply (fn [a & more] [a (first more)]) %)",
    "(partition 2 3 %)",
];

#[test]
fn an_endless_source_gives_what_a_long_one_gives() {
    for call in LAZY {
        let of = |source: &str| {
            let call = call.replace("%)", &format!("{source})")).replace("% ", &format!("{source} "));
            let call = call.replace("[%]", &format!("[{source}]"));
            let program = format!(
                "(let [r {call}] (if (sequential? r) (take 3 (map #(if (seq? %) (take 3 %) %) r)) r))"
            );
            run(&program).map(|value| to_edn(&value)).unwrap_or_else(|error| panic!("{program}\n{error}"))
        };
        // `#(< % 90)` has its own `%`, which is not a source.
        if call.contains("#(") {
            continue;
        }
        assert_eq!(of("(range)"), of("(range 200)"), "{call}");
        assert_eq!(of("(iterate inc 0)"), of("(vec (range 200))"), "{call}");
    }
}

#[test]
fn apply_takes_as_many_items_as_a_collection_has() {
    gives("(apply max (range 60000))", "59999");
    gives("(count (apply str (repeat 60000 \"x\")))", "60000");
    gives("(count (apply hash-set (range 60000)))", "60000");
    gives("(count (apply vector 1 2 (range 60000)))", "60002");
    gives("(take 2 (apply concat (repeat [1])))", "(1 1)");
    gives("(take 4 (apply concat [1 2] [3] (repeat [4])))", "(1 2 3 4)");
    gives("(apply (fn [a & more] a) (range))", "0");
    gives("(apply (fn ([a] [:one a]) ([a b & more] [a b (first more)])) (range))", "[0 1 2]");
    gives("(apply (fn ([a] [:one a]) ([a b & more] [a b more])) [1])", "[:one 1]");
    gives("(apply (fn ([a] [:one a]) ([a b & more] [a b more])) [1 2])", "[1 2 nil]");
    gives("(apply (fn [& all] all) [])", "nil");
    gives("(apply (fn [a & more] (count more)) 1 2 [3 4])", "3");
    gives("(def f +) [(apply #'f [1 2]) (apply :a [{:a 1}]) (apply {:a 2} [:a])]", "[3 1 2]");
    gives(
        "(let [a (atom [])] [(apply (fn [x & more] x) (map #(do (swap! a conj %) %) [1 2 3])) @a])",
        "[1 [1 2]]",
    );
    fails("(apply max (range))", "size_exceeded");
    fails("(apply (fn [a] a) (range))", "size_exceeded");
    fails("(apply (fn [a] a) [1 2])", "arity_error");
    fails("(apply + 5)", "type_error");
}

#[test]
fn a_definition_without_an_end_is_named_with_its_line() {
    for (source, name) in [
        ("(println 1)\n(def evens (iterate #(+ 2 %) 0))", "evens"),
        ("nil\n(def fibs (lazy-cat [0 1] (map + fibs (rest fibs))))", "fibs"),
        ("nil\n(def ones {:all [(repeat 1)]})", "ones"),
    ] {
        let error = run(source).unwrap_err();
        assert_eq!(error.line(), Some(2), "{error}");
        let text = format!("`{name}` is a sequence without end, or too long to keep: ");
        assert!(error.message().starts_with(&text), "{error}");
        assert!(error.advice().unwrap().contains("keep `(take n ...)`"), "{error}");
    }
    let error = run("(iterate inc 0)").unwrap_err();
    assert!(error.message().starts_with("the value of the program is a sequence without end"), "{error}");
    // An error of the program stays what it is.
    let error = run("(def bad (map inc [1 :a]))").unwrap_err();
    assert_eq!(error.kind().name(), "type_error");
    gives("(def some-evens (take 2 (iterate #(+ 2 %) 0))) some-evens", "(0 2)");
}

#[test]
fn pieces_build_lines() {
    assert_eq!(prints("(print 1) (print 2)"), ["12"]);
    assert_eq!(prints("(print \"a\" :b) (println 1) (pr \"x\") (newline) (println)"), ["a :b1", "\"x\"", ""]);
    assert_eq!(prints("(dotimes [y 2] (dotimes [x 3] (print x)) (println))"), ["012", "012"]);
    assert_eq!(
        prints("(println \"two\\nlines\") (print \"ends\\n\") (print 1)"),
        ["two\nlines", "ends", "1"]
    );
    assert_eq!(prints("(printf \"%d-\" 1) (printf \"%d%n\" 2)"), ["1-2"]);
    assert_eq!(prints("(print 0) (pmap println [1 2]) (println 3)"), ["1", "2", "03"]);
}

#[test]
fn too_many_prints_are_cut_and_the_program_succeeds() {
    let finished = finished("(def kept 1) (dotimes [i 5000] (println i)) :done", Limits::default());
    assert_eq!(to_edn(&finished.result.unwrap()), ":done");
    assert_eq!(finished.defined.len(), 1);
    assert_eq!(finished.prints.len(), 1001);
    assert_eq!((finished.prints[0].as_str(), finished.prints[499].as_str()), ("0", "499"));
    assert_eq!(finished.prints[500], "... (4000 lines left out) ...");
    assert_eq!((finished.prints[501].as_str(), finished.prints[1000].as_str()), ("4500", "4999"));
    let mut limits = Limits::default();
    limits.print_characters = 100;
    let finished = self::finished("(dotimes [i 50] (println \"0123456789\"))", limits);
    assert_eq!(finished.prints.len(), 11, "{:?}", finished.prints);
    assert_eq!(finished.prints[5], "... (40 lines left out) ...");
    let long = prints("(dotimes [i 3000] (print i))");
    assert!(long.len() == 1 && long[0].len() == 2003, "{}", long[0].len());
}

#[test]
fn output_can_be_a_value() {
    gives("(with-out-str (print 1) (print 2))", "\"12\"");
    gives("(with-out-str (println \"a\") (prn \"b\"))", "\"a\\n\\\"b\\\"\\n\"");
    gives("(with-out-str)", "\"\"");
    gives("(with-out-str (print 1 (with-out-str (print 2))))", "\"1 2\"");
    gives(
        "[(try (with-out-str (print 1) (throw (Exception. \"x\"))) (catch Exception e :caught)) (with-out-str (print 3))]",
        "[:caught \"3\"]",
    );
    assert_eq!(
        prints(
            "(println (count (with-out-str (println 1)))) (try (with-out-str (/ 1 0)) (catch Exception e 1)) (println 2)"
        ),
        ["2", "2"]
    );
    gives(
        "(with-out-str (clojure.pprint/print-table [:a :b] [{:a 1 :b \"xx\"} {:a 22}]))",
        "\"\\n| :a | :b |\\n|----+----|\\n|  1 | xx |\\n| 22 |    |\\n\"",
    );
    gives("(with-out-str (print-table [{:name \"Ada\"}]))", "\"\\n| :name |\\n|-------|\\n|   Ada |\\n\"");
    gives("(with-out-str (print-table []))", "\"\"");
}

#[test]
fn delays_are_computed_once() {
    gives("(force (delay (+ 1 2)))", "3");
    gives("(let [a (atom 0) d (delay (swap! a inc))] [@d @d (force d) @a (realized? d)])", "[1 1 1 1 true]");
    gives("[(force 5) (delay? (delay 1)) (delay? 1) (realized? (delay 1))]", "[5 true false false]");
    gives("(let [d (delay (/ 1 0))] (try @d (catch ArithmeticException e :caught)))", ":caught");
    fails("(let [d (delay 1)] (pmap (fn [_] @d) [1 2]))", "forbidden_effect");
}

#[test]
fn what_sorted_collections_have() {
    gives(
        "[(subseq (sorted-set 1 2 3) > 1) (rsubseq (sorted-set 1 2 3) <= 2) (subseq (sorted-set 1) > 1)]",
        "[(2 3) (2 1) nil]",
    );
    gives("(subseq (sorted-map 1 :a 2 :b 3 :c) >= 2 < 3)", "([2 :b])");
    fails("(sorted-map 1 :a \"b\" 2)", "type_error");
    fails("(sorted-set 1 :a)", "type_error");
    gives("(sorted-map nil 1 2 3)", "{nil 1, 2 3}");
}

#[test]
fn small_functions() {
    gives(
        "[(.indexOf [5 6] 6) (.indexOf [5 6] 7) (.lastIndexOf [5 6 5] 5) (.indexOf (list 1 2) 2)]",
        "[1 -1 2 1]",
    );
    gives("[(.contains [5 6] 6) (.contains #{1} 2) (.contains \"abc\" \"b\")]", "[true false true]");
    gives("[(uuid? (random-uuid)) (= (random-uuid) (random-uuid))]", "[true false]");
    gives("(= 4 (parse-long (subs (str (random-uuid)) 14 15)))", "true");
    gives(
        "[(unchecked-inc Long/MAX_VALUE) (unchecked-dec Long/MIN_VALUE) (unchecked-add 1 2) (unchecked-multiply 2 3.5)]",
        "[-9223372036854775808 9223372036854775807 3 7.0]",
    );
    gives("[(unchecked-negate 5) (unchecked-subtract 1 2)]", "[-5 -1]");
    gives("(import 'java.time.LocalDate) (import (java.util Date UUID)) 1", "1");
}

#[test]
fn fractional_counts_are_rounded_up() {
    gives("(take 2.5 [1 2 3 4])", "(1 2 3)");
    gives("(drop 1.5 [1 2 3 4])", "(3 4)");
    gives("(drop-last 1.5 [1 2 3 4])", "(1 2)");
    gives("(take-last 1.5 [1 2 3 4])", "(3 4)");
    gives("(split-at 1.5 [1 2 3 4])", "[(1 2) (3 4)]");
    gives("(partition-all 1.5 [1 2 3 4])", "((1 2) (3 4))");
    gives("(take-nth 1.5 [1 2 3 4])", "(1 3)");
    gives(
        "[(take 1/2 [1 2]) (take -0.5 [1 2]) (drop ##NaN [1]) (take ##Inf [1 2]) (take 2N [1 2 3])]",
        "[(1) () (1) (1 2) (1 2)]",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Clojure counts down while the number is positive.
    #[test]
    fn a_count_is_its_ceiling(numerator in 0i64..40, denominator in 1i64..9) {
        let ceiling = (numerator + denominator - 1) / denominator;
        for call in ["(take N xs)", "(drop N xs)", "(take-last N xs)", "(drop-last N xs)", "(split-at N xs)", "(nthrest xs N)"] {
            let of = |count: String| {
                let program = format!("(let [xs (range 20)] {})", call.replace('N', &count));
                to_edn(&run(&program).unwrap())
            };
            prop_assert_eq!(of(format!("(/ {numerator} {denominator})")), of(ceiling.to_string()));
            prop_assert_eq!(of(format!("(/ {numerator}.0 {denominator})")), of(ceiling.to_string()));
        }
    }
}
