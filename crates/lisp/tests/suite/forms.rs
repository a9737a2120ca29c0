//! Special forms and macros.

use crate::support::{fails, gives};

#[test]
fn literals_are_themselves() {
    gives("nil", "nil");
    gives("[1 2.5 \"a\" \\b :c 'd true]", "[1 2.5 \"a\" \\b :c d true]");
    gives("{:a #{1} :b ()}", "{:a #{1}, :b ()}");
    gives("", "nil");
    gives("1 2 3", "3");
    fails("{(identity 1) 2 (dec 2) 3}", "invalid_argument");
    fails("#{(identity 1) (dec 2)}", "invalid_argument");
}

#[test]
fn branches() {
    gives("(if true 1)", "1");
    gives("(if nil 1)", "nil");
    gives("(if false 1 2)", "2");
    fails("(if)", "invalid_form");
    fails("(if 1 2 3 4)", "invalid_form");
    gives("(if-not nil 1 2)", "1");
    gives("(when true 1 2)", "2");
    gives("(when-not true 1)", "nil");
    gives("(cond false 1 nil 2 :else 3)", "3");
    gives("(cond)", "nil");
    fails("(cond 1)", "invalid_form");
    gives("(condp = 2 1 :a 2 :b)", ":b");
    gives("(condp some [1 2] #{3} :>> inc #{2} :>> (fn [x] (* x 10)))", "20");
    gives("(condp = 9 1 :a :none)", ":none");
    fails("(condp = 9 1 :a)", "no_matching_clause");
    gives("(case :b :a 1 (:b :c) 2 3)", "2");
    gives("(case 9 1 :a :other)", ":other");
    gives("(case [1 2] [1 2] :pair :none)", ":pair");
    gives("(case 'x x 1 y 2)", "1");
    gives("(case 1.0 1 :long :none)", ":none");
    fails("(case 9 1 :a)", "no_matching_clause");
    fails("(case 1 1 :a 1 :b)", "invalid_form");
    gives("(and)", "true");
    gives("(and 1 nil 2)", "nil");
    gives("(and 1 2)", "2");
    gives("(or)", "nil");
    gives("(or nil false 3 4)", "3");
    gives("(or nil false)", "false");
}

#[test]
fn bindings() {
    gives("(let [x 1 y (+ x 1)] [x y])", "[1 2]");
    gives("(let [x 1] (let [x 2] x))", "2");
    gives("(let [x 1 x (inc x) x (inc x)] x)", "3");
    fails("(let [x] x)", "invalid_form");
    fails("(let (x 1) x)", "invalid_form");
    gives("(if-let [x nil] x :none)", ":none");
    gives("(if-let [[a b] [1 2]] (+ a b))", "3");
    gives("(if-some [x false] x :none)", "false");
    gives("(when-let [x 5] (inc x))", "6");
    gives("(when-some [x nil] 1)", "nil");
    gives("(when-first [x [7 8]] x)", "7");
    gives("(when-first [x []] x)", "nil");
    gives(
        "(letfn [(e? [n] (if (zero? n) true (o? (dec n)))) (o? [n] (if (zero? n) false (e? (dec n))))] (e? 11))",
        "false",
    );
    gives("(let [k 3] (letfn [(f [x] (+ k (g x))) (g [x] (* x k))] (f 2)))", "9");
}

#[test]
fn loops() {
    gives("(loop [i 0 acc []] (if (< i 3) (recur (inc i) (conj acc i)) acc))", "[0 1 2]");
    gives("(loop [[x & more] [1 2 3] total 0] (if x (recur more (+ total x)) total))", "6");
    gives("((fn [n acc] (if (zero? n) acc (recur (dec n) (* acc n)))) 5 1)", "120");
    fails("(loop [i 0] (inc (recur 1)))", "invalid_recur");
    fails("(loop [i 0] (recur))", "invalid_recur");
    fails("(recur 1)", "invalid_recur");
    fails("(loop [i 0] (try (recur 1) (catch Exception e 1)))", "invalid_recur");
    gives("(loop [i 0] (when (< i 3) (recur (+ i (try 1 (catch Exception e 2))))))", "nil");
    gives("(let [a (atom [])] (dotimes [i 3] (swap! a conj i)) @a)", "[0 1 2]");
    gives("(let [a (atom 0)] (while (< @a 5) (swap! a inc)) @a)", "5");
    gives(
        "(let [a (atom [])] (doseq [x [1 2 3] :when (odd? x) y [:a :b]] (swap! a conj [x y])) @a)",
        "[[1 :a] [1 :b] [3 :a] [3 :b]]",
    );
    gives(
        "(let [a (atom [])] (doseq [x (range 10) :while (< x 3) :let [y (* x x)]] (swap! a conj y)) @a)",
        "[0 1 4]",
    );
    gives("(doseq [x [1 2]] x)", "nil");
    gives("(for [x [1 2] y [:a :b]] [x y])", "([1 :a] [1 :b] [2 :a] [2 :b])");
    gives("(for [x (range 6) :when (even? x) :let [y (* x x)]] y)", "(0 4 16)");
    gives("(for [x (range) :while (< x 4)] x)", "(0 1 2 3)");
    gives("(for [x [1 2 3] y (range x) :while (< y 2)] [x y])", "([1 0] [2 0] [2 1] [3 0] [3 1])");
    gives("(for [x []] x)", "()");
    fails("(for [:when true] 1)", "invalid_form");
}

