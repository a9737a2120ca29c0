;; Sequences: functions built on seq, first, rest and the lazy frames.

(defn next [s] (seq (step* s)))
(defn second [s] (first (next s)))
(defn ffirst [s] (first (first s)))
(defn fnext [s] (first (next s)))
(defn nfirst [s] (next (first s)))
(defn nnext [s] (next (next s)))
(defn drop
  ([n] (fn [rf]
         (let [left (atom n)]
           (fn ([] (rf)) ([r] (rf r))
               ([r x] (if (pos? (deref left)) (do (swap! left dec) r) (rf r x)))))))
  ([n coll] (lazy-seq (skip* n coll))))
(defn drop-while
  ([p] (fn [rf]
         (let [dropping (atom true)]
           (fn ([] (rf)) ([r] (rf r))
               ([r x] (if (and (deref dropping) (p x)) r (do (reset! dropping false) (rf r x))))))))
  ([p coll]
   (lazy-seq (loop [s (seq coll)] (if (and s (p (first s))) (recur (next s)) s)))))
(defn nthrest [coll n] (if (pos? n) (skip* n coll) coll))
(defn nthnext [coll n] (seq (skip* n coll)))
(defn split-at [n coll] [(take n coll) (drop n coll)])
(defn split-with [p coll] [(take-while p coll) (drop-while p coll)])
(defn drop-last
  ([coll] (drop-last 1 coll))
  ([n coll] (map (fn [x _] x) coll (drop n coll))))
(defn range
  ([] (range* 0 nil 1))
  ([end] (range 0 end 1))
  ([start end] (range start end 1))
  ([start end step]
   (if (and (int? start) (int? end) (int? step))
     (range* start end step)
     (if (zero? step)
       (if (= start end) () (repeat start))
       (if (or (and (pos? step) (>= start end)) (and (neg? step) (<= start end)))
         ()
         (if (pos? step)
           (take-while (fn [x] (< x end)) (iterate (fn [x] (+ x step)) start))
           (take-while (fn [x] (> x end)) (iterate (fn [x] (+ x step)) start))))))))
(defn repeatedly
  ([f] (lazy-seq (cons (f) (repeatedly f))))
  ([n f] (take n (repeatedly f))))
;; Each step is taken when its value is used.
(defn iteration [step & {:keys [somef vf kf initk] :or {somef some? vf identity kf identity}}]
  (let [from (fn from [found]
               (if (somef found)
                 (cons (vf found)
                       (lazy-seq (let [k (kf found)] (if (nil? k) nil (from (step k))))))
                 nil))]
    (lazy-seq (from (step initk)))))
(defn mapcat
  ([f] (comp (map f) (fn [rf]
                       (fn ([] (rf)) ([r] (rf r))
                           ([r xs] (reduce (fn [r x] (let [r (rf r x)] (if (reduced? r) (reduced r) r))) r xs))))))
  ([f & colls] (apply mapcat* f colls)))
(defn for-concat* [f coll]
  (lazy-seq
    (loop [s (seq coll)]
      (if s
        (let [found (f (first s))]
          (if (false? found)
            nil
            (let [found (seq found)]
              (if found (concat found (for-concat* f (step* s))) (recur (next s))))))
        nil))))
(defn mapv
  ([f coll] (mapv* f coll))
  ([f a b] (vec (map f a b)))
  ([f a b & more] (vec (apply map f a b more))))
(defn filterv [p coll] (filterv* p coll))
(defn run! [f coll] (run!* f coll))
(defn keep-indexed
  ([f] (comp (map-indexed f) (filter some?)))
  ([f coll] (filter some? (map-indexed f coll))))
(defn interleave
  ([] ())
  ([a] (lazy-seq a))
  ([a b]
   (lazy-seq
     (let [x (seq a) y (seq b)]
       (if (and x y)
         (cons (first x) (cons (first y) (interleave (step* x) (step* y))))
         nil))))
  ([a b & more]
   (lazy-seq
     (let [ss (mapv* seq (cons a (cons b more)))]
       (if (every? identity ss)
         (concat (mapv* first ss) (apply interleave (mapv* step* ss)))
         nil)))))
(defn interpose
  ([sep] (fn [rf]
           (let [started (atom false)]
             (fn ([] (rf)) ([r] (rf r))
                 ([r x] (if (deref started)
                          (let [r (rf r sep)] (if (reduced? r) r (rf r x)))
                          (do (reset! started true) (rf r x))))))))
  ([sep coll] (drop 1 (mapcat* (fn [x] [sep x]) coll))))
