;; Functions on functions, and small functions that the rest of the prelude uses.

(defn identity [x] x)
(defn constantly [x] (fn [& _] x))
(defn complement [f]
  (fn ([] (not (f))) ([a] (not (f a))) ([a b] (not (f a b))) ([a b & more] (not (apply f a b more)))))
(defn comp
  ([] identity)
  ([f] f)
  ([f g]
   (fn ([] (f (g))) ([a] (f (g a))) ([a b] (f (g a b))) ([a b & more] (f (apply g a b more)))))
  ([f g & more]
   (let [fs (reverse (cons f (cons g more)))]
     (fn [& args]
       (loop [value (apply (first fs) args) left (seq (rest fs))]
         (if left (recur ((first left) value) (seq (rest left))) value))))))
(defn partial
  ([f] f)
  ([f a] (fn ([] (f a)) ([x] (f a x)) ([x y] (f a x y)) ([x y & more] (apply f a x y more))))
  ([f a b] (fn ([] (f a b)) ([x] (f a b x)) ([x y] (f a b x y)) ([x y & more] (apply f a b x y more))))
  ([f a b & given] (fn [& args] (apply f a b (concat given args)))))
(defn juxt
  ([f] (fn ([] [(f)]) ([a] [(f a)]) ([a & more] [(apply f a more)])))
  ([f g] (fn ([] [(f) (g)]) ([a] [(f a) (g a)]) ([a & more] [(apply f a more) (apply g a more)])))
  ([f g & more]
   (let [fs (cons f (cons g more))]
     (fn [& args] (mapv* (fn [f] (apply f args)) fs)))))
(defn fnil
  ([f a]
   (fn ([x] (f (if (nil? x) a x)))
       ([x y] (f (if (nil? x) a x) y))
       ([x y & more] (apply f (if (nil? x) a x) y more))))
  ([f a b]
   (fn ([x y] (f (if (nil? x) a x) (if (nil? y) b y)))
       ([x y & more] (apply f (if (nil? x) a x) (if (nil? y) b y) more))))
  ([f a b c]
   (fn ([x y] (f (if (nil? x) a x) (if (nil? y) b y)))
       ([x y z] (f (if (nil? x) a x) (if (nil? y) b y) (if (nil? z) c z)))
       ([x y z & more] (apply f (if (nil? x) a x) (if (nil? y) b y) (if (nil? z) c z) more)))))
(defn every-pred [& ps]
  (fn [& xs] (every? (fn [p] (every? p xs)) ps)))
;; The first true value of a function on the items of a sequence, else the last value.
(defn either* [f xs]
  (loop [xs (seq xs) found nil]
    (if xs
      (let [found (f (first xs))]
        (if found found (recur (seq (rest xs)) found)))
      found)))
;; As in Clojure: up to three predicates on up to three arguments give the last value, more of them give nil.
(defn some-fn [p & ps]
  (let [ps (cons p ps)
        are-few (< (count ps) 4)
        of-one (fn [x] (if are-few (either* (fn [p] (p x)) ps) (some (fn [p] (p x)) ps)))]
    (fn ([] nil)
        ([x] (of-one x))
        ([x & more]
         (let [xs (cons x (take 2 more))
               more (skip* 2 more)
               of-few (fn [p] (either* p xs))
               found (if are-few (either* of-few ps) (some of-few ps))]
           (cond found found
                 (empty? more) found
                 are-few (some of-one more)
                 :else (some (fn [p] (some p more)) ps)))))))
;; The value with which `halt-when` ends is marked until the end, so that no step completes it.
(defn halted* [r] (and (map? r) (contains? r :clojure.core/halt)))
(defn memoize [f]
  (let [known (atom {})]
    (fn [& args]
      (let [entry (find (deref known) args)]
        (if entry
          (val entry)
          (let [value (apply f args)]
            (swap! known assoc args value)
            value))))))
(defn trampoline
  ([f] (loop [value (f)] (if (fn? value) (recur (value)) value)))
  ([f & args] (loop [value (apply f args)] (if (fn? value) (recur (value)) value))))
(defn not-empty [coll] (if (seq coll) coll nil))
(defn unreduced [x] (if (reduced? x) (deref x) x))
(defn ensure-reduced [x] (if (reduced? x) x (reduced x)))
(defn compare-and-set! [a old new]
  (if (= (deref a) old) (do (reset! a new) true) false))
(defn watch* [watches a old new answer]
  (reduce-kv (fn [_ k f] (f k a old new)) nil watches)
  answer)
(defn vreset! [v x] (reset! v x))
(defn vswap! [v f & args] (reset! v (apply f (deref v) args)))
(defn reset-vals! [a x] (let [old (deref a)] (reset! a x) [old x]))
(defn comparator [p] (fn [a b] (cond (p a b) -1 (p b a) 1 :else 0)))
(defn transient [coll] coll)
(defn persistent! [coll] coll)
(defn printf [pattern & args] (print (apply format pattern args)))
(defn pprint [x] (prn x))
(defn clojure.pprint/pprint [x] (prn x))
(defn rand-nth [coll] (nth coll (rand-int (count coll))))
(defn random-sample [p coll] (filter (fn [_] (< (rand) p)) coll))
