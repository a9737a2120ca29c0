//! Maps and sets in the order of a comparator of the program, queues, and watches of atoms.

use backstitch_lisp::{Limits, Memory, store_memory, to_edn};
use proptest::prelude::*;

use crate::stored::{leave_behind, run as run_with};
use crate::support::{fails, gives, run};

#[test]
fn the_order_of_the_comparator() {
    gives("(sorted-map-by > 1 :a 2 :b)", "{2 :b, 1 :a}");
    gives("(sorted-set-by > 1 2)", "#{2 1}");
    gives("(into (sorted-map-by #(compare %2 %1)) {:a 1 :c 3 :b 2})", "{:c 3, :b 2, :a 1}");
    let by_value = "(let [m {:a 3 :b 9 :c 3}]
      (into (sorted-map-by (fn [x y] (compare [(m y) y] [(m x) x]))) m))";
    gives(by_value, "{:b 9, :c 3, :a 3}");
    gives(
        "(let [m (sorted-map-by > 1 :a 3 :c)] [(assoc m 2 :b) (keys m) (vals m) (first m)])",
        "[{3 :c, 2 :b, 1 :a} (3 1) (:c :a) [3 :c]]",
    );
    gives("(let [m (sorted-map-by > 1 :a 3 :c)] (reduce-kv (fn [out k _] (conj out k)) [] m))", "[3 1]");
    gives("(conj (sorted-map-by >) [1 :a] {3 :c} nil [2 :b])", "{3 :c, 2 :b, 1 :a}");
    gives("(merge (sorted-map-by > 1 :a) {3 :c 0 :z} nil)", "{3 :c, 1 :a, 0 :z}");
    gives(
        "(update (assoc-in (sorted-map-by > 1 {:n 1}) [2 :n] 2) 1 assoc :x 0)",
        "{2 {:n 2}, 1 {:n 1, :x 0}}",
    );
    gives("(dissoc (sorted-map-by > 1 :a 2 :b 3 :c) 2)", "{3 :c, 1 :a}");
    gives("(disj (sorted-set-by > 1 2 3) 2)", "#{3 1}");
    gives("(conj (sorted-set-by > 1 3) 2 3)", "#{3 2 1}");
    gives("(into (sorted-set-by (comp - compare)) (range 5))", "#{4 3 2 1 0}");
    gives("(let [a (atom (sorted-map-by >))] (swap! a assoc 1 :a) (swap! a assoc 2 :b) @a)", "{2 :b, 1 :a}");
    gives("(into (empty (sorted-map-by > 1 2)) [[1 :a] [2 :b]])", "{2 :b, 1 :a}");
    gives("[(sorted? (sorted-map-by >)) (sorted? (sorted-set-by >)) (sorted? {})]", "[true true false]");
    gives(
        "[(subseq (sorted-set-by > 1 2 3) >= 2) (rseq (sorted-map-by > 1 :a 2 :b))]",
        "[(2 1) ([1 :a] [2 :b])]",
    );
    gives(
        "(reduce (fn [m n] (assoc m n n)) (sorted-map-by >) (range 20))",
        "{19 19, 18 18, 17 17, 16 16, 15 15, 14 14, 13 13, 12 12, 11 11, 10 10, 9 9, 8 8, 7 7, 6 6, 5 5, 4 4, 3 3, 2 2, 1 1, 0 0}",
    );
}

#[test]
fn what_the_comparator_calls_equal_is_one_key() {
    gives(
        "(sorted-map-by (fn [a b] (compare (count a) (count b))) \"aa\" 1 \"b\" 2 \"cc\" 3)",
        "{\"b\" 2, \"aa\" 3}",
    );
    gives("(sorted-set-by (constantly 0) 1 2 3)", "#{1}");
    gives("(sorted-set-by (constantly false) 1 2 3)", "#{1}");
}

#[test]
fn such_collections_are_equal_to_others_with_the_same_contents() {
    gives("(= (sorted-map-by > 1 :a 2 :b) {1 :a 2 :b})", "true");
    gives("(= {1 :a 2 :b} (sorted-map-by > 1 :a 2 :b))", "true");
    gives("(= (hash #{1 2}) (hash (sorted-set-by > 1 2)))", "true");
    gives("(get {(sorted-set-by > 1 2) :found} #{1 2})", ":found");
    gives("(contains? #{(sorted-map-by > 1 :a 2 :b)} {1 :a 2 :b})", "true");
}

#[test]
fn what_is_wrong_with_a_comparator_is_said() {
    fails("(sorted-map-by :a 1 2)", "type_error");
    fails("(sorted-map-by > 1)", "invalid_argument");
    fails("(sorted-map-by > :a 1 :b 2)", "type_error");
    fails("(sorted-set-by (constantly nil) 1 2)", "type_error");
    fails("(assoc (sorted-map-by >) 1)", "arity_error");
    fails("(conj (sorted-map-by >) 5)", "type_error");
    fails("(assoc (sorted-set-by > 1) 0 1)", "type_error");
    fails("(into (sorted-map-by >) (range))", "fuel_exceeded");
}

