//! Runs the reader and the evaluator on seeded mutations of real programs. The targets in `fuzz/` do the same
//! without an end.

use backstitch_lisp::fuzzing;

use crate::allocations::most_held;

/// Returns a number from the environment, or the default.
#[expect(clippy::disallowed_methods, reason = "the environment may request more inputs")]
fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Returns the number of mutations. `BACKSTITCH_FUZZ_INPUTS` overrides it.
fn inputs(usual: u64) -> u64 {
    asked("BACKSTITCH_FUZZ_INPUTS", usual)
}

/// Returns the seed of the first input. `BACKSTITCH_FUZZ_SEED` overrides it.
fn first_seed() -> u64 {
    asked("BACKSTITCH_FUZZ_SEED", 1)
}

/// Programs and similar text.
const NOTATION: [&str; 12] = [
    "(defn big? \"True if id > 2\" [{:keys [id] :or {id 0}}] (> id 2))\n(def items (filter big? data/rows))",
    "(let [x 0x1F y 2r101 z 1/3 w 1.5e-3 v 9223372036854775808N] #{x y z w v ##Inf ##-Inf ##NaN})",
    "(-> \"a\\tb\\u03bb\\101\\n\" (str \\a \\newline \\u03bb \\o101 \\( \\\") (re-find #\"(\\d+)\\s*\\\"\"))",
    "#(apply + % %2 %&) '(1 [2 {:a/b #{c}}]) #'inc @state #_ #_ a b ^String x ^{:doc \"d\"} y",
    "```clojure\n(println “smart” ‘quote)\u{a0}\u{200b}\r\n```\nprose ; it’s",
    "{:a 1, :b [1 2 3], \"c\" nil, 'd true, \\e false} #inst \"2026-01-02\" #time/date \"2026-01-02\"",
    "(loop [i 0 acc []] (if (< i 10) (recur (inc i) (conj acc i)) acc)) (comment (a b)) #! shebang",
    "(try (throw (ex-info \"no\" {:a 1})) (catch Exception e (ex-data e)) (finally nil)) clojure.core// a' .trim",
    "[-0.0 1e400 -1e-400 0/5 -4/2 -1/3 +7 1e+3 00 07 36rZZ 1N -0N 1.0000000000000002 5e-324 1.7976931348623157e308]",
    "[\\space \\tab \\u0000 \\uffff \\o377 \"\\u0000\\b\\f\\\\\" \"😀\" :😀 'λ/λ :a.b/c-d* a.b.c/d foo' -> ->> .5 -.a +a]",
    "#uuid \"123e4567-e89b-12d3-a456-426614174000\" #inst \"2026-01-02T03:04:05.678-07:00\" #\"\\\\Q[a\\\\E(?i)x{1,2}\"",
    "#{#{} [] {} () nil \"\" \\a :a 'a 1 1.0 1N 1/2} {{} {} [] [] #{} #{}} '(quote (quote x)) ''x @@x #(do % #_x)",
];

