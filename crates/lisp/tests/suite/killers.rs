//! Programs that try to take more memory than they may, measured by what they really allocate.
//!
//! Each of them ends with a typed error, or finishes, and never holds more than twice its limit and 16 MiB, its source and
//! compiled form included.

use backstitch_lisp::{Inputs, Limits, Outcome};

use crate::allocations::most_held;
use crate::support::engine;

/// Runs a program under a limit and checks what it held. Gives the kind of its error, or `done`.
fn run(source: &str, memory_bytes: usize) -> Result<&'static str, String> {
    let mut limits = Limits::default();
    limits.memory_bytes = memory_bytes;
    limits.fuel = 20_000_000;
    let inputs = Inputs { limits, ..Inputs::default() };
    engine();
    let (most, kind) = most_held(|| {
        let program = match engine().compile(source, &inputs) {
            Ok(program) => program,
            Err(error) => return error.kind().name(),
        };
        match engine().start(&program, inputs).run() {
            Outcome::Finished(finished) => finished.result.err().map_or("done", |error| error.kind().name()),
            Outcome::Suspended(_) => "waits",
        }
    });
    let allowed = 2 * memory_bytes + (16 << 20);
    if most > allowed {
        let shown: String = source.chars().take(160).collect();
        return Err(format!("{} KiB of {} KiB ({kind}): {shown}", most >> 10, allowed >> 10));
    }
    Ok(kind)
}

