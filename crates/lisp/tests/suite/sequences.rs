//! Sequences, mainly lazy ones.

use crate::support::{fails, gives};

#[test]
fn parts_of_sequences() {
    gives("[(first [1 2]) (first nil) (first \"ab\") (first {:a 1}) (first ())]", "[1 nil \\a [:a 1] nil]");
    gives("[(rest [1 2]) (rest [1]) (rest nil) (next [1]) (next [1 2])]", "[(2) () () nil (2)]");
    gives("[(seq []) (seq [1]) (seq \"\") (seq nil) (seq (map inc []))]", "[nil (1) nil nil nil]");
    gives("[(last [1 2 3]) (last nil) (butlast [1 2]) (butlast [1])]", "[3 nil (1) nil]");
    gives(
        "[(nth [1 2] 1) (nth [1] 5 :d) (nth nil 0) (nth (map inc [1 2]) 1) (nth \"abc\" 1)]",
        "[2 :d nil 3 \\b]",
    );
    fails("(nth [1] 5)", "index_out_of_bounds");
    fails("(nth (range 3) 5)", "index_out_of_bounds");
    fails("(first 5)", "type_error");
    fails("(seq 5)", "type_error");
    gives(
        "[(count nil) (count [1 2]) (count {:a 1}) (count \"abc\") (count (filter odd? (range 10)))]",
        "[0 2 1 3 5]",
    );
    fails("(count 5)", "type_error");
    gives("(cons 1 [2 3])", "(1 2 3)");
    gives("(conj [1] 2 3)", "[1 2 3]");
    gives("(conj '(1) 2 3)", "(3 2 1)");
    gives("(conj nil 1)", "(1)");
    gives("(conj {:a 1} [:b 2] {:c 3})", "{:a 1, :b 2, :c 3}");
    gives("(conj #{1} 1 2)", "#{1 2}");
}

#[test]
fn lazy_sequences_may_be_infinite() {
    gives("(take 3 (range))", "(0 1 2)");
    gives("(take 3 (iterate (fn [x] (* 2 x)) 1))", "(1 2 4)");
    gives("(take 3 (repeat :x))", "(:x :x :x)");
    gives("(take 5 (cycle [1 2]))", "(1 2 1 2 1)");
    gives("(take 2 (repeatedly (constantly 7)))", "(7 7)");
    gives("(take 3 (map + (range) (range 10 20)))", "(10 12 14)");
    gives("(first (filter (fn [x] (> x 100)) (range)))", "101");
    gives("(take 5 ((fn fib [a b] (lazy-seq (cons a (fib b (+ a b))))) 0 1))", "(0 1 1 2 3)");
    gives("(take 3 (lazy-cat [1] (lazy-seq [2]) (range)))", "(1 2 0)");
    gives("(def naturals (iterate inc 0)) (def result (take 2 naturals)) (def naturals nil) result", "(0 1)");
    gives("(nth (iterate inc 0) 5000)", "5000");
    fails("(range)", "size_exceeded");
    fails("(count (range))", "size_exceeded");
    fails("(def xs (iterate inc 0))", "memory_exceeded");
    fails("(def xs (repeat 1))", "size_exceeded");
}

#[test]
fn sequences_are_realised_one_item_at_a_time() {
    gives("(let [n (atom 0) s (map (fn [x] (swap! n inc) x) (range 100))] (first s) @n)", "1");
    gives(
        "(let [n (atom 0) s (map (fn [x] (swap! n inc) x) (range 100))] (doall (take 3 s)) (doall (take 3 s)) @n)",
        "3",
    );
    gives("(let [n (atom 0)] (some (fn [x] (swap! n inc) (> x 2)) (range 100)) @n)", "4");
    gives("(let [n (atom 0)] (doall (take-while (fn [x] (swap! n inc) (< x 2)) (range))) @n)", "3");
}

#[test]
fn a_long_row_of_cells_that_give_cells_needs_no_stack() {
    gives(
        "(defn my-filter [p xs] (lazy-seq (when-let [s (seq xs)] (if (p (first s)) (cons (first s) (my-filter p (rest s))) (my-filter p (rest s))))))
         (first (my-filter (fn [x] (> x 20000)) (range)))",
        "20001",
    );
}

#[test]
fn taking_apart() {
    gives("(take 2 [1 2 3])", "(1 2)");
    gives("(take -1 [1])", "()");
    gives("(drop 1 [1 2 3])", "(2 3)");
    gives("(drop 5 [1])", "()");
    gives("(take-while neg? [-1 2 -3])", "(-1)");
    gives("(drop-while neg? [-1 2 -3])", "(2 -3)");
    gives("[(take-last 2 [1 2 3]) (drop-last [1 2 3]) (drop-last 2 [1 2 3])]", "[(2 3) (1 2) (1)]");
    gives("(split-at 1 [1 2 3])", "[(1) (2 3)]");
    gives("(split-with odd? [1 3 4 5])", "[(1 3) (4 5)]");
    gives("(partition 2 [1 2 3 4 5])", "((1 2) (3 4))");
    gives("(partition 2 1 [1 2 3])", "((1 2) (2 3))");
    gives("(partition 3 3 [:p] [1 2 3 4])", "((1 2 3) (4 :p))");
    gives("(partition-all 2 [1 2 3])", "((1 2) (3))");
    gives("(partition-by odd? [1 3 2 4 5])", "((1 3) (2 4) (5))");
    gives("(take-nth 2 [1 2 3 4 5])", "(1 3 5)");
    gives("[(distinct [1 2 1 3]) (dedupe [1 1 2 1])]", "[(1 2 3) (1 2 1)]");
    gives("(interleave [1 2] [:a :b :c])", "(1 :a 2 :b)");
    gives("(interpose :x [1 2 3])", "(1 :x 2 :x 3)");
    gives("(flatten [1 [2 [3 (list 4)]] #{5}])", "(1 2 3 4 #{5})");
    gives("(reductions + [1 2 3])", "(1 3 6)");
    gives("(tree-seq vector? seq [1 [2]])", "([1 [2]] 1 [2] 2)");
    gives("(mapcat (fn [x] [x x]) [1 2])", "(1 1 2 2)");
    gives("(keep (fn [x] (when (odd? x) (* x x))) [1 2 3])", "(1 9)");
    gives("(keep-indexed (fn [i x] (when (odd? i) x)) [:a :b :c :d])", "(:b :d)");
    gives("(map-indexed vector [:a :b])", "([0 :a] [1 :b])");
    gives("(reverse [1 2 3])", "(3 2 1)");
    gives("(concat [1] nil '(2) #{3})", "(1 2 3)");
}