/// Programs that run and use many features.
const PROGRAMS: [&str; 24] = [
    "(reduce (fn [acc x] (+ acc (* x 2))) 0 (range 100))",
    "(count (map :id (filter (fn [row] (> (:price row) 1)) data/rows)))",
    "(let [a (atom {})] (doseq [x [1 2 3]] (swap! a assoc x (str x))) (reset! a (dissoc @a 1)) @a)",
    "(defn f [n] (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (map f (range 10))",
    "(try (/ 1 0) (catch ArithmeticException e (ex-message e)) (finally (println \"x\")))",
    "(->> data/rows (group-by :name) (sort-by key) (map (fn [[k v]] [k (count v)])) (into {}))",
    "(pmap (fn [x] (tool/echo {:value x})) [1 2 3]) (pcalls (fn [] 1) (fn [] (tool/echo 2)))",
    "(loop [i 0 acc []] (if (< i 10) (recur (inc i) (conj acc (tool/echo i))) acc))",
    "(take 5 (iterate (fn [x] (* 2 x)) 1)) (take-while pos? (cycle [1 2 -1])) (nth (range) 5)",
    "(def fibs (lazy-cat [0 1] (map + fibs (rest fibs)))) (def x (nth fibs 20)) (def fibs nil) x",
    "(clojure.string/join \", \" (map (fn [s] (clojure.string/upper-case s)) (clojure.string/split \"a b c\" #\" \")))",
    "(json/write-str (json/read-str \"{\\\"a\\\": [1, 2.5, null, \\\"x\\\"]}\")) (format \"%5.2f|%-5s|%05d\" 3.14159 \"ab\" 42)",
    "(clojure.walk/postwalk (fn [x] (if (number? x) (inc x) x)) {:a [1 2 {:b 3}]}) (clojure.set/union #{1} #{2})",
    "(for [x (range 4) y [:a :b] :when (odd? x) :let [z [x y]]] z) (partition 2 1 [1 2 3]) (interleave [1 2] [3 4])",
    "(str (LocalDate/parse \"2026-01-31\") (.plusDays (LocalDate/of 2026 1 1) 30)) (Math/sqrt 2) (Integer/parseInt \"7\")",
    "(letfn [(ev? [n] (or (zero? n) (od? (dec n)))) (od? [n] (and (pos? n) (ev? (dec n))))] (ev? 10))",
    "(transduce (comp (map inc) (filter even?) (take 3)) conj [] (range 100)) (reductions + [1 2 3]) (sort > [3 1 2])",
    "(case (mod 7 3) 0 :a (1 2) :b :c) (condp = 2 1 :one 2 :two) (cond-> 1 true inc) (some-> {:a 1} :a inc)",
    "(task \"t\" (tool/echo 1)) (return {:x (map inc [1 2])})",
    "(let [{:keys [a b] :or {b 2} :as m} {:a 1} [x & more] [1 2 3]] [a b m x more ((fn [& {:keys [k]}] k) :k 1)])",
    "(*' 9223372036854775807 2) (+' 1 9223372036854775807) (reduce *' (range 1 30)) (/ 1 3) (bigint 1.5) (quot 7 2)",
    "(re-seq #\"(\\w)(\\d)\" \"a1 b2\") (clojure.string/replace \"aXb\" #\"[A-Z]\" \"-\") (re-matches #\"a+\" \"aaa\")",
    "(def m (memoize (fn [x] (println x) (* x x)))) [(m 2) (m 2)] (apply max [1 2 3]) (update-in {:a {:b 1}} [:a :b] inc)",
    "(reduce (fn [x _] [x x]) (atom 1) (range 20)) (fail (ex-info \"stop\" {:a (map inc [1])}))",
];

/// Fragments of programs that are inserted anywhere.
const PIECES: [&str; 72] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "#{",
    "#(",
    "\"",
    "\\",
    "'",
    "#'",
    "#_",
    "#\"",
    "^",
    "@",
    "`",
    "~",
    ":",
    "::",
    "%",
    "%&",
    "##",
    "#",
    ";",
    "\n",
    "\r",
    "0x",
    "1/",
    "N",
    "r",
    "\\u",
    "\u{feff}",
    "λ",
    "😀",
    "“",
    "```",
    "\u{0}",
    "#inst",
    "-.",
    "nil",
    "true",
    "0",
    "-1",
    "9223372036854775807",
    "1.5",
    "##NaN",
    "1/2",
    "\"text\"",
    ":id",
    "()",
    "[]",
    "{}",
    "(range)",
    "(repeat 1)",
    "(cycle [1 2])",
    "(lazy-seq nil)",
    "data/rows",
    "(tool/echo 1)",
    "(tool/fails 1)",
    "(atom nil)",
    "(fn [x] x)",
    "(throw (ex-info \"e\" {}))",
    "(reduced 1)",
    "map",
    "reduce",
    "(recur)",
    "(println 1)",
    "#\"a*\"",
    "(iterate inc 0)",
    "(def v 1)",
    "(return 1)",
];