#[test]
fn threading() {
    gives("(-> 5 inc (- 2))", "4");
    gives("(->> [1 2 3] (map inc) (reduce +))", "9");
    gives("(as-> 5 x (+ x 1) (* x x))", "36");
    gives("(some-> {:a {:b 1}} :a :b inc)", "2");
    gives("(some-> {:a nil} :a :b inc)", "nil");
    gives("(some->> [1 2] (map inc))", "(2 3)");
    gives("(cond-> 1 true inc false (* 100) :always (* 2))", "4");
    gives("(cond->> [1 2 3] true (map inc) false (filter odd?))", "(2 3 4)");
    gives("(-> {} (assoc :a 1) :a)", "1");
    gives("(doto [1] first)", "[1]");
}

#[test]
fn exceptions() {
    gives("(try 1 (catch Exception e 2))", "1");
    gives("(try (/ 1 0) (catch ArithmeticException e :zero))", ":zero");
    gives(
        "(try (throw (ex-info \"no\" {:a 1})) (catch Exception e [(ex-message e) (ex-data e)]))",
        "[\"no\" {:a 1}]",
    );
    gives("(try (try (/ 1 0) (catch NullPointerException e 1)) (catch Exception e 2))", "2");
    gives("(let [a (atom [])] (try (swap! a conj 1) (finally (swap! a conj 2))) @a)", "[1 2]");
    gives(
        "(let [a (atom [])] (try (try (/ 1 0) (finally (swap! a conj :cleaned))) (catch Exception e (swap! a conj :caught))) @a)",
        "[:cleaned :caught]",
    );
    gives("(+ 1 (try (+ 1 (/ 1 0)) (catch Exception e 41)))", "42");
    fails("(try (map (fn [x] (/ 1 x)) [1 0]) (catch Exception e :never))", "arithmetic_error");
}

#[test]
fn an_error_inside_a_lazy_sequence_comes_when_it_is_reached() {
    gives("(first (map (fn [x] (/ 10 x)) [5 0 1]))", "2");
    fails("(doall (map (fn [x] (/ 10 x)) [5 0 1]))", "arithmetic_error");
    gives(
        "(let [s (map (fn [x] (/ 10 x)) [5 0])] [(first s) (try (second s) (catch ArithmeticException e :later))])",
        "[2 :later]",
    );
    gives(
        "(let [s (map (fn [x] (/ 10 x)) [0])] [(try (first s) (catch Exception e 1)) (try (first s) (catch Exception e 2))])",
        "[1 2]",
    );
    fails("(throw (ex-info \"out\" {}))", "uncaught_exception");
    fails("(throw 5)", "type_error");
    fails("(assert (= 1 2))", "assertion_error");
    gives(
        "(try (assert false \"why\") (catch AssertionError e (ex-message e)))",
        "\"Assert failed: why\\nfalse\"",
    );
    gives("(try (assert false) (catch Exception e 1) (catch Throwable e 2))", "2");
}

