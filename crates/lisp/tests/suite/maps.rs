//! Maps, sets and vectors.

use crate::support::{fails, gives};

#[test]
fn looking_up() {
    gives(
        "[(get {:a 1} :a) (get {:a 1} :b) (get {:a 1} :b 2) (get nil :a) (get [7 8] 1) (get #{1} 1) (get \"ab\" 0) (get 5 1)]",
        "[1 nil 2 nil 8 1 \\a nil]",
    );
    gives("[(get-in {:a {:b 1}} [:a :b]) (get-in {:a 1} [:x :y] :d) (get-in [[1 2]] [0 1])]", "[1 :d 2]");
    gives(
        "[(contains? {:a nil} :a) (contains? [1 2] 1) (contains? #{1} 2) (contains? nil 1)]",
        "[true true false false]",
    );
    fails("(contains? '(1 2) 1)", "type_error");
    gives(
        "[(find {:a 1} :a) (find {:a 1} :b) (key (first {:a 1})) (val (first {:a 1}))]",
        "[[:a 1] nil :a 1]",
    );
    fails("(key [1 2])", "type_error");
    gives("[(keys {:b 1 :a 2}) (vals {:b 1 :a 2}) (keys {}) (vals nil)]", "[(:a :b) (2 1) nil nil]");
    gives("(select-keys {:a 1 :b 2} [:a :c])", "{:a 1}");
}

#[test]
fn changing() {
    gives("(assoc {:a 1} :b 2 :a 3)", "{:a 3, :b 2}");
    gives("(assoc nil :a 1)", "{:a 1}");
    gives("(assoc [1 2] 0 :x 2 :y)", "[:x 2 :y]");
    fails("(assoc [1] 5 :x)", "index_out_of_bounds");
    fails("(assoc {} :a)", "arity_error");
    fails("(assoc 5 :a 1)", "type_error");
    gives("(dissoc {:a 1 :b 2} :a :z)", "{:b 2}");
    gives("(assoc-in {} [:a :b] 1)", "{:a {:b 1}}");
    gives("(update {:a 1} :a + 10)", "{:a 11}");
    gives("(update {} :n (fnil inc 0))", "{:n 1}");
    gives("(update-in {:a {:b 1}} [:a :b] inc)", "{:a {:b 2}}");
    gives("(merge {:a 1} nil {:b 2} {:a 3})", "{:a 3, :b 2}");
    gives("[(merge) (merge nil nil) (merge nil {:a 1})]", "[nil nil {:a 1}]");
    gives("(merge-with + {:a 1 :b 1} {:a 2})", "{:a 3, :b 1}");
    gives("(zipmap [:a :b] [1 2 3])", "{:a 1, :b 2}");
    gives("[(update-vals {:a 1} inc) (update-keys {:a 1} name)]", "[{:a 2} {\"a\" 1}]");
    gives("[(disj #{1 2} 1) (peek [1 2]) (pop [1 2]) (peek '(1 2)) (pop '(1 2))]", "[#{2} 2 [1] 1 (2)]");
    fails("(pop [])", "invalid_argument");
    gives("(subvec [1 2 3 4] 1 3)", "[2 3]");
    fails("(subvec [1 2] 1 9)", "index_out_of_bounds");
    gives("(into (sorted-map) {:b 1 :a 2})", "{:a 2, :b 1}");
    gives(
        "(let [v (vec (range 100)) w (assoc v 50 :x)] [(nth v 50) (nth w 50) (count (conj v 1))])",
        "[50 :x 101]",
    );
    gives(
        "(let [m (zipmap (range 100) (range 100)) n (dissoc m 5)] [(count m) (count n) (get m 5)])",
        "[100 99 5]",
    );
}

