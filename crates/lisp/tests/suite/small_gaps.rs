//! Smaller parts of Clojure that idiomatic programs use: delays, `use`, `halt-when`, `iteration`, division by
//! zero, and the hint for a misspelt key.

use crate::support::{fails, gives, run};

#[test]
fn a_delay_is_not_an_atom() {
    gives("(re-find #\"#delay\" (pr-str (delay 5)))", "\"#delay\"");
    gives(
        "(let [d (delay 5)] [(delay? d) (atom? d) (instance? clojure.lang.Delay d) (str (class d))])",
        "[true false true \"clojure.lang.Delay\"]",
    );
    gives("(let [d (delay 5)] @d [(realized? d) (delay? d) (force d)])", "[true true 5]");
    fails("(swap! (delay 5) inc)", "type_error");
    fails("(reset! (delay 5) 1)", "type_error");
    fails("(+ 1 (delay 5))", "type_error");
}

#[test]
fn functions_of_predicates() {
    gives(
        "[((some-fn even? neg?) 1) ((some-fn even? neg?) 1 3) ((some-fn :a :b) {:b false})]",
        "[false false false]",
    );
    gives(
        "[((some-fn :a :b) {:c 1}) ((some-fn even? neg? zero? nil?) 1) ((some-fn even?))]",
        "[nil nil nil]",
    );
    gives(
        "[((some-fn even? neg?) 1 3 5 7) ((some-fn even? neg?) 1 3 5 7 8) ((some-fn :a :b :c) {} {} {} {:c 2})]",
        "[nil true 2]",
    );
    fails("(some-fn)", "arity_error");
}

#[test]
fn what_can_be_called_is_a_function_of_clojure() {
    gives(
        "(map #(instance? clojure.lang.IFn %) [:a 'a {} [] #{} inc (fn []) '() \"a\" nil (atom 1) 1])",
        "(true true true true true true true false false false false false)",
    );
    gives("(map #(instance? clojure.lang.Fn %) [:a {} inc (fn [])])", "(false false true true)");
}

#[test]
fn a_double_divided_by_zero() {
    gives(
        "[(/ 0.0 0) (/ 1.0 0) (/ -1.0 0) (/ 0 0.0) (/ 1 0.0) (/ 0.0 0N)]",
        "[##NaN ##Inf ##-Inf ##NaN ##Inf ##NaN]",
    );
    gives("[(/ (double 3) 0) (/ (* 1.0 3) 0) (-> 3 double (/ 0)) (/ 6.0 2 0)]", "[##Inf ##Inf ##Inf ##Inf]");
    gives("[(/ 6.0 4) (/ 6.0 1/2) (/ 9.0 3 2)]", "[1.5 12.0 1.5]");
    for program in [
        "(/ 0 0)",
        "(/ 1 0)",
        "(/ 1/2 0)",
        "(/ 1N 0)",
        "(quot 1.0 0)",
        "(mod 1.0 0.0)",
        "(apply / [1.5 0])",
        "(/ (first [1.5]) 0)",
    ] {
        fails(program, "arithmetic_error");
    }
    fails("(/ 1.0 nil)", "type_error");
    fails("(/ 1.0 \"a\")", "type_error");
}

#[test]
fn halting_transducers() {
    gives(
        "[(transduce (halt-when neg?) conj [1 2 -1 3]) (into [] (halt-when neg?) [1 2 -1 3]) (into [] (halt-when neg?) [1 2])]",
        "[-1 -1 [1 2]]",
    );
    gives("(transduce (halt-when neg? (fn [r x] [r x])) conj [1 2 -1 3])", "[[1 2] -1]");
    gives("(into [] (halt-when neg? (fn [r x] (conj r x))) [1 2 -1 3])", "[1 2 -1]");
    gives("(transduce (comp (map inc) (halt-when neg?)) + 0 [1 2 -3 3])", "-2");
    gives(
        "[(transduce (halt-when neg?) (completing conj count) [] [1 2]) (transduce (halt-when neg?) (completing conj count) [] [1 2 -1])]",
        "[2 -1]",
    );
    gives("[(transduce (halt-when nil?) conj [1 nil 2]) (sequence (halt-when neg?) [1 -2 3])]", "[nil (1)]");
}

#[test]
fn iterations_read_pages() {
    let pages = "{nil {:next 1 :items [1 2]} 1 {:next 2 :items [3]} 2 {:items [4]}}";
    gives(&format!("(into [] (iteration {pages} :kf :next :vf :items))"), "[[1 2] [3] [4]]");
    gives(&format!("(mapcat identity (iteration {pages} :kf :next :vf :items))"), "(1 2 3 4)");
    gives("(seq (iteration (fn [k] (when (< k 3) {:k (inc k) :v k})) :kf :k :vf :v :initk 0))", "(0 1 2)");
    gives(
        "[(seq (iteration (fn [_] nil))) (first (iteration (fn [k] k) :initk 5)) (seq (iteration {0 1 1 2} :initk 0))]",
        "[nil 5 (1 2)]",
    );
    gives(
        "(let [calls (atom 0)] (take 2 (iteration (fn [k] (swap! calls inc) {:k (inc k)}) :kf :k :initk 0)) @calls)",
        "0",
    );
    gives(
        "(let [calls (atom 0)] (first (iteration (fn [k] (swap! calls inc) {:k (inc k)}) :kf :k :initk 0)) @calls)",
        "1",
    );
}

