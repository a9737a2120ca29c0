;; Maps, sets, walks, and the extensions for rows of data.

(defn update
  ([m k f] (assoc m k (f (get m k))))
  ([m k f a] (assoc m k (f (get m k) a)))
  ([m k f a b] (assoc m k (f (get m k) a b)))
  ([m k f a b & more] (assoc m k (apply f (get m k) a b more))))
(defn assoc-in-step* [m path at v]
  (let [k (nth path at)]
    (if (= at (dec (count path)))
      (assoc m k v)
      (assoc m k (assoc-in-step* (get m k) path (inc at) v)))))
(defn assoc-in [m path v]
  (let [path (assoc-in-check* path)]
    (assoc-in-step* m (if (seq path) path [nil]) 0 v)))
(defn update-in-step* [m path at f args]
  (let [k (nth path at)]
    (if (= at (dec (count path)))
      (assoc m k (apply f (get m k) args))
      (assoc m k (update-in-step* (get m k) path (inc at) f args)))))
(defn update-in [m path f & args]
  (let [path (assoc-in-check* path)]
    (update-in-step* m (if (seq path) path [nil]) 0 f args)))
(defn merge-with [f & maps]
  (if (some identity maps)
    (reduce (fn [a b]
              (reduce (fn [m e]
                        (let [k (key e) v (val e)]
                          (if (contains? m k) (assoc m k (f (get m k) v)) (assoc m k v))))
                      (or a {})
                      (seq b)))
            maps)
    nil))
(defn update-vals [m f] (reduce-kv (fn [out k v] (assoc out k (f v))) (if (vector? m) [] {}) m))
(defn update-keys [m f] (reduce-kv (fn [out k v] (assoc out (f k) v)) {} m))

;; Maps and sets with a comparator of the program.
(defn sorted-place* [coll k]
  (let [c (sorted-comparator* coll)]
    (loop [low 0 high (count coll)]
      (if (< low high)
        (let [middle (quot (+ low high) 2)
              found (sorted-nth* coll middle)
              order (comparison* c k found)]
          (cond (zero? order) [middle found]
                (neg? order) (recur low middle)
                :else (recur (inc middle) high)))
        [low k]))))
(defn sorted-add* [coll k v]
  (let [[at k] (sorted-place* coll k)] (sorted-put* coll at k v)))
(defn sorted-conj-one* [coll item]
  (if (map? coll)
    (reduce-kv sorted-add* coll (conj {} item))
    (let [[at found] (sorted-place* coll item)] (sorted-put* coll at found))))