#[test]
fn equality_and_order() {
    gives(
        "[(= 1 1.0) (== 1 1.0) (= [1 2] '(1 2)) (= {:a 1} {:a 1}) (= #{1 2} #{2 1}) (= \\a \"a\") (= nil false)]",
        "[false true true true true false false]",
    );
    gives("[(= (map inc [1 2]) [2 3]) (= [1 [2]] (list 1 (map inc [1])))]", "[true true]");
    gives("(= ##NaN ##NaN)", "false");
    gives(
        "#{nil true 1 1.0 \\a \"a\" :a 'a [1] {:a 1} #{1}}",
        "#{nil true 1 1.0 \\a \"a\" :a a [1] {:a 1} #{1}}",
    );
    gives("{3 :c 1 :a 2 :b}", "{1 :a, 2 :b, 3 :c}");
    gives(
        "[(compare 1 2) (compare \"b\" \"a\") (compare nil 1) (compare [1 2] [1 3]) (compare [9] [1 2])]",
        "[-1 1 -1 -1 -1]",
    );
    fails("(compare 1 \"a\")", "type_error");
    gives("(get {[1 2] :v} (map inc [0 1]))", ":v");
    gives("(contains? #{(map inc [0 1])} [1 2])", "true");
    gives("(= inc inc)", "true");
    gives("(let [f (fn [] 1)] [(= f f) (= f (fn [] 1))])", "[true false]");
}

#[test]
fn sets_and_walks() {
    gives(
        "[(clojure.set/union #{1} #{2}) (clojure.set/intersection #{1 2} #{2 3}) (clojure.set/difference #{1 2} #{2})]",
        "[#{1 2} #{2} #{1}]",
    );
    gives("[(clojure.set/subset? #{1} #{1 2}) (clojure.set/superset? #{1 2} #{1})]", "[true true]");
    gives("(clojure.set/rename-keys {:a 1} {:a :b})", "{:b 1}");
    gives("(clojure.set/map-invert {:a 1})", "{1 :a}");
    gives("(clojure.set/join #{{:id 1 :n :a}} #{{:id 1 :v 2}})", "#{{:id 1, :n :a, :v 2}}");
    gives("(clojure.walk/postwalk (fn [x] (if (number? x) (inc x) x)) {:a [1 {:b 2}]})", "{:a [2 {:b 3}]}");
    gives("(clojure.walk/prewalk (fn [x] (if (vector? x) (vec (rest x)) x)) [1 [2 3]])", "[[3]]");
    gives("(clojure.walk/keywordize-keys {\"a\" {\"b\" 1}})", "{:a {:b 1}}");
    gives("(clojure.walk/stringify-keys {:a 1})", "{\"a\" 1}");
}

#[test]
fn rows() {
    gives("[(sum-by :a [{:a 1} {:a 2} {}]) (avg-by :a [{:a 1} {:a 2}]) (sum-by :a [])]", "[3 1.5 0]");
    gives("[(min-by :a [{:a 2} {:a 1}]) (max-by :a [{:a 2} {:a 1}]) (max-by :a [])]", "[{:a 1} {:a 2} nil]");
    gives("(distinct-by :a [{:a 1 :b 1} {:a 1 :b 2}])", "[{:a 1, :b 1}]");
    gives("(pluck :a [{:a 1} {:b 2}])", "(1 nil)");
}

#[test]
fn functions_on_functions() {
    gives("((comp inc (partial * 2)) 5)", "11");
    gives("((comp) 1)", "1");
    gives("((comp str inc +) 1 2)", "\"4\"");
    gives("((juxt :a count) {:a 1})", "[1 1]");
    gives("((complement odd?) 2)", "true");
    gives("((every-pred odd? pos?) 1 3)", "true");
    gives("((some-fn even? neg?) 1 -1)", "true");
    gives(
        "[((some-fn even? neg?) 1) ((some-fn :a :b) {:b 2}) ((some-fn even?)) ((some-fn :a) {})]",
        "[false 2 nil nil]",
    );
    gives("(map (constantly 1) [1 2])", "(1 1)");
    gives("(let [n (atom 0) f (memoize (fn [x] (swap! n inc) (* x x)))] [(f 2) (f 2) @n])", "[4 4 1]");
    gives("(max-key count [1] [1 2])", "[1 2]");
    gives(
        "(let [a (atom {:n 1})] [(swap! a update :n inc) (reset! a 5) @a (swap-vals! a inc)])",
        "[{:n 2} 5 5 [5 6]]",
    );
    gives("(trampoline (fn [] (fn [] 5)))", "5");
}