#[test]
fn use_makes_the_names_of_a_namespace_known() {
    gives("(use 'clojure.set) [(union #{1} #{2}) (difference #{1 2} #{2})]", "[#{1 2} #{1}]");
    gives("(use '[clojure.string :only [trim]]) (trim \" a \")", "\"a\"");
    gives(
        "(use '[clojure.string :exclude [reverse replace]]) [(upper-case \"a\") (reverse [1 2])]",
        "[\"A\" (2 1)]",
    );
    gives(
        "(ns report (:use clojure.set) (:require [clojure.string :refer :all :exclude [reverse]])) [(union #{1} #{2}) (blank? \"\")]",
        "[#{1 2} true]",
    );
    gives("(refer 'clojure.set :only '[union]) (union #{1} #{2})", "#{1 2}");
    gives("(use 'clojure.core) (inc 1)", "2");
    fails("(use 'clojure.nowhere)", "unbound_var");
    fails("(use '[clojure.set :rename {union u}])", "unsupported");
}

#[test]
fn an_error_about_nil_names_a_misspelt_key() {
    let rows = "(def rows [{:total 3 :name \"a\"} {:total 4 :name \"b\"}])";
    for program in [
        "(reduce + (map :totl rows))",
        "(apply + (mapv :totl rows))",
        "(reduce (fn [sum row] (+ sum (:totl row))) 0 rows)",
        "(reduce (fn [sum {:keys [totl]}] (+ sum totl)) 0 rows)",
        "(let [f :totl] (+ 1 (f (first rows))))",
        "(inc (:totl (first rows)))",
    ] {
        let error = run(&format!("{rows} {program}")).unwrap_err();
        assert_eq!(error.advice(), Some("the map has no `:totl`; did you mean `:total`?"), "{program}");
    }
    let error = run(&format!("{rows} (str/upper-case (:nmae (first rows)))")).unwrap_err();
    assert_eq!(error.advice(), Some("the map has no `:nmae`; did you mean `:name`?"));
    // Keys that are near nothing, errors that are not about nil, and lookups with a default.
    for program in [
        "(+ 1 (:price (first rows)))",
        "(+ (or (:totl (first rows)) 0) :a)",
        "(+ (:totl (first rows) 0) nil)",
    ] {
        let error = run(&format!("{rows} {program}")).unwrap_err();
        assert!(!error.advice().unwrap_or_default().contains("the map has no"), "{program}: {error}");
    }
}

#[test]
fn doseq_ends_where_its_conditions_do() {
    gives(
        "(let [a (atom [])] (doseq [x [1 2 3] y [10 20 30] :while (< y 25) :when (odd? x)] (swap! a conj (+ x y))) @a)",
        "[11 21 13 23]",
    );
    gives(
        "(let [a (atom [])] (doseq [x (range 5) :while (< x 2) y [:a :b]] (swap! a conj [x y])) @a)",
        "[[0 :a] [0 :b] [1 :a] [1 :b]]",
    );
    gives("(let [a (atom 0)] (doseq [[k v] {:a 1 :b 2}] (swap! a + v)) @a)", "3");
    gives("(let [a (atom 0)] [(doseq [x nil] (swap! a inc)) (doseq [] (swap! a inc)) @a])", "[nil nil 1]");
    gives("(let [a (atom [])] (doseq [x [1 2]] (swap! a conj x) (reduced 9)) @a)", "[1 2]");
    gives("(doseq [x [1 2 3]] (when (= x 2) (return x)))", "2");
    fails("(doseq [x 5] x)", "type_error");
    fails("(loop [i 0] (doseq [x [1]] (recur 1)))", "invalid_recur");
}

#[test]
fn library_functions_that_are_values_are_called_as_by_name() {
    gives("(let [f +] [(f 1 2) (f) (f 1.5 2)])", "[3 0 3.5]");
    gives("((fn [f & xs] (apply f xs)) assoc {:a 1} :b 2)", "{:a 1, :b 2}");
    gives(
        "(let [f conj g count h str/upper-case] [(f (sorted-set-by > 1) 2) (g (map inc [1 2])) (h \"a\")])",
        "[#{2 1} 2 \"A\"]",
    );
    gives("(let [f first] [(f (map inc [1 2])) (f [])])", "[2 nil]");
    gives("(transduce (comp (map inc) (filter even?)) + 0 (range 10))", "30");
    fails("(let [f inc] (f 1 2))", "arity_error");
    fails("(let [f +] (f 9223372036854775807 1))", "arithmetic_error");
    gives(
        "[(reduce + [1 2.5 1/2]) (reduce * [2 3]) (reduce max [1 3 2]) (reduce min [2.5 1])]",
        "[4.0 6 3 1]",
    );
    fails("(reduce + [9223372036854775807 1])", "arithmetic_error");
    fails("(reduce * [9223372036854775807 2])", "arithmetic_error");
}