/// A small random generator, so that a failure can be repeated with its seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Returns the ranges of the forms of a text, judged by brackets and blanks.
fn forms(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut open, mut found, mut word) = (Vec::new(), Vec::new(), None);
    for (at, character) in text.char_indices() {
        let is_break = character.is_whitespace() || "()[]{}".contains(character);
        match (is_break, word) {
            (false, None) => word = Some(at),
            (true, Some(start)) => {
                found.push(start..at);
                word = None;
            }
            _ => {}
        }
        match character {
            '(' | '[' | '{' => open.push(at),
            ')' | ']' | '}' => found.extend(open.pop().map(|start| start..at + 1)),
            _ => {}
        }
    }
    found
}

/// Changes bytes.
fn mutate_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    match random.below(5) {
        0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        1 => {
            bytes.splice(at..at, PIECES[random.below(PIECES.len())].bytes());
        }
        2 => {
            let end = (at + random.below(12)).min(bytes.len());
            bytes.drain(at..end);
        }
        3 => bytes.truncate(at),
        _ => {
            let end = (at + random.below(30)).min(bytes.len());
            let copied = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
    }
}

/// Replaces a form by another, or wraps it.
fn mutate_form(text: &mut String, random: &mut Random) {
    let places = forms(text);
    if places.is_empty() {
        return;
    }
    let place = places[random.below(places.len())].clone();
    let donor = PROGRAMS[random.below(PROGRAMS.len())];
    let donors = forms(donor);
    let new = match random.below(4) {
        0 => PIECES[40 + random.below(PIECES.len() - 40)].to_owned(),
        1 => text[places[random.below(places.len())].clone()].to_owned(),
        2 => {
            let heads = [
                "map inc",
                "count",
                "str",
                "first",
                "vec",
                "reduce +",
                "pr-str",
                "set",
                "seq",
                "sort",
                "apply str",
            ];
            format!("({} {})", heads[random.below(heads.len())], &text[place.clone()])
        }
        _ => donor[donors[random.below(donors.len())].clone()].to_owned(),
    };
    text.replace_range(place, &new);
}

#[test]
fn what_is_read_prints_and_reads_back() {
    let mut read = 0;
    let count = inputs(40_000);
    for seed in first_seed()..first_seed() + count {
        let mut random = Random::new(seed);
        let mut bytes = NOTATION[random.below(NOTATION.len())].as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            mutate_bytes(&mut bytes, &mut random);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let result = std::panic::catch_unwind(|| fuzzing::reader(&bytes));
        read += u64::from(result.unwrap_or_else(|_| panic!("seed {seed}: {text:?}")));
    }
    // The test would prove little if mutation broke every program.
    assert!(read > count / 8, "{read} of {count}");
}

#[test]
fn any_program_ends_within_its_limits() {
    let mut finished = 0;
    let count = inputs(12_000);
    fuzzing::evaluator(b"1");
    for seed in first_seed()..first_seed() + count {
        let mut random = Random::new(seed);
        let mut text = PROGRAMS[random.below(PROGRAMS.len())].to_owned();
        for _ in 0..=random.below(3) {
            mutate_form(&mut text, &mut random);
            // Text that grows without end tests nothing new.
            text.truncate(text.floor_char_boundary(4_000));
        }
        if random.below(4) == 0 {
            let mut bytes = text.into_bytes();
            mutate_bytes(&mut bytes, &mut random);
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        let (most, result) = most_held(|| std::panic::catch_unwind(|| fuzzing::evaluator(text.as_bytes())));
        finished += u64::from(result.unwrap_or_else(|_| panic!("seed {seed}: {text}")));
        // Two runs exist at the same time, with the texts and documents of their results.
        let allowed = 4 * fuzzing::EVALUATOR_MEMORY + (32 << 20);
        assert!(most < allowed, "seed {seed} held {most}: {text}");
    }
    assert!(finished > count / 10, "{finished} of {count}");
}

#[test]
fn every_prefix_of_a_program_reads_or_fails() {
    for text in NOTATION.iter().chain(&PROGRAMS) {
        for (end, _) in text.char_indices() {
            fuzzing::reader(&text.as_bytes()[..end]);
        }
        fuzzing::evaluator(text.as_bytes());
    }
}
