;; Transducers: the results of map, filter and the others when called without a collection.

(defn map-transducer* [f]
  (fn [rf] (fn ([] (rf)) ([r] (rf r)) ([r x] (rf r (f x))) ([r x & more] (rf r (apply f x more))))))
(defn map-indexed-transducer* [f]
  (fn [rf]
    (let [at (atom -1)]
      (fn ([] (rf)) ([r] (rf r)) ([r x] (rf r (f (swap! at inc) x)))))))
(defn filter-transducer* [p]
  (fn [rf] (fn ([] (rf)) ([r] (rf r)) ([r x] (if (p x) (rf r x) r)))))
(defn remove-transducer* [p]
  (fn [rf] (fn ([] (rf)) ([r] (rf r)) ([r x] (if (p x) r (rf r x))))))
(defn keep-transducer* [f]
  (fn [rf] (fn ([] (rf)) ([r] (rf r)) ([r x] (let [v (f x)] (if (nil? v) r (rf r v)))))))
(defn take-while-transducer* [p]
  (fn [rf] (fn ([] (rf)) ([r] (rf r)) ([r x] (if (p x) (rf r x) (reduced r))))))
(defn take-transducer* [n]
  (fn [rf]
    (let [left (atom n)]
      (fn ([] (rf))
          ([r] (rf r))
          ([r x] (let [before (deref left)
                       after (swap! left dec)
                       r (if (pos? before) (rf r x) r)]
                   (if (pos? after) r (if (reduced? r) r (reduced r)))))))))
(defn completing
  ([f] (completing f identity))
  ([f done] (fn ([] (f)) ([r] (done r)) ([r x] (f r x)))))
(defn transduce
  ([xform f coll] (transduce xform f (f) coll))
  ([xform f init coll]
   (let [rf (xform f)] (rf (reduce rf init coll)))))
(defn into
  ([] [])
  ([to] to)
  ([to from] (into* to from))
  ([to xform from] (transduce xform (fn ([r] r) ([r x] (conj r x))) to from)))
(defn cat [rf]
  (fn ([] (rf)) ([r] (rf r))
      ([r xs] (reduce (fn [r x] (let [r (rf r x)] (if (reduced? r) (reduced r) r))) r xs))))
(defn eduction [& args]
  (sequence (apply comp (butlast args)) (last args)))
(defn halt-when
  ([p] (halt-when p nil))
  ([p value-of]
   (fn [rf]
     (fn ([] (rf))
         ([r] (if (halted* r) (:clojure.core/halt r) (rf r)))
         ([r x] (if (p x)
                  (reduced {:clojure.core/halt (if value-of (value-of (rf r) x) x)})
                  (rf r x)))))))
