//! Programs that try to exceed their memory limit, checked by their real allocations.
//!
//! Each of them ends with a typed error, or finishes, and never allocates more than twice its limit and 16
//! MiB, including its source and compiled form.

use backstitch_lisp::{Inputs, Limits, MachineOutcome, Tools, store_memory};

use crate::allocations::most_held;
use crate::support::engine;

/// Runs a program under a limit and checks its allocations. Returns the kind of its error, or `done`.
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
            MachineOutcome::Finished(finished) => {
                finished.result.err().map_or("done", |error| error.kind().name())
            }
            MachineOutcome::Suspended(_) => "waits",
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

#[test]
fn what_is_shared_is_not_written_out() {
    // Sixty levels of pairs take sixty cells, and 2^60 leaves when they are printed.
    let tower = "(reduce (fn [x _] [x x]) 1 (range 60))";
    let sources: Vec<String> = [
        "(str T)",
        "(pr-str T)",
        "(println T)",
        "(json/write-str T)",
        "(format \"%s\" T)",
        "(= T T)",
        "(hash T)",
        "(compare T T)",
        "#{T 1}",
        "{T 1}",
        "(vec (flatten T))",
        "(count (tree-seq vector? seq T))",
        "(clojure.walk/postwalk identity T)",
        "(clojure.string/join \",\" [T])",
        "(sort-by identity [T T])",
        "(frequencies [T T])",
        "(case T 1 2 3)",
    ]
    .iter()
    .map(|source| source.replace('T', tower))
    .collect();
    all_are_stopped(&sources.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn sequences_that_multiply() {
    all_are_stopped(&[
        "(reduce (fn [s _] (repeat 1000 s)) 1 (range 1000))",
        "(flatten (reduce (fn [s _] (repeat 1000 s)) 1 (range 100)))",
        "(str (reduce (fn [s _] (repeat 1000 s)) 1 (range 100)))",
        "(vec (mapcat (fn [i] (repeat i i)) (range)))",
        "(map str (map str (map (fn [i] (apply str (repeat i \\a))) (range))))",
        "(doall (map (fn [i] (map str (repeat 1000 i))) (range)))",
        "(vec (apply concat (repeat (range 1000))))",
        "(for [a (range 1000) b (range 1000) c (range 1000)] [a b c])",
        "(range 9000000000000000000)",
        "(vec (range))",
        "(let [s (range 1000000)] [(apply list s) (vec s) (set s)])",
        "(let [s (lazy-seq (map vector (range 1000000)))] (count s) (first s))",
    ]);
}

#[test]
fn regular_expressions_that_explode() {
    // These are linear here: some of them simply return their result. None may take memory or time beyond the
    // limits.
    for source in [
        "(re-matches #\"(a+)+$\" (str (apply str (repeat 100000 \"a\")) \"b\"))",
        "(re-find #\"(a|aa)+$\" (str (apply str (repeat 100000 \"a\")) \"b\"))",
        "(re-find #\"(.*a){12}\" (apply str (repeat 20000 \"ab\")))",
        "(re-seq #\"(x+x+)+y\" (apply str (repeat 10000 \"x\")))",
        "(re-pattern \"((a{100}){100}){100}\")",
        "(re-pattern (apply str (repeat 100000 \"(\")))",
        "(re-pattern (apply str (repeat 10000 \"\\\\w{100}\")))",
        "(re-matches (re-pattern (apply str (repeat 1000 \"a?\"))) (apply str (repeat 1000 \"a\")))",
        "(clojure.string/replace (apply str (repeat 100000 \"a\")) #\"a*?\" \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\")",
        "(clojure.string/split (apply str (repeat 100000 \"a\")) #\"\")",
    ] {
        for memory_bytes in [1 << 20, 8 << 20] {
            run(source, memory_bytes).unwrap();
        }
    }
}

#[test]
fn what_holds_itself_is_let_go() {
    // Each of these would leak or never end if values could be cyclic. A hundred runs use the memory of one.
    for source in [
        "(def a (atom nil)) (reset! a a) (def b (atom a)) (reset! a [b a]) (count @a)",
        "(def a (atom nil)) (reset! a (fn [] (a) @a)) 1",
        "(def f (atom nil)) (reset! f (fn [n] (if (zero? n) 0 (@f (dec n))))) (@f 100)",
        "(def s (lazy-seq (cons 1 (map inc s)))) (def n (reduce + (take 100 s))) (def s nil)",
        "(def s (lazy-seq (cons (fn [] s) s))) (def n (count (take 10 s))) (def s nil)",
        "(letfn [(f [n] (if (zero? n) [f g] (g (dec n)))) (g [n] (f n))] (f 100))",
        "(let [a (atom [])] (swap! a conj a) (swap! a conj (lazy-seq [a])) (count @a))",
        "(let [v (volatile! nil)] (vreset! v [v]) (count @v))",
    ] {
        run(source, 1 << 20).unwrap();
        let (once, _) = most_held(|| run(source, 1 << 20).unwrap());
        let (often, ends) = most_held(|| (0..100).map(|_| run(source, 1 << 20).unwrap()).collect::<Vec<_>>());
        assert!(often < 2 * once + (64 << 10), "{often} after {once}: {source}");
        assert!(ends.iter().all(|end| *end == "done"), "{source} {}", ends[0]);
    }
}

#[test]
fn what_is_nested_and_long_is_dropped_on_another_thread() {
    // The programs stop before their end, and their values are dropped on a thread with a small stack.
    for source in [
        "(def v (reduce (fn [v _] [v]) [] (range 190))) (tool/wait {}) v",
        "(def f (reduce (fn [f _] (fn [] f)) nil (range 190))) (tool/wait {}) f",
        "(let [l (reduce (fn [l i] (cons i l)) nil (range 200000))] (tool/wait {}) l)",
        "(let [s (reduce (fn [s _] (map inc s)) [1] (range 50000))] (tool/wait {}) s)",
        "(let [s (iterate inc 0)] (nth s 100000) (tool/wait {}) s)",
        "(let [s (reduce (fn [s i] (lazy-seq (cons i s))) nil (range 50000))] (tool/wait {}) s)",
        "((fn f [n] (if (zero? n) (tool/wait {}) (inc (f (dec n))))) 4000)",
    ] {
        let inputs = Inputs { tools: Tools::new().with("wait", ["why"]), ..Inputs::default() };
        let program = engine().compile(source, &inputs).unwrap();
        let mut machine = engine().start(&program, inputs);
        let MachineOutcome::Suspended(_) = machine.run() else { panic!("{source} does not wait") };
        let drop_it = move || drop(machine);
        std::thread::Builder::new().stack_size(128 << 10).spawn(drop_it).unwrap().join().unwrap();
    }
}

#[test]
fn no_limit_on_nesting_allows_more_than_the_stack_does() {
    let mut limits = Limits::default();
    limits.nesting_depth = u32::MAX;
    for source in [
        "(reduce (fn [v _] [v]) [] (range 1000000))",
        "(def v (reduce (fn [v _] [v]) [] (range 990))) [(= v v) (hash v) (count (pr-str v)) (compare v v) (count (str v))]",
        "(def v (reduce (fn [v _] {:a v}) {} (range 990))) [(= v v) (hash v) (count (json/write-str v)) (count #{v [v]})]",
        "(def f (reduce (fn [f _] (fn [] f)) nil (range 990)))",
        "(clojure.walk/postwalk identity (reduce (fn [v _] [v]) [] (range 400)))",
    ] {
        let inputs = Inputs { limits: limits.clone(), ..Inputs::default() };
        let work = move || {
            let program = engine().compile(source, &inputs).unwrap();
            let MachineOutcome::Finished(finished) = engine().start(&program, inputs).run() else {
                panic!("it waits")
            };
            let _ = (format!("{:?}", finished.result), store_memory(&finished.memory, &Limits::default()));
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
    }
}
