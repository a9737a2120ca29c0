//! Operations that return collections, the functions passed to them, and programs of any type.

use super::generator::{Generator, TYPES, Type};

impl Generator {
    /// Returns a predicate on integers of any size that never fails.
    pub(super) fn predicate(&mut self) -> String {
        match self.below(8) {
            0..=3 => self.pick(&["even?", "odd?", "pos?", "neg?", "zero?", "nil?", "integer?"]).to_owned(),
            4 => format!("#(> % {})", self.small()),
            5 => format!("(fn [x] (= {} (mod x 3)))", self.below(3)),
            6 => self
                .pick(&[
                    "(complement even?)",
                    "(every-pred pos? even?)",
                    "(some-fn zero? neg?)",
                    "(partial < 2)",
                ])
                .to_owned(),
            _ => self.pick(&["#{1 2 3}", "#{0 5 8 11}"]).to_owned(),
        }
    }

    /// Returns a function from integer to integer that never fails.
    fn function(&mut self) -> String {
        match self.below(9) {
            0..=2 => self.pick(&["inc'", "dec'", "-'", "identity", "abs"]).to_owned(),
            3 => format!("#(+' % {})", self.small()),
            4 => format!("(fn [x] (*' x {}))", self.small()),
            5 => format!("(partial max {})", self.small()),
            6 => self
                .pick(&["(comp inc' inc')", "(constantly 7)", "(fn [x] (if (even? x) x (-' x)))"])
                .to_owned(),
            7 => format!("(fn [x] (let [y (mod x 5)] (+' y {})))", self.small()),
            _ => "(fn [x] (count (str x)))".to_owned(),
        }
    }

    pub(super) fn vector(&mut self, depth: usize) -> String {
        let vector = self.expression(Type::Vector, depth);
        match self.below(14) {
            0 => format!("(vec {})", self.expression(Type::Sequence, depth)),
            1 => format!("(mapv {} {vector})", self.function()),
            2 => format!("(filterv {} {vector})", self.predicate()),
            3 => format!("(conj {vector} {})", self.expression(Type::Integer, depth)),
            4 => format!("(assoc {vector} {} {})", self.below(5), self.expression(Type::Integer, depth)),
            5 => format!("(subvec {vector} {})", self.small()),
            6 => format!("(into {vector} {})", self.expression(Type::Sequence, depth)),
            7 => format!("(update {vector} {} (fnil inc' 0))", self.below(5)),
            8 => format!("(pop {vector})"),
            9 => format!(
                "[{} {}]",
                self.expression(Type::Integer, depth),
                self.expression(Type::Integer, depth)
            ),
            10 => {
                format!("(into [] (comp (map {}) (filter {})) {vector})", self.function(), self.predicate())
            }
            11 => format!("(reduce conj {vector} {})", self.expression(Type::Sequence, depth)),
            12 => format!("(replace {{1 100, 2 200}} {vector})"),
            _ => format!("(vec (sort {}))", self.expression(Type::Set, depth)),
        }
    }

    pub(super) fn sequence(&mut self, depth: usize) -> String {
        let of = if self.below(3) == 0 { Type::Vector } else { Type::Sequence };
        let items = self.expression(of, depth);
        match self.below(34) {
            0..=2 => format!("(map {} {items})", self.function()),
            3 | 4 => format!(
                "({} {} {items})",
                self.pick(&["filter", "remove", "take-while", "drop-while"]),
                self.predicate()
            ),
            5 | 6 => format!(
                "({} {} {items})",
                self.pick(&["take", "drop", "take-last", "drop-last"]),
                self.small()
            ),
            7 => format!(
                "({} {items})",
                self.pick(&["sort", "reverse", "distinct", "dedupe", "rest", "next", "seq", "butlast"])
            ),
            8 => format!("(concat {items} {})", self.expression(Type::Sequence, depth)),
            9 => format!("(cons {} {items})", self.expression(Type::Integer, depth)),
            10 => format!("(for [x {items} :when ({} x)] ({} x))", self.predicate(), self.function()),
            11 => format!("(for [x {items} y [1 2] :let [z (+' x y)] :while (< z 20)] z)"),
            12 => format!("(map-indexed (fn [i x] (+' i x)) {items})"),
            13 => format!("(reductions +' {items})"),
            14 => format!("(mapcat (fn [x] [x (-' x)]) {items})"),
            15 => format!("(take-nth {} {items})", 1 + self.below(3)),
            16 => format!("(interpose 0 {items})"),
            17 => format!("(interleave {items} {})", self.expression(Type::Sequence, depth)),
            18 => format!("(repeat {} {})", self.small(), self.literal(Type::Integer)),
            19 => format!(
                "(take {} (iterate {} {}))",
                self.small(),
                self.function(),
                self.literal(Type::Integer)
            ),
            20 => format!("(sort {} {items})", self.pick(&[">", "<", "(comparator >)", "compare"])),
            21 => format!("(sort-by {} {items})", self.pick(&["-", "(juxt even? identity)", "str", "abs"])),
            22 => format!(
                "(map {} {items} {})",
                self.pick(&["+'", "max", "-'", "(fn [a b] (*' a b))"]),
                self.expression(Type::Sequence, depth)
            ),
            23 => format!("(keep (fn [x] (when ({} x) x)) {items})", self.predicate()),
            24 => format!("(flatten (partition {} {items}))", 1 + self.below(3)),
            25 => format!("(map count (partition-all {} {items}))", 1 + self.below(3)),
            26 => format!("(map first (partition-by {} {items}))", self.predicate()),
            27 => format!("(sort (vals {}))", self.expression(Type::Map, depth)),
            28 => format!("(sort {})", self.expression(Type::Set, depth)),
            29 => format!("(nthnext {items} {})", self.small()),
            30 => format!("(->> {items} (map {}) (filter {}) (take 4))", self.function(), self.predicate()),
            31 => format!("(let [[a & more] {items}] more)"),
            32 => format!("(map parse-long (re-seq #\"\\d\" {}))", self.expression(Type::String, depth)),
            _ => format!("(keep-indexed (fn [i x] (when (odd? i) x)) {items})"),
        }
    }