#[test]
fn definitions() {
    gives("(def x 5) (inc x)", "6");
    gives("(def x \"doc\" 5) x", "5");
    gives("(defn f \"doc\" [x] (* x 2)) (f 4)", "8");
    gives("(defn f ([] (f 1)) ([x] (+ x 1)) ([x & more] [x more])) [(f) (f 5) (f 1 2 3)]", "[2 6 [1 (2 3)]]");
    gives("(declare g) (defn f [] (g)) (defn g [] 7) (f)", "7");
    fails("(defn f [] (g)) (defn g [] 7) (f)", "unbound_var");
    fails("(declare x) x", "unbound_var");
    gives("(defonce a 1) (defonce a 2) a", "1");
    gives("(if false (def a 1)) (defonce a 2) a", "2");
    gives("(defn set-up [n] (defonce a n)) (set-up 1) (set-up 2) a", "1");
    gives("(defn f [x] {:pre [(pos? x)] :post [(> % x)]} (inc x)) (f 1)", "2");
    fails("(defn f [x] {:pre [(pos? x)]} x) (f -1)", "assertion_error");
    gives("(def inc dec) (inc 5)", "4");
    gives("(#'inc 1)", "2");
    gives("(def f inc) (#'f 1)", "2");
    fails("(def tool/x 1)", "invalid_form");
    fails("(defmacro m [] 1)", "unsupported");
    gives("(comment (this is (not read)))", "nil");
    gives("(quote (a b))", "(a b)");
    gives("(require '[clojure.string :as s]) (s/upper-case \"a\")", "\"A\"");
    gives("(ns my.app (:require [clojure.set :as cs])) (cs/union #{1} #{2})", "#{1 2}");
}

#[test]
fn functions() {
    gives("((fn fact [n] (if (< n 2) 1 (* n (fact (dec n))))) 10)", "3628800");
    gives("(#(+ %1 %2) 1 2)", "3");
    gives("(#(apply + %&) 1 2 3)", "6");
    gives("((fn [& xs] xs))", "nil");
    gives("((fn [a & [b c]] [a b c]) 1 2)", "[1 2 nil]");
    gives("((fn [& {:keys [a b] :or {b 9}}] [a b]) :a 1)", "[1 9]");
    gives("((fn [& {:keys [a]}] a) {:a 3})", "3");
    fails("((fn [x] x))", "arity_error");
    fails("((fn [x] x) 1 2)", "arity_error");
    fails("(inc)", "arity_error");
    fails("(5 3)", "not_callable");
    fails("(nil)", "not_callable");
    gives("(map {:a 1} [:a :b])", "(1 nil)");
    gives("(#{1 2} 2)", "2");
    gives("([:a :b] 1)", ":b");
    fails("([:a] 5)", "index_out_of_bounds");
    gives("(:k {:k 1})", "1");
    gives("(:k nil 7)", "7");
    gives("('a {'a 1})", "1");
    fails("(fn [a a2 & b c] 1)", "invalid_form");
    fails("(fn ([a] 1) ([b] 2))", "invalid_form");
    gives("(let [f (fn [x] (fn [y] (+ x y)))] ((f 1) 2))", "3");
    gives("(let [fs (for [i (range 3)] (fn [] i))] (map (fn [f] (f)) fs))", "(0 1 2)");
}

#[test]
fn destructuring() {
    gives("(let [[a b & r :as all] [1 2 3 4]] [a b r all])", "[1 2 (3 4) [1 2 3 4]]");
    gives("(let [[a [b c]] [1 [2 3]]] [a b c])", "[1 2 3]");
    gives("(let [[a b] nil] [a b])", "[nil nil]");
    gives("(let [[a & r] [1]] r)", "nil");
    gives("(let [[a b] \"xy\"] [a b])", "[\\x \\y]");
    gives("(let [[a b] (map inc [1 2])] [a b])", "[2 3]");
    fails("(let [[a] {:b 1}] a)", "type_error");
    fails("(let [[a] 5] a)", "type_error");
    gives("(let [{:keys [a b] :or {b 2} :as m} {:a 1}] [a b m])", "[1 2 {:a 1}]");
    gives("(let [{x :a {y :c} :b} {:a 1 :b {:c 2}}] [x y])", "[1 2]");
    gives("(let [{:strs [a] :syms [b]} {\"a\" 1 'b 2}] [a b])", "[1 2]");
    gives("(let [{:keys [n/a]} {:n/a 1}] a)", "1");
    gives("(let [{:n/keys [a b]} {:n/a 1 :n/b 2}] [a b])", "[1 2]");
    gives("(let [{:keys [a]} nil] a)", "nil");
    gives("(let [{a 0 b 1} [7 8]] [a b])", "[7 8]");
    gives("(map (fn [[k v]] [v k]) {:a 1})", "([1 :a])");
}