(defn partition
  ([n coll] (partition n n coll))
  ([n step coll]
   (lazy-seq
     (let [s (seq coll)]
       (if s
         (let [p (doall (take n s))]
           (if (= n (count p)) (cons p (partition n step (skip* step s))) nil))
         nil))))
  ([n step pad coll]
   (lazy-seq
     (let [s (seq coll)]
       (if s
         (let [p (doall (take n s))]
           (if (= n (count p))
             (cons p (partition n step pad (skip* step s)))
             (list (take n (concat p pad)))))
         nil)))))
(defn partition-all
  ([n] (fn [rf]
         (let [held (atom [])]
           (fn ([] (rf))
               ([r] (let [left (deref held)]
                      (reset! held [])
                      (rf (if (seq left) (unreduced (rf r left)) r))))
               ([r x] (swap! held conj x)
                      (if (= n (count (deref held)))
                        (let [full (deref held)] (reset! held []) (rf r full))
                        r))))))
  ([n coll] (partition-all n n coll))
  ([n step coll]
   (lazy-seq
     (let [s (seq coll)]
       (if s
         (cons (doall (take n s)) (partition-all n step (skip* step s)))
         nil)))))
(defn partition-by
  ([f] (fn [rf]
         (let [held (atom []) last-key (atom [])]
           (fn ([] (rf))
               ([r] (let [left (deref held)]
                      (reset! held [])
                      (rf (if (seq left) (unreduced (rf r left)) r))))
               ([r x] (let [k (f x) before (deref last-key)]
                        (reset! last-key [k])
                        (if (or (empty? before) (= before [k]))
                          (do (swap! held conj x) r)
                          (let [full (deref held)] (reset! held [x]) (rf r full)))))))))
  ([f coll]
   (lazy-seq
     (let [s (seq coll)]
       (if s
         (let [x (first s)
               k (f x)
               run (doall (cons x (take-while (fn [y] (= k (f y))) (next s))))]
           (cons run (partition-by f (lazy-seq (skip* (count run) s)))))
         nil)))))
(defn partitionv
  ([n coll] (map vec (partition n coll)))
  ([n step coll] (map vec (partition n step coll)))
  ([n step pad coll] (map vec (partition n step pad coll))))
(defn partitionv-all
  ([n coll] (map vec (partition-all n coll)))
  ([n step coll] (map vec (partition-all n step coll))))
(defn splitv-at [n coll] [(vec (take n coll)) (drop n coll)])
(defn take-nth
  ([n] (fn [rf]
         (let [at (atom -1)]
           (fn ([] (rf)) ([r] (rf r))
               ([r x] (if (zero? (rem (swap! at inc) n)) (rf r x) r))))))
  ([n coll]
   (lazy-seq (let [s (seq coll)] (if s (cons (first s) (take-nth n (skip* n s))) nil)))))
(defn distinct-step* [seen s]
  (lazy-seq
    (loop [s (seq s) seen seen]
      (if s
        (let [x (first s)]
          (if (contains? seen x)
            (recur (next s) seen)
            (cons x (distinct-step* (conj seen x) (step* s)))))
        nil))))