    pub(super) fn map(&mut self, depth: usize) -> String {
        let map = self.expression(Type::Map, depth);
        let key = self.expression(Type::Keyword, depth);
        match self.below(14) {
            0 => format!("(assoc {map} {key} {})", self.expression(Type::Integer, depth)),
            1 => format!("(dissoc {map} {key})"),
            2 => format!("(merge {map} {})", self.expression(Type::Map, depth)),
            3 => format!("(merge-with +' {map} {})", self.expression(Type::Map, depth)),
            4 => format!("(update {map} {key} (fnil inc' 0))"),
            5 => format!("(zipmap [:a :b :c] {})", self.expression(Type::Sequence, depth)),
            6 => format!("(select-keys {map} [:a :c])"),
            7 => format!("(update-vals {map} {})", self.function()),
            8 => format!("(set/rename-keys {map} {{:a :d}})"),
            9 => format!("(into {{}} (filter (fn [[k v]] ({} v)) {map}))", self.predicate()),
            10 => format!("{{:a {} {} 1}}", self.expression(Type::Integer, depth), self.pick(&[":b", ":c"])),
            11 => format!(
                "(reduce (fn [m x] (assoc m (if (even? x) :a :b) x)) {map} {})",
                self.expression(Type::Sequence, depth)
            ),
            12 => format!("(reduce-kv (fn [m k v] (assoc m k (inc' v))) {{}} {map})"),
            _ => format!("(cond-> {map} {} (assoc :d 4))", self.expression(Type::Boolean, depth)),
        }
    }

    pub(super) fn set(&mut self, depth: usize) -> String {
        let set = self.expression(Type::Set, depth);
        match self.below(8) {
            0 => format!("(set {})", self.expression(Type::Sequence, depth)),
            1 => {
                format!("({} {set} {})", self.pick(&["conj", "disj"]), self.expression(Type::Integer, depth))
            }
            2..=4 => format!(
                "(set/{} {set} {})",
                self.pick(&["union", "intersection", "difference"]),
                self.expression(Type::Set, depth)
            ),
            5 => format!("(into {set} {})", self.expression(Type::Sequence, depth)),
            6 => format!("(set/select {} {set})", self.predicate()),
            _ => format!("(set (map {} {set}))", self.function()),
        }
    }

    /// Returns a program of any type, mostly of types not listed above.
    pub(super) fn anything(&mut self, depth: usize) -> String {
        let items = self.expression(Type::Sequence, depth);
        let text = self.expression(Type::String, depth);
        match self.below(26) {
            0 => format!("(group-by {} {items})", self.pick(&["even?", "pos?", "(fn [x] (mod x 3))"])),
            1 => format!("(frequencies {items})"),
            2 => format!("(frequencies {text})"),
            3 => format!("(partition {} {} {items})", 1 + self.below(3), 1 + self.below(3)),
            4 => format!("({} {} {items})", self.pick(&["split-with", "partition-by"]), self.predicate()),
            5 => format!("(re-seq {} {text})", self.pattern()),
            6 => format!("(re-find {} {text})", self.pattern()),
            7 => format!("(re-matches {} {text})", self.pattern()),
            8 => format!("(str/split {text} {})", self.pattern()),
            9 => format!("(str/split {text} {} {})", self.pattern(), self.small()),
            10 => format!("(str/split-lines {text})"),
            11 => format!("((juxt first last count) {items})"),
            12 => format!("(seq {text})"),
            13 => format!(
                "(find {} {})",
                self.expression(Type::Map, depth),
                self.expression(Type::Keyword, depth)
            ),
            14 => {
                let map = self.expression(Type::Map, depth);
                format!(
                    "(let [{{x :a {{:keys [y]}} :n :as all}} (assoc {map} :n {{:y {items}}})] [x y (count all)])"
                )
            }
            15 => format!(
                "(get-in {{:a [{items} {{:b {text}}}]}} {})",
                self.pick(&["[:a 0]", "[:a 1 :b]", "[:z 1]", "[]", "[:a 5 :b]"])
            ),
            16 => format!(
                "(update-in {{:a {{:b {}}}}} [:a :b] (fnil str \"?\") {text})",
                self.pick(&["1", "nil", "\"x\""])
            ),
            17 => format!("(some {} {items})", self.predicate()),
            18 => format!("(set/map-invert (zipmap [:a :b :c] (distinct {items})))"),
            19 => format!("(map vector {items} {text})"),
            20 => format!("(sort-by (juxt count identity) (str/split {text} #\"[, ]\"))"),
            21 => format!("(try (nth {items} {}) (catch IndexOutOfBoundsException e :beyond))", self.small()),
            22 => format!(
                "(try (/ {} {}) (catch ArithmeticException e :zero))",
                self.expression(Type::Integer, depth),
                self.expression(Type::Integer, depth)
            ),
            23 => format!(
                "(letfn [(f [n acc] (if (pos? n) (f (dec n) (conj acc n)) acc))] (f {} {}))",
                self.small(),
                self.expression(Type::Vector, depth)
            ),
            24 => format!("(clojure.walk/postwalk identity {items})"),
            _ => {
                let (a, b) = (TYPES[self.below(TYPES.len())], TYPES[self.below(TYPES.len())]);
                format!("{{:x {} \"y\" {}}}", self.expression(a, depth), self.expression(b, depth))
            }
        }
    }
}