#[test]
fn folding() {
    gives("(reduce + [1 2 3])", "6");
    gives("(reduce + [])", "0");
    gives("(reduce + 10 [])", "10");
    gives("(reduce (fn [a x] (if (> x 2) (reduced :stop) (+ a x))) 0 (range))", ":stop");
    gives("(reduce conj [] (map inc (range 3)))", "[1 2 3]");
    gives("(reduce-kv (fn [a k v] (assoc a v k)) {} {:a 1 :b 2})", "{1 :a, 2 :b}");
    gives("(apply + 1 2 [3 4])", "10");
    gives("(apply max (range 5))", "4");
    gives("(into [] (map inc) [1 2])", "[2 3]");
    gives("(into #{} [1 1 2])", "#{1 2}");
    gives("(into {} (map (fn [x] [x (* x x)])) [1 2])", "{1 1, 2 4}");
    gives("(transduce (comp (filter odd?) (map inc)) + [1 2 3])", "6");
    gives("(into [] (comp (take 2) (map inc)) (range))", "[1 2]");
    gives("(sequence (map inc) [1 2])", "(2 3)");
    gives("(into [] (partition-all 2) [1 2 3])", "[[1 2] [3]]");
    gives("(some even? [1 2])", "true");
    gives("(some #{3} [1 2])", "nil");
    gives("[(every? odd? []) (not-any? odd? [2]) (not-every? odd? [1 2])]", "[true true true]");
    gives("(group-by odd? [1 2 3])", "{false [2], true [1 3]}");
    gives("(frequencies [:a :b :a])", "{:a 2, :b 1}");
    fails("(reduce + [1 nil])", "type_error");
}

#[test]
fn sorting() {
    gives("(sort [3 1 2])", "(1 2 3)");
    gives("(sort > [3 1 2])", "(3 2 1)");
    gives("(sort (fn [a b] (compare b a)) [1 2 3])", "(3 2 1)");
    gives("(sort-by :a [{:a 2} {:a 1}])", "({:a 1} {:a 2})");
    gives("(sort-by :a > [{:a 1} {:a 2}])", "({:a 2} {:a 1})");
    gives("(sort-by (juxt :a :b) [{:a 1 :b 2} {:a 1 :b 1}])", "({:a 1, :b 1} {:a 1, :b 2})");
    gives("(sort-by first (fn [a b] (< a b)) [[2 :x] [1 :y] [2 :z]])", "([1 :y] [2 :x] [2 :z])");
    gives("(sort [])", "()");
    fails("(sort [1 :a])", "type_error");
    gives("(sort [nil 1])", "(nil 1)");
    gives("(reverse (sort (map (fn [x] (mod (* x 7919) 101)) (range 5))))", "(82 63 41 22 0)");
}

#[test]
fn an_index_beyond_any_length() {
    fails("(nth [1 2] 4294967296)", "index_out_of_bounds");
    fails("(nth [1 2] 9223372036854775808)", "invalid_argument");
    fails("(nth [1 2] 9223372036854775808 :none)", "invalid_argument");
    fails("(nth '(1 2) 9223372036854775808)", "invalid_argument");
    gives("[(nth [1 2] 1N) (nth [1 2] 1.9) (nth [1 2] 3/2) (nth [1 2] 7 :none)]", "[2 2 2 :none]");
}

#[test]
fn a_function_that_fails_is_tried_again_where_it_failed() {
    // Items computed ahead stay valid, and so do later ones, whatever the source of the items.
    for source in [
        "[\"1\" \"2\" \"x\" \"4\"]",
        "(list \"1\" \"2\" \"x\" \"4\")",
        "(cons \"1\" [\"2\" \"x\" \"4\"])",
        "(concat [\"1\" \"2\"] (rest [\"0\" \"x\" \"4\"]))",
        "(rest [\"0\" \"1\" \"2\" \"x\" \"4\"])",
        "(map str [1 2 'x 4])",
    ] {
        let program = format!(
            "(let [s (map (fn [t] (Integer/parseInt t)) {source}) again (fn [] (try (nth s 2) (catch Exception e :failed)))]
               [(first s) (second s) (again) (again) (take 2 s)])"
        );
        gives(&program, "[1 2 :failed :failed (1 2)]");
    }
    gives(
        "(map :id (filter (fn [r] (:ok r)) (cons {:id 0 :ok true} (rest [{:id 1 :ok true} {:id 2} {:id 3 :ok true}]))))",
        "(0 3)",
    );
    gives("(map :id (remove :ok (concat [{:id 0}] (rest [{:id 1} {:id 2 :ok 1} {:id 3}]))))", "(0 3)");
}