#[test]
fn a_comparator_may_act() {
    gives(
        "(let [n (atom 0)] (sorted-set-by (fn [a b] (swap! n inc) (compare a b)) 1 2 3) (pos? @n))",
        "true",
    );
    fails("(sorted-set-by (fn [a b] (throw (ex-info \"no\" {}))) 1 2)", "uncaught_exception");
}

#[test]
fn queues_are_read_at_the_front() {
    gives("(peek (into clojure.lang.PersistentQueue/EMPTY [1 2]))", "1");
    gives(
        "(let [q (conj PersistentQueue/EMPTY 1 2 3)] [(peek q) (seq (pop q)) (count q) (first q) (rest q)])",
        "[1 (2 3) 3 1 (2 3)]",
    );
    gives(
        "[(peek PersistentQueue/EMPTY) (seq (pop PersistentQueue/EMPTY)) (empty? PersistentQueue/EMPTY)]",
        "[nil nil true]",
    );
    gives("(vector? PersistentQueue/EMPTY)", "false");
    gives("(= (conj PersistentQueue/EMPTY 1 2) [1 2])", "true");
    let search = "(loop [q (conj clojure.lang.PersistentQueue/EMPTY 1) seen #{}]
      (if-let [n (peek q)]
        (recur (into (pop q) (remove seen (filter #(< % 20) [(* 2 n) (+ 3 n)]))) (conj seen n))
        (count seen)))";
    gives(search, "13");
    gives(
        "(loop [q (into PersistentQueue/EMPTY (range 500)) total 0] (if (seq q) (recur (pop q) (+ total (peek q))) total))",
        "124750",
    );
    fails("(assoc (conj PersistentQueue/EMPTY 1) 0 2)", "type_error");
}

#[test]
fn watches_are_called_with_the_old_and_the_new_value() {
    let watch = "(let [a (atom 0) seen (atom [])]
      (add-watch a :k (fn [k r old new] (swap! seen conj [k (= r a) old new])))
      (reset! a 5) (swap! a inc) (swap-vals! a + 2) (compare-and-set! a 8 9) (reset-vals! a 1)
      (remove-watch a :k) (reset! a 7)
      @seen)";
    gives(watch, "[[:k true 0 5] [:k true 5 6] [:k true 6 8] [:k true 8 9] [:k true 9 1]]");
    gives("(let [a (atom 1)] (add-watch a :k (fn [& _] :ignored)) [(reset! a 2) (swap! a inc)])", "[2 3]");
    gives(
        "(let [a (atom [])] (add-watch a :k (fn [_ _ o n] nil)) (swap! a conj 1) (swap! a conj 2) @a)",
        "[1 2]",
    );
    fails(
        "(let [a (atom 0)] (add-watch a :k (fn [& _] (throw (ex-info \"no\" {})))) (reset! a 1))",
        "uncaught_exception",
    );
}

#[test]
fn they_are_stored_and_restored() {
    let memory = leave_behind(
        "(def m (sorted-map-by > 1 :a 2 :b)) (def s (sorted-set-by (fn [a b] (compare b a)) 1 2))
        (def q (conj clojure.lang.PersistentQueue/EMPTY 1 2)) (def lazy (sorted-map-by > 1 (map inc [1 2])))",
    );
    let finished = run_with("[(assoc m 3 :c) (conj s 3) (peek (pop q)) (assoc lazy 2 0)]", memory);
    assert_eq!(to_edn(&finished.result.unwrap()), "[{3 :c, 2 :b, 1 :a} #{3 2 1} 2 {2 0, 1 (2 3)}]");
}

#[test]
fn only_documents_with_new_kinds_are_of_the_new_version() {
    let version = |source: &str| {
        let memory = run_with(source, Memory::new()).memory;
        store_memory(&memory, &Limits::default()).unwrap()["version"].as_u64()
    };
    assert_eq!(version("(def m {:a [1 2] :b #{3}})"), Some(1));
    assert_eq!(version("(def m (sorted-map-by >))"), Some(2));
    assert_eq!(version("(def m (sorted-set-by >))"), Some(2));
    assert_eq!(version("(def q [clojure.lang.PersistentQueue/EMPTY])"), Some(2));
}

proptest! {
    /// Whatever is added and removed, and however often a version is changed that something else holds.
    #[test]
    fn a_map_in_reverse_is_the_reverse_of_a_map(changes in proptest::collection::vec((0..5u8, 0..40i64), 0..60)) {
        let mut steps = String::new();
        for (kind, key) in changes {
            steps.push_str(&match kind {
                0 => format!(" (assoc {key} {key})"),
                1 => format!(" (dissoc {key})"),
                2 => format!(" (conj [{key} :c])"),
                3 => format!(" (merge {{{key} :m {} :m}})", key + 1),
                _ => format!(" (into [[{key} :i] [{} :i]])", key / 2),
            });
        }
        let source = format!(
            "(let [up (-> {{}} {steps}) down (-> (sorted-map-by >) {steps})]
               (and (= (reverse (seq up)) (or (seq down) ())) (= up down)))"
        );
        prop_assert_eq!(to_edn(&run(&source).unwrap()), "true", "{}", source);
    }
}
