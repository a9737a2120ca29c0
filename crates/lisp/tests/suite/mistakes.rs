//! Typical mistakes of models, each with the whole text that it gets: `tests/mistakes/mistakes.snap`.
//!
//! The text is the user interface of the language. After an intended change, read it as a model would.

use backstitch_lisp::{Inputs, Limits, MachineOutcome, Tools, Value, from_json};
use serde_json::json;

use crate::support::engine;

/// Programs that look right to a reader who thinks in another language, or misremembers this one.
const MISTAKES: &[&str] = &[
    // Endless or too large.
    "(println 1)\n(def evens (iterate #(+ 2 %) 0))",
    "(range)",
    "(loop [] (recur))",
    "(defn f [n] (+ 1 (f n)))\n(f 1)",
    "(apply max (range))",
    // Names.
    "(count data/itms)",
    "(count data/nothing-like-it)",
    "(let [prices [1 2]] (count pricse))",
    "(let [total 1] totl)",
    "(fn [customer] custmer)",
    "(defn area [w h] (* w h))\n(aera 1 2)",
    "(count ordres)",
    "(tool/serch {:query \"a\"})",
    "(serach {:query \"a\"})",
    "(split \"a b\" #\" \")",
    "(union #{1} #{2})",
    "(join \", \" [1 2])",
    "(frist [1 2])",
    "(user/missing)",
    "(str/nope \"a\")",
    "(foo/bar 1)",
    "(java.time.ZonedDateTime/today)",
    "(clojure.lang.PersistentStack/EMPTY)",
    "(bigdec 1.5)",
    "(.getDayOfWek (LocalDate/parse \"2026-03-01\"))",
    "(Scanner. 1)",
    "(System/getenv \"HOME\")",
    "(s/join \", \" [1 2])",
    "(UUID/randomUUID)",
    "(java.util.UUID/randomUUID)",
    "(java.text.SimpleDateFormat. \"yyyy\")",
    "(.with (LocalDate/now) (java.time.temporal.TemporalAdjusters/lastDayOfMonth))",
    "(json/decode \"{}\")",
    "(StringBuilder.)",
    "(java.util.ArrayList.)",
    "(HashMap. {})",
    "(alength (into-array [1 2]))",
    "(gensym)",
    "(mapv #(tool/search {:query \"a\"}) [1 2])",
    "(+ 1M 2)",
    "(atom 1 :validator pos?)",
    // Other languages.
    "(sum [4 5])",
    "(avg [4 5])",
    "(len [4 5])",
    "(append [1] 2)",
    "(if (!= 1 2) 1 2)",
    "(def x None)",
    "(lambda (x) x)",
    "(defun f (x) x)",
    "{\"x\": 5}",
    "{\"x\":5}",
    "{x: 5}",
    "(fail \\\"no rows\\\")",
    "(console.log 1)",
    "(parseInt \"5\")",
    "(includes \"abc\" \"b\")",
    "x = 5",
    "def f(x): return x",
    "'hello world'",
    "(println f\"{x}\")",
    // What Clojure has and this language does not.
    "(defmacro m [x] x)",
    "(slurp \"file.txt\")",
    "(with-meta [1] {:a 1})",
    "(future 1)",
    "(eval '(+ 1 2))",
    "1.5M",
    "(sorted-map-by :a 1 2)",
    "(re-find #\"(?=a)\" \"a\")",
    "(alter-var-root #'x inc)",
    // Forms.
    "(let [x] x)",
    "(if)",
    "(defn f (x) x)",
    "(fn x (+ x 1))",
    "(cond (= 1 1))",
    "(loop [i 0] (inc (recur i)))",
    "(for x [1 2] x)",
    "(let (x 1) x)",
    "(def)",
    "(+ 1",
    "(+ 1))",
    "(println \"a)",
    "{:a}",
    // Values.
    "(filter [1 2 3] odd?)",
    "(-> [1 2 3] (filter odd?))",
    "(map [1 2] inc)",
    "(sort-by data/orders :total)",
    "(reduce [1 2] +)",
    "(+ 1 nil)",
    "(+ 1 \"2\")",
    "(nil 1)",
    "(5 3)",
    "((first [1 2]) 3)",
    "(\"text\" 1)",
    "(first 5)",
    "(nth [1 2] 5)",
    "(get-in {:a 1} :a)",
    "(assoc [1] 5 :x)",
    "(subs nil 1)",
    "(subs \"abc\" 5)",
    "(str/split \"a,b\" \",\")",
    "(str/upper-case nil)",
    "(Integer/parseInt \"12a\")",
    "(LocalDate/parse \"01.03.2026\")",
    "(LocalDate/parse \"2026-02-30\")",
    "(/ 1 0)",
    "(* 9223372036854775807 2)",
    "(case 9 1 :one)",
    "((fn [x] x))",
    "(defn g [a b] a)\n(g 1)",
    "(map)",
    "(compare :a \"a\")",
    "(sort [1 :a])",
    "(sorted-map 1 :a \"b\" 2)",
    "(contains? (list 1 2) 2)",
    "(keys [1 2])",
    "(conj 5 1)",
    "(merge {:a 1} 5)",
    "(throw \"no\")",
    "(throw (ex-info \"no stock\" {:item \"tea\"}))",
    "(assert (= 1 2) \"must be one\")",
    "(json/parse-string \"{a: 1}\")",
    "(re-pattern \"(\")",
    "(pmap (fn [x] (return x)) [1])",
    "(tool/search 1 2 3)",
];

fn text_of(source: &str) -> String {
    let data = json!({"orders": [{"id": 1, "total": 5}], "items": [1, 2]});
    let Ok(Value::Map(data)) = from_json(&data, &Limits::default()) else { panic!("data") };
    let tools = Tools::new().with("search", ["query", "limit"]);
    let inputs = Inputs { data, tools, ..Inputs::default() };
    let program = match engine().compile(source, &inputs) {
        Ok(program) => program,
        Err(error) => return error.render(),
    };
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => match finished.result {
            Ok(value) => format!("(no error: {})", backstitch_lisp::to_edn(&value)),
            Err(error) => error.render(),
        },
        MachineOutcome::Suspended(_) => "(no error: a call)".to_owned(),
    }
}

#[test]
fn every_mistake_gets_the_text_that_helps() {
    assert!(MISTAKES.len() >= 60);
    let texts: Vec<String> =
        MISTAKES.iter().map(|source| format!(">> {source}\n{}", text_of(source))).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../mistakes");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("mistakes", texts.join("\n\n")));
}

#[test]
fn every_error_names_its_line() {
    for source in MISTAKES {
        let text = text_of(source);
        assert!(text.contains("at line "), "{source}\n{text}");
    }
}