(defn distinct
  ([] (fn [rf]
        (let [seen (atom #{})]
          (fn ([] (rf)) ([r] (rf r))
              ([r x] (if (contains? (deref seen) x) r (do (swap! seen conj x) (rf r x))))))))
  ([coll]
   (if (or (map? coll) (set? coll))
     (nth coll 0)
     (distinct-step* #{} coll))))
(defn dedupe-step* [before s]
  (lazy-seq
    (loop [s (seq s)]
      (if s
        (let [x (first s)]
          (if (= [x] before)
            (recur (next s))
            (cons x (dedupe-step* [x] (step* s)))))
        nil))))
(defn dedupe
  ([] (fn [rf]
        (let [before (atom [])]
          (fn ([] (rf)) ([r] (rf r))
              ([r x] (if (= (deref before) [x]) r (do (reset! before [x]) (rf r x))))))))
  ([coll] (dedupe-step* [] coll)))
(defn reductions
  ([f coll]
   (lazy-seq
     (let [s (seq coll)]
       (if s (reductions f (first s) (step* s)) (list (f))))))
  ([f init coll]
   (if (reduced? init)
     (list (deref init))
     (cons init
       (lazy-seq
         (let [s (seq coll)]
           (if s (reductions f (f init (first s)) (step* s)) nil)))))))
(defn tree-seq [branch? children root]
  (let [walk (fn walk [node]
               (lazy-seq
                 (cons node (if (branch? node) (mapcat* walk (children node)) nil))))]
    (walk root)))
(defn list* 
  ([args] (seq args))
  ([a args] (cons a args))
  ([a b & more]
   (let [all (cons a (cons b more))]
     (concat (butlast all) (last all)))))
(defn replace
  ([smap] (map (fn [x] (let [e (find smap x)] (if e (val e) x)))))
  ([smap coll]
   (if (vector? coll)
     (mapv* (fn [x] (let [e (find smap x)] (if e (val e) x))) coll)
     (map (fn [x] (let [e (find smap x)] (if e (val e) x))) coll))))
(defn sort
  ([coll] (sort* coll))
  ([comparator coll]
   (if (nil? comparator)
     (sort* coll)
     (let [items (sort-items* coll)] (sort-with* comparator items items)))))
(defn sort-by
  ([f coll]
   (let [items (sort-items* coll)] (sort-keyed* (mapv* f items) items)))
  ([f comparator coll]
   (let [items (sort-items* coll)] (sort-with* comparator items (mapv* f items)))))
(defn max-key
  ([f x] x)
  ([f x y] (if (> (f x) (f y)) x y))
  ([f x y & more]
   (loop [best x best-key (f x) left (cons y more)]
     (if (seq left)
       (let [next-key (f (first left))]
         (if (>= next-key best-key)
           (recur (first left) next-key (rest left))
           (recur best best-key (rest left))))
       best))))
(defn min-key
  ([f x] x)
  ([f x y] (if (< (f x) (f y)) x y))
  ([f x y & more]
   (loop [best x best-key (f x) left (cons y more)]
     (if (seq left)
       (let [next-key (f (first left))]
         (if (<= next-key best-key)
           (recur (first left) next-key (rest left))
           (recur best best-key (rest left))))
       best))))
(defn bounded-count [n coll] (if (counted? coll) (count coll) (count (take n coll))))
;; The state of a transducer is in its reducing function, and each cell is realised once, so that the items of
;; a source are taken one by one, as they are needed.
(defn sequence-step* [rf call s]
  (lazy-seq
    (loop [s (seq s)]
      (if s
        (let [out (call rf (first s))]
          (if (reduced? out)
            (let [out (deref out)] (if (halted* out) nil (seq (rf out))))
            (if (seq out)
              (concat out (sequence-step* rf call (step* s)))
              (recur (next s)))))
        (seq (rf []))))))
(defn sequence
  ([coll] (if (seq? coll) coll (or (seq coll) ())))
  ([xform coll]
   (or (seq (sequence-step* (xform (fn ([r] r) ([r x] (conj r x)))) (fn [rf x] (rf [] x)) coll)) ()))
  ([xform coll & colls]
   (or (seq (sequence-step* (xform (fn ([r] r) ([r x] (conj r x))))
                            (fn [rf xs] (apply rf [] xs))
                            (apply map vector coll colls)))
       ())))
(defn flatten [x]
  (or (flatten* x)
      (filter (fn [y] (not (sequential? y))) (rest (tree-seq sequential? seq x)))))
(defn zipmap [ks vs] (into* {} (map zip-entry* ks vs)))
(defn subseq-part* [sc keep?]
  (seq (if (map? sc)
         (filter (fn [e] (keep? (key e))) sc)
         (if (set? sc) (filter keep? sc) (throw (IllegalArgumentException. "subseq: expected a sorted map or set"))))))
;; A comparator answers with a number, or with a boolean: whether the first is before the second.
(defn comparison* [comparator a b]
  (let [found (comparator a b)]
    (if (boolean? found)
      (if found -1 (if (comparator b a) 1 0))
      (long found))))
(defn order-of* [sc] (let [c (sorted-comparator* sc)] (if (nil? c) compare (fn [a b] (comparison* c a b)))))
(defn subseq
  ([sc test k] (let [order (order-of* sc)] (subseq-part* sc (fn [x] (test (order x k) 0)))))
  ([sc from-test from to-test to]
   (let [order (order-of* sc)]
     (subseq-part* sc (fn [x] (and (from-test (order x from) 0) (to-test (order x to) 0)))))))
(defn rsubseq
  ([sc test k] (seq (reverse (subseq sc test k))))
  ([sc from-test from to-test to] (seq (reverse (subseq sc from-test from to-test to)))))
