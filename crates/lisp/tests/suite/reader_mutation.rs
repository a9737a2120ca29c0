//! Mutated programs: whatever the bytes, reading gives forms or an error, never a panic.

use backstitch_lisp::{ReadLimits, completeness, read_all, repair};

const SEEDS: [&str; 8] = [
    "(defn big? \"True if id > 2\" [{:keys [id] :or {id 0}}] (> id 2))\n(def items (filter big? data/rows))",
    "(let [x 0x1F y 2r101 z 1/3 w 1.5e-3 v 9223372036854775808N] #{x y z w v ##Inf ##-Inf ##NaN})",
    "(-> \"a\\tb\\u03bb\\101\\n\" (str \\a \\newline \\u03bb \\o101 \\( \\\") (re-find #\"(\\d+)\\s*\\\"\"))",
    "#(apply + % %2 %&) '(1 [2 {:a/b #{c}}]) #'inc @state #_ #_ a b ^String x ^{:doc \"d\"} y",
    "```clojure\n(println “smart” ‘quote)\u{a0}\u{200b}\r\n```\nprose ; it’s",
    "{:a 1, :b [1 2 3], \"c\" nil, 'd true, \\e false} #inst \"2026-01-02\" #time/date \"2026-01-02\"",
    "(loop [i 0 acc []] (if (< i 10) (recur (inc i) (conj acc i)) acc)) (comment (a b)) #! shebang",
    "(try (throw (ex-info \"no\" {:a 1})) (catch Exception e (ex-data e)) (finally nil)) clojure.core// a' .trim",
];

const PIECES: [&str; 40] = [
    "(", ")", "[", "]", "{", "}", "#{", "#(", "\"", "\\", "'", "#'", "#_", "#\"", "^", "@", "`", "~", ":",
    "::", "%", "%&", "##", "#", ";", "\n", "\r", "0x", "1/", "N", "r", "\\u", "\u{feff}", "λ", "😀", "“",
    "```", "\u{0}", "#inst", "-.",
];

/// A small generator of numbers, so that a failure can be run again by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn mutate(random: &mut Random) -> String {
    let mut bytes = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            1 => {
                let piece = PIECES[random.below(PIECES.len())].bytes();
                bytes.splice(at..at, piece);
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
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn any_text_reads_or_fails() {
    let limits = ReadLimits::default().with_depth(40);
    let mut read = 0;
    for seed in 1..=60_000u64 {
        let text = mutate(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        for text in [text.as_str(), &repair(&text)] {
            match read_all(text, &limits) {
                Ok(forms) => {
                    read += 1;
                    for form in forms {
                        assert!(form.span.text(text).is_some(), "seed {seed}: {text:?}");
                    }
                }
                Err(error) => {
                    assert!(error.line().is_some(), "seed {seed}: {text:?}: {error}");
                    let _ = (error.render(), completeness(text, &limits));
                }
            }
        }
    }
    // The test would prove little if mutation broke everything.
    assert!(read > 10_000, "{read}");
}

#[test]
fn every_prefix_of_a_program_reads_or_fails() {
    for seed in SEEDS {
        for (end, _) in seed.char_indices() {
            let _ = read_all(&seed[..end], &ReadLimits::default());
            let _ = repair(&seed[..end]);
        }
    }
}
