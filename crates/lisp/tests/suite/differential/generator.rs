//! Generates programs that are valid in Clojure.
//!
//! An expression is generated for a type, from smaller expressions that fit. Programs whose results may
//! differ although both sides are right are not generated: the order of a map or a set never shows, and
//! functions that lazy sequences call never fail, because Clojure realises 32 items at once where this
//! language realises one.

/// The type of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Integer,
    Number,
    String,
    Keyword,
    Boolean,
    /// A vector of integers.
    Vector,
    /// A sequence of integers, or nil.
    Sequence,
    /// From keywords to integers.
    Map,
    /// Of integers.
    Set,
}

pub(super) const TYPES: &[Type] = &[
    Type::Integer,
    Type::Number,
    Type::String,
    Type::Keyword,
    Type::Boolean,
    Type::Vector,
    Type::Sequence,
    Type::Map,
    Type::Set,
];

/// A source of programs. The same seed and number give the same program.
pub(super) struct Generator {
    state: u64,
    /// Locals in scope.
    pub(super) locals: Vec<(String, Type)>,
    names: u32,
}

impl Generator {
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let state =
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95));
        Self { state, locals: Vec::new(), names: 0 }
    }

    /// SplitMix64: small, and good enough to choose forms.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of these.
    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Returns a number that may be used as a count or an index.
    pub(super) fn small(&mut self) -> i64 {
        self.below(9) as i64 - 1
    }

    /// Returns a new name.
    pub(super) fn fresh(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Returns a whole program.
    pub(super) fn program(&mut self) -> String {
        let depth = 2 + self.below(3);
        match self.below(4) {
            0 => self.anything(depth),
            1 => {
                let of = TYPES[self.below(TYPES.len())];
                format!("[{} {}]", self.anything(depth), self.expression(of, depth))
            }
            _ => {
                let of = TYPES[self.below(TYPES.len())];
                self.expression(of, depth)
            }
        }
    }

    /// Returns an expression of a type, at most `depth` deep.
    pub(super) fn expression(&mut self, of: Type, depth: usize) -> String {
        if let Some(local) = self.local(of)
            && self.below(3) == 0
        {
            return local;
        }
        if depth == 0 {
            return self.literal(of);
        }
        let depth = depth - 1;
        match self.below(9) {
            0 => self.branch(of, depth),
            1 => self.binding(of, depth),
            _ => self.operation(of, depth),
        }
    }

    /// Returns a local of this type, if there is one in scope.
    fn local(&mut self, of: Type) -> Option<String> {
        let fitting: Vec<&String> =
            self.locals.iter().filter(|(_, other)| *other == of).map(|(name, _)| name).collect();
        if fitting.is_empty() {
            return None;
        }
        let fitting: Vec<String> = fitting.into_iter().cloned().collect();
        let at = self.below(fitting.len());
        Some(fitting[at].clone())
    }

    /// Returns an expression in which a new local is bound.
    pub(super) fn with_local(&mut self, name: &str, local: Type, of: Type, depth: usize) -> String {
        self.locals.push((name.to_owned(), local));
        let body = self.expression(of, depth);
        self.locals.pop();
        body
    }

    fn operation(&mut self, of: Type, depth: usize) -> String {
        match of {
            Type::Integer => self.integer(depth),
            Type::Number => self.number(depth),
            Type::String => self.string(depth),
            Type::Keyword => self.keyword(depth),
            Type::Boolean => self.boolean(depth),
            Type::Vector => self.vector(depth),
            Type::Sequence => self.sequence(depth),
            Type::Map => self.map(depth),
            Type::Set => self.set(depth),
        }
    }

    fn branch(&mut self, of: Type, depth: usize) -> String {
        let test = self.expression(Type::Boolean, depth);
        let (a, b) = (self.expression(of, depth), self.expression(of, depth));
        match self.below(8) {
            0 => format!("(if {test} {a} {b})"),
            1 => format!("(if-not {test} {a} {b})"),
            2 => {
                let other = self.expression(Type::Boolean, depth);
                let c = self.expression(of, depth);
                format!("(cond {test} {a} {other} {b} :else {c})")
            }
            3 => {
                let value = self.expression(Type::Integer, depth);
                format!("(case {value} 0 {a} (1 2 -1) {b} {})", self.literal(of))
            }
            4 => format!("(or (when {test} {a}) {b})"),
            5 => {
                let name = self.fresh();
                format!("(if-let [{name} (and {test} {a})] {name} {b})")
            }
            6 => {
                let value = self.expression(Type::Integer, depth);
                format!("(condp = {value} 1 {a} 0 {b} {})", self.literal(of))
            }
            _ => format!("(try {a} (catch Exception e {b}))"),
        }
    }

    fn binding(&mut self, of: Type, depth: usize) -> String {
        let name = self.fresh();
        let other = TYPES[self.below(TYPES.len())];
        match self.below(8) {
            0 | 1 => {
                let value = self.expression(other, depth);
                format!("(let [{name} {value}] {})", self.with_local(&name, other, of, depth))
            }
            2 => {
                let value = self.expression(other, depth);
                format!("((fn [{name}] {}) {value})", self.with_local(&name, other, of, depth))
            }
            3 => {
                let map = self.expression(Type::Map, depth);
                let body = self.with_local("b", Type::Integer, of, depth);
                format!("(let [{{:keys [a b] :or {{b 7}}}} {map}] {body})")
            }
            4 => {
                let from = self.expression(Type::Vector, depth);
                let body = self.with_local(&name, Type::Sequence, of, depth);
                format!("(let [[x y & {name}] {from}] {body})")
            }
            5 => {
                let from = self.expression(Type::Sequence, depth);
                let body = self.with_local(&name, Type::Sequence, of, depth);
                format!(
                    "((fn [& {name}] {body}) {} {})",
                    self.literal(Type::Integer),
                    format_args!("(count {from})")
                )
            }
            6 => {
                let value = self.expression(other, depth);
                format!("(as-> {value} {name} {})", self.with_local(&name, other, of, depth))
            }
            _ => {
                let from = self.expression(Type::Sequence, depth);
                let body = self.with_local(&name, Type::Integer, of, depth);
                format!("(let [{name} (reduce +' 0 {from})] {body})")
            }
        }
    }

    /// Returns a literal of a type.
    pub(super) fn literal(&mut self, of: Type) -> String {
        let integers = |generator: &mut Self| {
            let count = generator.below(6);
            let items: Vec<String> =
                (0..count).map(|_| (generator.below(24) as i64 - 8).to_string()).collect();
            items.join(" ")
        };
        match of {
            Type::Integer => match self.below(12) {
                0 => self
                    .pick(&["9223372036854775807", "-9223372036854775808", "4294967296", "3037000500"])
                    .to_owned(),
                _ => (self.below(40) as i64 - 12).to_string(),
            },
            Type::Number => self
                .pick(&[
                    "1/3",
                    "-7/2",
                    "2.5",
                    "-0.125",
                    "1e10",
                    "0.0",
                    "100",
                    "-3",
                    "7/10",
                    "1.1",
                    "12345678901234567890",
                ])
                .to_owned(),
            Type::String => self
                .pick(&[
                    "\"\"",
                    "\"a\"",
                    "\"Hello, World\"",
                    "\" two  words \"",
                    "\"a1b22c333\"",
                    "\"héllo λ\"",
                    "\"x,y,,z,,\"",
                    "\"line\\nbreak\"",
                    "\"ABC\"",
                    "\"$1\\\\\"",
                    "\"42\"",
                    "\"ß straße\"",
                ])
                .to_owned(),
            Type::Keyword => self.pick(&[":a", ":b", ":c", ":d", ":long-name"]).to_owned(),
            Type::Boolean => self.pick(&["true", "false"]).to_owned(),
            Type::Vector => format!("[{}]", integers(self)),
            Type::Sequence => match self.below(6) {
                0 => "nil".to_owned(),
                1 => format!("(range {} {})", self.small(), self.small()),
                2 => format!("(range {})", self.small()),
                3 => {
                    format!("(range {} {} {})", self.small(), self.small(), self.pick(&["1", "2", "-1", "3"]))
                }
                _ => format!("'({})", integers(self)),
            },
            Type::Map => self
                .pick(&["{}", "{:a 1}", "{:a 1 :b 2}", "{:b -5 :c 0 :d 12}", "{:a 3 :c 4 :long-name 9}"])
                .to_owned(),
            Type::Set => self.pick(&["#{}", "#{1}", "#{3 1 2}", "#{-1 0 5 8}", "#{2 4 6 7 9 11}"]).to_owned(),
        }
    }
}
