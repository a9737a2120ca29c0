//! Operations that return numbers, strings, keywords and booleans.

use super::generator::{Generator, TYPES, Type};

/// Patterns that both engines support.
const PATTERNS: &[&str] = &[
    "#\"\\d+\"",
    "#\"[a-z]\"",
    "#\"(\\w)(\\d)\"",
    "#\",\"",
    "#\"\\s+\"",
    "#\"l+o?\"",
    "#\"(?i)h.\"",
    "#\"^.|.$\"",
];

impl Generator {
    pub(super) fn pattern(&mut self) -> &'static str {
        self.pick(PATTERNS)
    }

    pub(super) fn integer(&mut self, depth: usize) -> String {
        let (a, b) = (self.expression(Type::Integer, depth), self.expression(Type::Integer, depth));
        match self.below(26) {
            0..=3 => format!("({} {a} {b})", self.pick(&["+", "-", "*", "+'", "-'", "*'"])),
            4 | 5 => format!("({} {a} {b})", self.pick(&["quot", "rem", "mod"])),
            6 => format!("({} {a})", self.pick(&["inc", "dec", "-", "abs", "inc'", "dec'"])),
            7 => format!("({} {a} {b})", self.pick(&["max", "min", "bit-and", "bit-or", "bit-xor"])),
            8 => format!("(compare {a} {b})"),
            9 => {
                let of = [Type::String, Type::Vector, Type::Sequence, Type::Map, Type::Set][self.below(5)];
                format!("(count {})", self.expression(of, depth))
            }
            10 => format!(
                "(reduce {} {})",
                self.pick(&["+", "+'", "max", "*'", "-"]),
                self.expression(Type::Sequence, depth)
            ),
            11 => format!(
                "(apply {} {a} {})",
                self.pick(&["+'", "max", "min"]),
                self.expression(Type::Sequence, depth)
            ),
            12 => format!(
                "(get {} {} {a})",
                self.expression(Type::Map, depth),
                self.expression(Type::Keyword, depth)
            ),
            13 => format!("(nth {} {} {a})", self.expression(Type::Vector, depth), self.small()),
            14 => format!("(nth {} {})", self.expression(Type::Sequence, depth), self.small()),
            15 => format!(
                "(or ({} {}) {b})",
                self.pick(&["first", "last", "second", "peek"]),
                self.expression(Type::Vector, depth)
            ),
            16 => {
                format!(
                    "(or ({} {}) {b})",
                    self.expression(Type::Keyword, depth),
                    self.expression(Type::Map, depth)
                )
            }
            17 => {
                let name = self.fresh();
                let body = self.with_local(&name, Type::Integer, Type::Integer, depth);
                format!("(loop [{name} {a} n 0] (if (< n 3) (recur {body} (inc n)) {name}))")
            }
            18 => format!("(-> {a} (+ {b}) ({} 3))", self.pick(&["-", "max", "bit-shift-left", "quot"])),
            19 => format!("(or (parse-long {}) {a})", self.expression(Type::String, depth)),
            20 => format!(
                "(or (str/index-of {} {}) -1)",
                self.expression(Type::String, depth),
                self.expression(Type::String, depth)
            ),
            21 => format!(
                "(reduce (fn [acc x] {}) {a} {})",
                self.pick(&["(+' acc x)", "(if (> x 3) (reduced acc) (inc' acc))", "(max acc x)"]),
                self.expression(Type::Sequence, depth)
            ),
            22 => format!("(reduce-kv (fn [acc k v] (+' acc v)) {a} {})", self.expression(Type::Map, depth)),
            23 => format!(
                "(or (some-> {} (get {}) inc) {a})",
                self.expression(Type::Map, depth),
                self.expression(Type::Keyword, depth)
            ),
            24 => format!("(let [c (atom {a})] (dotimes [i 3] (swap! c +' i)) @c)"),
            _ => format!("(long {})", self.expression(Type::Number, depth)),
        }
    }

    pub(super) fn number(&mut self, depth: usize) -> String {
        let (a, b) = (self.expression(Type::Number, depth), self.expression(Type::Number, depth));
        match self.below(10) {
            0..=2 => format!("({} {a} {b})", self.pick(&["+", "-", "*"])),
            // The result of a division by the double zero depends on the types that Clojure's compiler knows.
            3 => format!("(let [d {b}] (/ {a} (if (zero? d) 1 d)))"),
            4 => format!("({} {a} {b})", self.pick(&["quot", "rem", "mod", "max", "min"])),
            5 => format!("(double {a})"),
            6 => format!(
                // The least integer is left out: Clojure keeps its sign in the denominator.
                "(/ (max {} -99) (max {} -99))",
                self.expression(Type::Integer, depth),
                self.expression(Type::Integer, depth)
            ),
            7 => format!("({} {a})", self.pick(&["inc", "dec", "abs", "-", "+", "rationalize", "bigint"])),
            8 => format!(
                "(Math/{} (double {a}))",
                self.pick(&["floor", "ceil", "abs", "round", "rint", "signum"])
            ),
            _ => format!("(or (parse-double {}) {a})", self.expression(Type::String, depth)),
        }
    }

    pub(super) fn string(&mut self, depth: usize) -> String {
        let text = self.expression(Type::String, depth);
        match self.below(17) {
            0 => {
                let of =
                    [Type::Integer, Type::String, Type::Keyword, Type::Boolean, Type::Vector, Type::Number]
                        [self.below(6)];
                format!("(str {text} {})", self.expression(of, depth))
            }
            1 => format!("(subs {text} {})", self.small()),
            2 => format!("(subs {text} {} {})", self.small(), self.small()),
            3 | 4 => format!(
                "(str/{} {text})",
                self.pick(&[
                    "upper-case",
                    "lower-case",
                    "trim",
                    "triml",
                    "trimr",
                    "reverse",
                    "capitalize",
                    "trim-newline"
                ])
            ),
            5 => format!(
                "(str/join {} {})",
                self.pick(&["\", \"", "\\-", "\"\""]),
                self.expression(Type::Sequence, depth)
            ),
            6 => format!(
                "(str/replace {text} {} {})",
                self.literal(Type::String),
                self.expression(Type::String, depth)
            ),
            7 => format!(
                "(str/replace {text} {} {})",
                self.pattern(),
                self.pick(&["\"<$0>\"", "\"\"", "\"-\"", "(fn [m] (str \"[\" m \"]\"))", "str/upper-case"])
            ),
            8 => format!("(str/replace-first {text} {} \"_\")", self.pattern()),
            9 => format!("(name {})", self.expression(Type::Keyword, depth)),
            10 => format!("(apply str {})", self.expression(Type::Sequence, depth)),
            // Clojure formats no big integers.
            11 => format!(
                "(format {} (long (rem {} 100000)) {text})",
                self.pick(&[
                    "\"%d-%s\"",
                    "\"%5d|%8s\"",
                    "\"%-4d<%s>\"",
                    "\"%x %s\"",
                    "\"%,d %S\"",
                    "\"%+d%%%s\""
                ]),
                self.expression(Type::Integer, depth)
            ),
            // Large doubles have more digits in older Javas.
            12 => format!("(format \"%.2f\" (double (rem {} 1000)))", self.expression(Type::Number, depth)),
            13 => {
                let of =
                    [Type::Vector, Type::Sequence, Type::String, Type::Integer, Type::Keyword][self.below(5)];
                format!("(pr-str {})", self.expression(of, depth))
            }
            14 => format!("(str/join (map str (reverse {text})))"),
            15 => format!("(apply str (interpose \"/\" (filter #(Character/isLetter %) {text})))"),
            _ => format!("(->> {text} (remove #{{\\a \\space}}) (take 5) (apply str))"),
        }
    }

    pub(super) fn keyword(&mut self, depth: usize) -> String {
        match self.below(4) {
            0 => format!("(keyword {})", self.pick(&["\"a\"", "\"b\"", "\"long-name\""])),
            1 => format!("(first (sort (keys {})))", self.expression(Type::Map, depth)),
            2 => format!("(nth [:a :b :c] (mod {} 3))", self.expression(Type::Integer, depth)),
            _ => format!("(or (some #{{:a :c}} (keys {})) :d)", "{:c 1}"),
        }
    }

    pub(super) fn boolean(&mut self, depth: usize) -> String {
        let of = TYPES[self.below(TYPES.len())];
        match self.below(17) {
            0 => format!(
                "({} {} {})",
                self.pick(&["=", "not="]),
                self.expression(of, depth),
                self.expression(of, depth)
            ),
            1 => format!(
                "(= {} {})",
                self.expression(Type::Vector, depth),
                self.expression(Type::Sequence, depth)
            ),
            2 => format!(
                "({} {} {})",
                self.pick(&["<", ">", "<=", ">=", "=="]),
                self.expression(Type::Number, depth),
                self.expression(Type::Number, depth)
            ),
            3 => format!(
                "({} {} {} {})",
                self.pick(&["<", ">", "="]),
                self.expression(Type::Integer, depth),
                self.expression(Type::Integer, depth),
                self.expression(Type::Integer, depth)
            ),
            4 => format!(
                "({} {})",
                self.pick(&["even?", "odd?", "pos?", "neg?", "zero?", "nat-int?"]),
                self.expression(Type::Integer, depth)
            ),
            5 => format!(
                "(contains? {} {})",
                self.expression(Type::Map, depth),
                self.expression(Type::Keyword, depth)
            ),
            6 => format!("(contains? {} {})", self.expression(Type::Vector, depth), self.small()),
            7 => format!(
                "(contains? {} {})",
                self.expression(Type::Set, depth),
                self.expression(Type::Integer, depth)
            ),
            8 => {
                let of = [Type::String, Type::Vector, Type::Sequence, Type::Map, Type::Set][self.below(5)];
                format!("(empty? {})", self.expression(of, depth))
            }
            9 => format!(
                "({} {} {})",
                self.pick(&["every?", "not-any?", "not-every?"]),
                self.predicate(),
                self.expression(Type::Sequence, depth)
            ),
            10 => format!(
                "({} {} {})",
                self.pick(&["and", "or"]),
                self.expression(Type::Boolean, depth),
                self.expression(Type::Boolean, depth)
            ),
            11 => format!("(not {})", self.expression(of, depth)),
            12 => format!(
                "({} {})",
                self.pick(&[
                    "string?",
                    "number?",
                    "integer?",
                    "coll?",
                    "map?",
                    "vector?",
                    "seq?",
                    "set?",
                    "keyword?",
                    "nil?",
                    "some?",
                    "sequential?",
                    "associative?",
                    "float?",
                    "ratio?",
                    "int?",
                    "ifn?",
                    "counted?",
                    "list?",
                    "rational?"
                ]),
                self.expression(of, depth)
            ),
            13 => format!(
                "(str/{} {} {})",
                self.pick(&["includes?", "starts-with?", "ends-with?"]),
                self.expression(Type::String, depth),
                self.expression(Type::String, depth)
            ),
            14 => format!("(str/blank? {})", self.expression(Type::String, depth)),
            15 => format!(
                "(set/{} {} {})",
                self.pick(&["subset?", "superset?"]),
                self.expression(Type::Set, depth),
                self.expression(Type::Set, depth)
            ),
            _ => format!("(boolean (some {} {}))", self.predicate(), self.expression(Type::Sequence, depth)),
        }
    }
}