/// Runs programs that must end with an error of a limit.
#[track_caller]
fn all_are_stopped(sources: &[&str]) {
    let mut wrong = Vec::new();
    for source in sources {
        for memory_bytes in [1 << 20, 8 << 20] {
            match run(source, memory_bytes) {
                Ok(kind) if kind.ends_with("_exceeded") => {}
                Ok(kind) => wrong.push(format!("ends with {kind}: {source}")),
                Err(held) => wrong.push(held),
            }
        }
    }
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn strings_that_grow() {
    all_are_stopped(&[
        "(loop [s \"a\"] (recur (str s s)))",
        "(loop [s \"ab\" kept []] (recur (str s (count kept)) (conj kept s)))",
        "(loop [s \"a\"] (recur (.concat s s)))",
        "(.repeat \"abcdefgh\" 100000000)",
        "(apply str (repeat 100000000 \"a\"))",
        "(clojure.string/join \",\" (range 100000000))",
        "(loop [s \"a\"] (recur (clojure.string/replace s \"a\" \"aaaa\")))",
        "(loop [s \"a\"] (recur (clojure.string/replace s #\"a\" \"$0$0$0\")))",
        "(loop [s \"aa\"] (recur (pr-str s s)))",
        "(format \"%100000000d\" 1)",
        "(loop [s \"%s\"] (recur (format \"%s%s\" s s)))",
        "(map str (iterate (fn [s] (str s s)) \"a\"))",
        "(reduce (fn [acc i] (conj acc (clojure.string/upper-case (apply str (repeat 1000 \"a\"))))) [] (range 10000000))",
        "(loop [s \"a,\"] (recur (apply str (clojure.string/split (str s s s) #\"x\"))))",
    ]);
}

#[test]
fn collections_that_grow() {
    all_are_stopped(&[
        "(loop [v []] (recur (conj v 1)))",
        "(loop [v [] i 0] (recur (conj v [i i]) (inc i)))",
        "(loop [m {} i 0] (recur (assoc m i [i]) (inc i)))",
        "(loop [s #{} i 0] (recur (conj s i) (inc i)))",
        "(loop [l ()] (recur (cons 1 l)))",
        "(loop [v [1]] (recur (into v v)))",
        "(loop [v [1]] (recur (vec (concat v v))))",
        "(vec (range 100000000))",
        "(into [] (repeat 1))",
        "(doall (range 100000000))",
        "(set (range 100000000))",
        "(zipmap (range) (range))",
        "(group-by identity (range))",
        "(frequencies (range))",
        "(reverse (range 100000000))",
        "(sort (range 100000000))",
        "(shuffle (range 100000000))",
        "(into {} (map (fn [i] [i (str i)]) (range)))",
        "(reduce (fn [acc i] (assoc acc (keyword (str \"k\" i)) i)) {} (range))",
        "(reduce (fn [acc i] (conj acc (symbol (str \"k\" i)))) #{} (range))",
        "(mapv vec (repeat 100000 (range 1000)))",
        "(loop [v [0 1 2 3 4 5 6 7] kept []] (recur (conj v 1) (conj kept (subvec v 1))))",
        "(loop [kept [] m (zipmap (range 1000) (range))] (recur (conj kept (assoc m 5 kept)) m))",
    ]);
}

#[test]
fn sequences_whose_heads_are_kept() {
    all_are_stopped(&[
        "(let [s (map inc (range))] (reduce + s) (first s))",
        "(let [s (iterate inc 0)] (last s) (first s))",
        "(let [s (repeatedly (fn [] [1 2 3]))] (last s) (first s))",
        "(let [s (filter even? (map inc (range)))] (count s) (first s))",
        "(def s (range))",
        "(def s (map str (range)))",
        "(partition 1000 1 (range))",
        "(let [s (partition-all 100 1 (range))] (last s) (first s))",
        "(reductions conj [] (range))",
        "(last (reductions (fn [acc i] (str acc \"abcdefgh\")) \"\" (range)))",
        "(tree-seq (constantly true) (fn [x] [x x]) 1)",
        "(cycle (range))",
        "(flatten (repeat [1 [2 [3]]]))",
        "(distinct (range))",
        "(interleave (range) (map str (range)))",
    ]);
}

#[test]
fn functions_atoms_and_exceptions_that_hold() {
    all_are_stopped(&[
        "(loop [f (fn [] 1)] (recur (fn [] (f))))",
        "(let [a (atom nil)] (loop [] (reset! a [@a]) (recur)))",
        "(let [a (atom [])] (loop [] (swap! a conj [1 2]) (recur)))",
        "(loop [atoms []] (recur (conj atoms (atom 1))))",
        "(let [a (atom nil)] (loop [] (reset! a (fn [] @a [a])) (recur)))",
        "(loop [e (ex-info \"a\" {})] (recur (ex-info \"b\" {:e 1} e)))",
        "(loop [f inc] (recur (comp f inc)))",
        "(loop [f inc] (recur (partial f 1)))",
        "(loop [v (volatile! 0) kept []] (recur (volatile! kept) (conj kept v)))",
        "(let [f (memoize (fn [x] [x x]))] (loop [i 0] (f i) (recur (inc i))))",
        "((fn f [v] (f (conj v 1))) [])",
        "((fn f [n] [(f (inc n))]) 0)",
    ]);
}

#[test]
fn numbers_texts_and_patterns() {
    all_are_stopped(&[
        "(loop [n 2] (recur (*' n n)))",
        "(loop [n 2 kept []] (recur (*' n 3) (conj kept n)))",
        "(reduce *' (range 1 100000000))",
        "(loop [r 1/3] (recur (* r r)))",
        "(loop [kept []] (recur (conj kept (re-pattern (str \"a{\" (count kept) \"}\")))))",
        "(loop [kept []] (recur (conj kept (re-seq #\"a\" \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"))))",
        "(let [s (apply str (repeat 100000 \"a \"))] (loop [kept []] (recur (conj kept (clojure.string/split s #\" \")))))",
        "(loop [kept []] (recur (conj kept (json/read-str \"[[1,2,3],[4,5,6],{}]\"))))",
        "(loop [s \"[]\"] (recur (json/write-str [s s])))",
        "(loop [kept []] (recur (conj kept (read-string \"{:a [1 2 3]}\"))))",
        "(loop [kept []] (recur (conj kept (LocalDate/ofEpochDay (count kept)))))",
        "(loop [i 0] (println (apply str (repeat 2000 \"a\"))) (recur (inc i)))",
        "(pmap (fn [i] (vec (range 100000))) (range 1000))",
        "(apply pcalls (repeat 100000 (fn [] (vec (range 1000)))))",
    ]);
}

#[test]
fn nested_source_and_values() {
    let deep = |open: &str, close: &str| open.repeat(1_000_000) + &close.repeat(1_000_000);
    for source in
        [deep("[", "]"), deep("(", ")"), deep("{:a ", "}"), deep("'", "x"), deep("#(", ")"), deep("\\", "")]
    {
        let kind = run(&source, 8 << 20).unwrap();
        assert_ne!(kind, "done", "{}", &source[..10]);
    }
    all_are_stopped(&[
        "(reduce (fn [v _] [v]) [] (range 1000000))",
        "(reduce (fn [v _] (list v)) () (range 1000000))",
        "(reduce (fn [v _] {:a v}) {} (range 1000000))",
        "(reduce (fn [v _] #{v}) #{} (range 1000000))",
        "(reduce (fn [s _] (lazy-seq (cons 1 s))) nil (range 10000000))",
        "(reduce (fn [s _] (map inc s)) (range) (range 10000000))",
        "(count (first (reduce (fn [s _] (concat s [1])) [] (range 10000000))))",
    ]);
}