(defn sorted-conj* [coll & items] (reduce sorted-conj-one* coll items))
(defn sorted-into* [coll items] (reduce sorted-conj-one* coll items))
(defn sorted-assoc* [coll & kvs]
  (if (odd? (count kvs)) (apply assoc {} kvs))
  (if (map? coll)
    (reduce (fn [m [k v]] (sorted-add* m k v)) coll (partition 2 kvs))
    (assoc #{} nil nil)))
(defn sorted-map-by [comparator & kvs]
  (if (odd? (count kvs)) (apply sorted-map kvs))
  (reduce (fn [m [k v]] (sorted-add* m k v)) (sorted-map-of* comparator) (partition 2 kvs)))
(defn sorted-set-by [comparator & items] (sorted-into* (sorted-set-of* comparator) items))

;; The functions of clojure.set behave exactly as in Clojure, also for arguments that are not sets.
(defn clojure.set/union
  ([] #{})
  ([a] a)
  ([a b] (if (< (count a) (count b)) (reduce conj b a) (reduce conj a b)))
  ([a b & more] (reduce (fn [x y] (if (< (count x) (count y)) (reduce conj y x) (reduce conj x y))) a (cons b more))))
(defn clojure.set/intersection
  ([a] a)
  ([a b]
   (let [[small large] (if (< (count b) (count a)) [b a] [a b])]
     (reduce (fn [kept item] (if (contains? large item) kept (disj kept item))) small small)))
  ([a b & more] (reduce (fn [x y] (clojure.set/intersection x y)) a (cons b more))))
(defn clojure.set/difference
  ([a] a)
  ([a b]
   (if (< (count a) (count b))
     (reduce (fn [kept item] (if (contains? b item) (disj kept item) kept)) a a)
     (reduce disj a b)))
  ([a b & more] (reduce (fn [x y] (clojure.set/difference x y)) a (cons b more))))
(defn clojure.set/subset? [a b] (and (<= (count a) (count b)) (every? (fn [x] (contains? b x)) a)))
(defn clojure.set/superset? [a b] (and (>= (count a) (count b)) (every? (fn [x] (contains? a x)) b)))
(defn clojure.set/select [p s] (reduce (fn [s x] (if (p x) s (disj s x))) s s))
(defn clojure.set/project [rel ks] (set (map (fn [m] (select-keys m ks)) rel)))
(defn clojure.set/rename-keys [m kmap]
  (reduce (fn [out [old new]] (if (contains? m old) (assoc out new (get m old)) out))
          (apply dissoc m (keys kmap))
          kmap))
(defn clojure.set/rename [rel kmap] (set (map (fn [m] (clojure.set/rename-keys m kmap)) rel)))
(defn clojure.set/map-invert [m] (reduce (fn [out e] (assoc out (val e) (key e))) {} m))
(defn clojure.set/index [rel ks]
  (reduce (fn [out m] (let [k (select-keys m ks)] (assoc out k (conj (get out k #{}) m)))) {} rel))
(defn clojure.set/join
  ([a b]
   (if (and (seq a) (seq b))
     (let [ks (clojure.set/intersection (set (keys (first a))) (set (keys (first b))))
           index (clojure.set/index a ks)]
       (reduce (fn [out m]
                 (reduce (fn [out other] (conj out (merge other m))) out (get index (select-keys m ks) #{})))
               #{} b))
     #{}))
  ([a b km]
   (let [index (clojure.set/index a (keys km))]
     (reduce (fn [out m]
               (reduce (fn [out other] (conj out (merge other m)))
                       out
                       (get index (clojure.set/rename-keys (select-keys m (vals km)) (clojure.set/map-invert km)) #{})))
             #{} b))))

(defn clojure.walk/walk [inner outer form]
  (cond
    (list? form) (outer (apply list (mapv* inner form)))
    (map-entry? form) (outer (map-entry* (inner (key form)) (inner (val form))))
    (seq? form) (outer (doall (map inner form)))
    (map? form) (outer (into* {} (mapv* inner form)))
    (coll? form) (outer (into* (empty form) (mapv* inner form)))
    :else (outer form)))
(defn clojure.walk/postwalk [f form]
  (clojure.walk/walk (fn [x] (clojure.walk/postwalk f x)) f form))
(defn clojure.walk/prewalk [f form]
  (clojure.walk/walk (fn [x] (clojure.walk/prewalk f x)) identity (f form)))
(defn clojure.walk/postwalk-replace [smap form]
  (clojure.walk/postwalk (fn [x] (let [e (find smap x)] (if e (val e) x))) form))
(defn clojure.walk/prewalk-replace [smap form]
  (clojure.walk/prewalk (fn [x] (let [e (find smap x)] (if e (val e) x))) form))
(defn clojure.walk/keywordize-keys [m]
  (clojure.walk/postwalk
    (fn [x] (if (map? x) (into* {} (mapv* (fn [e] [(if (string? (key e)) (keyword (key e)) (key e)) (val e)]) x)) x)) m))
(defn clojure.walk/stringify-keys [m]
  (clojure.walk/postwalk
    (fn [x] (if (map? x) (into* {} (mapv* (fn [e] [(if (keyword? (key e)) (name (key e)) (key e)) (val e)]) x)) x)) m))

(defn field* [f]
  (cond (or (keyword? f) (string? f)) (fn [m] (get m f))
        (vector? f) (fn [m] (get-in m f))
        :else f))
(defn sum-by [f coll]
  (let [f (field* f)] (reduce (fn [total x] (let [v (f x)] (if (nil? v) total (+ total v)))) 0 coll)))
(defn avg-by [f coll]
  (let [vs (filterv* some? (mapv* (field* f) coll))]
    (if (seq vs) (double (/ (reduce + vs) (count vs))) nil)))
(defn best-by* [f better coll]
  (let [f (field* f)]
    (second
      (reduce (fn [best x]
                (let [v (f x)]
                  (cond (nil? v) best
                        (nil? best) [v x]
                        (better (compare v (first best))) [v x]
                        :else best)))
              nil coll))))
(defn min-by [f coll] (best-by* f neg? coll))
(defn max-by [f coll] (best-by* f pos? coll))
(defn distinct-by [f coll]
  (let [f (field* f)]
    (first
      (reduce (fn [[out seen] x]
                (let [k (f x)]
                  (if (contains? seen k) [out seen] [(conj out x) (conj seen k)])))
              [[] #{}] coll))))

(defn clojure.string/replace-by* [s match f once]
  (apply str
    (map-indexed (fn [at piece] (if (even? at) piece (text-of* (f piece)))) (clojure.string/match-pieces* s match once))))
(defn clojure.string/replace [s match replacement]
  (if (and (regex? match) (not (string? replacement)))
    (clojure.string/replace-by* (str s) match replacement false)
    (clojure.string/replace-plain* s match replacement)))
(defn clojure.string/replace-first [s match replacement]
  (if (and (regex? match) (not (string? replacement)))
    (clojure.string/replace-by* (str s) match replacement true)
    (clojure.string/replace-first-plain* s match replacement)))

;; As Clojure prints a table: a blank line, then every cell right-aligned.
(defn clojure.pprint/print-table
  ([rows] (clojure.pprint/print-table (keys (first rows)) rows))
  ([ks rows]
   (if (seq rows)
     (let [cells (mapv* (fn [row] (mapv* (fn [k] (str (get row k))) ks)) rows)
           widths (vec (map-indexed
                         (fn [at k] (reduce max (count (str k)) (mapv* (fn [row] (count (nth row at))) cells)))
                         ks))
           line (fn [open between close texts]
                  (str open (clojure.string/join between texts) close))
           pad (fn [text width] (str (apply str (repeat (- width (count text)) " ")) text))
           row-line (fn [texts] (line "| " " | " " |" (map pad texts widths)))]
       (newline)
       (println (row-line (map str ks)))
       (println (line "|-" "-+-" "-|" (map (fn [width] (apply str (repeat width "-"))) widths)))
       (run!* (fn [row] (println (row-line row))) cells))
     nil)))
(defn print-table
  ([rows] (clojure.pprint/print-table rows))
  ([ks rows] (clojure.pprint/print-table ks rows)))
