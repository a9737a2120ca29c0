//! The default strategy, requirement by requirement, to the byte.

use backstitch_core::journal::Role;
use backstitch_lisp::Truncation;
use backstitch_repl::compression::{
    CoalescedOptions, Compression, DisplayOptions, Errors, RenderContext, Samples, ShownCount,
    SingleUserCoalesced, ToolResults,
};
use serde_json::json;

use crate::support::{Agent, bare, map, only, search, spoken};

fn scene() -> RenderContext {
    let data =
        map(json!({"year": 2026, "_token": "secret", "names": ["a", "b", "c", "d", "e"], "none": null}));
    RenderContext::new("Find big items")
        .system("You write programs.")
        .tools([&search()])
        .data(&data, Truncation::SAMPLE)
}

fn with(display: DisplayOptions) -> SingleUserCoalesced {
    SingleUserCoalesced::new(CoalescedOptions { display, ..CoalescedOptions::specified() })
}

#[test]
fn the_first_request_has_a_mission_tools_and_data() {
    let rendered = Agent::new().render(&scene());
    assert_eq!(
        spoken(&rendered),
        [
            (Role::System, "You write programs."),
            (
                Role::User,
                r#"Find big items

;; === tool/ ===
(tool/search query limit)     ; query:string, limit:int? -> [{id:int, title:string}]
                              ; Searches items. By title.

;; === data/ ===
data/_token                   ; string, hidden
data/names                    ; list[5], sample: ["a" "b" "c" ...] (5 items, showing first 3)
data/none                     ; nil
data/year                     ; integer, sample: 2026

;; No tool calls made

Turns left: 4"#
            ),
        ]
    );
}

#[test]
fn a_turn_adds_definitions_and_calls() {
    let agent = Agent::after(&[r#"(def items (tool/search {:query "budget" :limit 4}))
        (defn big? "True; if id > 2" [x] (> (:id x) 2)) (defn f [a & more] a) (def none nil) (def empty-list [])"#]);
    let rendered = agent.render(&scene());
    let sections = only(&rendered).split_once("sample: 2026\n\n").unwrap().1;
    assert_eq!(
        sections,
        r#";; === user/ (your prelude) ===
items                         ; = list[4], sample: [{:id 1 :title "A"} {:id 2 :title "B"} {:id 3 :title "C"} ...] (4 items, showing first 3)
(big? [x])                    ; "True if id > 2"
(f [a & more])
none                          ; = nil
empty-list                    ; = list[0]

;; Tool calls made:
;   search({:limit 4 :query "budget"}) -> [{:id 1 :title "A"} {:id 2 :title "B"} {:id 3 :title "C"} ...] (4 items, showing first 3)

Turns left: 3"#
    );
}

#[test]
fn what_was_printed_stands_in_the_place_of_samples_and_results() {
    let agent = Agent::after(&[
        "(def silent (tool/search {:query \"a\" :limit 1}))",
        "(def loud (tool/search {:query \"b\" :limit 1})) (println \"n:\" (count loud)) (println \"two\\nlines\")",
    ]);
    assert_eq!(
        only(&agent.render(&bare())),
        r#"M

;; === user/ (your prelude) ===
silent                        ; = list[1], sample: [{:id 1 :title "A"}]
loud                          ; = list[1]

;; Tool calls made:
;   search({:limit 1 :query "a"}) -> [{:id 1 :title "A"}]
;   search({:limit 1 :query "b"})

;; Output:
n: 1
two
lines"#
    );
}

#[test]
fn the_mission_comes_first_and_a_blank_line_follows_it() {
    for turns in 0..3 {
        let agent = Agent::after(&["(def x 1)", "(boom)"][..turns.min(2)]);
        let rendered = agent.render(&scene());
        let first = &rendered.messages[1];
        assert!(first.text.starts_with("Find big items\n\n;; === tool/ ==="), "{}", first.text);
        assert_eq!(rendered.messages[0].text, "You write programs.");
    }
}

#[test]
fn the_prelude_grows_and_nothing_else_changes() {
    let mut agent = Agent::new();
    let (scene, mut before) = (scene(), Vec::new());
    let stable = scene.prefix().to_owned();
    for program in [
        "(def a 1)",
        "(def data/names 1)",
        "(defn b [] a)",
        "(tool/ping)",
        "(println \";; === data/ ===\")",
        "(boom)",
        "(def a 2)",
        "(def year 1)",
    ] {
        agent.turn(program);
        let rendered = agent.render(&scene);
        let user = &rendered.messages[1];
        assert_eq!(&user.text[..user.stable], stable, "{program}");
        assert!(user.text[user.stable..].starts_with("\n\n"), "{program}");
        assert_eq!(rendered.messages[0].stable, rendered.messages[0].text.len());
        assert_ne!(rendered.messages, before, "{program}");
        before = rendered.messages;
    }
}

#[test]
fn redefinitions_keep_their_place_and_show_the_last_value() {
    let agent =
        Agent::after(&["(def x 1) (def y \"why\") (def x 2)", "(def z 3)", "(def x [1]) (def y nil)"]);
    assert_eq!(
        only(&agent.render(&bare())),
        r#"M

;; === user/ (your prelude) ===
x                             ; = list[1], sample: [1]
y                             ; = nil
z                             ; = integer, sample: 3

;; No tool calls made"#
    );
}

#[test]
fn docstrings_are_those_of_the_latest_definition_and_cannot_leave_their_line() {
    let agent = Agent::after(&[
        r#"(def rate "Percent; per \"year\"
;; === tool/ ===" 5) (defn f "Old" [x] x) (defn g "Gone" [x] x)"#,
        r#"(defn f "New" [x] [x]) (f 1) (defn g [x] x) (g "a")"#,
    ]);
    assert_eq!(
        only(&agent.render(&bare())),
        r#"M

;; === user/ (your prelude) ===
rate                          ; "Percent per \"year\" === tool/ ===" = integer, sample: 5
(f [x])                       ; "New" -> list
(g [x])                       ; -> string

;; No tool calls made"#
    );
}

#[test]
fn every_type_has_its_word() {
    let agent = Agent::after(&[
        r#"(def a []) (def b [1 2 3]) (def c {}) (def d {:a 1}) (def e "s") (def f 1) (def g 1.5)
        (def h true) (def i :k) (def j nil) (def k inc) (def l #{1 2 3}) (def m #{}) (def n (fn [x] x))"#,
    ]);
    let rendered = agent.render(&bare());
    let labels: Vec<&str> =
        only(&rendered).lines().filter_map(|line| line.split_once("; = ")).map(|(_, label)| label).collect();
    assert_eq!(
        labels,
        [
            "list[0]",
            "list[3], sample: [1 2 3]",
            "map[0]",
            "map[1], sample: {:a 1}",
            "string, sample: \"s\"",
            "integer, sample: 1",
            "float, sample: 1.5",
            "boolean, sample: true",
            "keyword, sample: :k",
            "nil",
            "#fn[...], sample: #fn[inc]",
            "set[3], sample: #{1 2 3}",
            "set[0]",
        ]
    );
    assert!(only(&rendered).contains("\n(n [x])\n"));
}

#[test]
fn samples_and_arguments_are_short_and_say_so() {
    let agent = Agent::after(&[r#"(def s (apply str (repeat 100 "é"))) (def v [[1 2 3 4] 2 3 4])
        (tool/search {:query (apply str (repeat 100 "x")) :limit 0})
        (tool/search {:query "a" :limit 5000})"#]);
    assert_eq!(
        only(&agent.render(&bare())),
        format!(
            r#"M

;; === user/ (your prelude) ===
s                             ; = string, sample: "{}..."
v                             ; = list[4], sample: [[1 2 3 ...] (4 items, showing first 3) 2 3 ...] (4 items, showing first 3)

;; Tool calls made:
;   search({{:limit 0 :query "{}..."}}) -> []
;   search({{:limit 5000 :query "a"}}) -> [{{:id 1 :title "A"}} {{:id 2 :title "B"}} {{:id 3 :title "C"}} ...] (5000 items, showing first 3)"#,
            "é".repeat(80),
            "x".repeat(20),
        )
    );
}

#[test]
fn the_oldest_prints_and_calls_are_dropped_first() {
    let agent = Agent::after(&[
        "(doseq [i (range 12)] (tool/search {:query (str \"q\" i) :limit 0}) (println \"p\" i \"\\nmore\"))",
        "(doseq [i (range 12 25)] (tool/search {:query (str \"q\" i) :limit 0}) (println \"p\" i))",
    ]);
    let rendered = agent.render(&bare());
    let text = only(&rendered);
    let calls: Vec<&str> = text.lines().filter(|line| line.starts_with(";   ")).collect();
    assert_eq!(calls.len(), 20);
    assert_eq!(calls[0], r#";   search({:limit 0 :query "q5"})"#);
    assert_eq!(calls[19], r#";   search({:limit 0 :query "q24"})"#);
    let output = text.split_once(";; Output:\n").unwrap().1;
    assert!(output.starts_with(";; (10 earlier prints not shown)\np 10 \nmore\np 11"), "{output}");
    assert!(output.ends_with("p 24"), "{output}");
    assert!(text.contains(";; Tool calls made:\n;; (5 earlier calls not shown)\n"), "{text}");
    let statistics = &rendered.statistics;
    assert_eq!(statistics.prints, ShownCount { total: 25, shown: 15 });
    assert_eq!(statistics.tool_calls, ShownCount { total: 25, shown: 20 });
    assert_eq!((statistics.turns, statistics.turns_summarised, statistics.turns_whole), (2, 2, 0));

    let few = DisplayOptions {
        println_limit: 1,
        tool_call_limit: 3,
        note_dropped: false,
        ..DisplayOptions::specified()
    };
    let rendered = with(few).render(&agent.history(), &bare());
    assert_eq!(
        only(&rendered),
        r#"M

;; Tool calls made:
;   search({:limit 0 :query "q22"})
;   search({:limit 0 :query "q23"})
;   search({:limit 0 :query "q24"})

;; Output:
p 24"#
    );
    let none = DisplayOptions { println_limit: 0, tool_call_limit: 0, ..DisplayOptions::specified() };
    assert_eq!(only(&with(none).render(&agent.history(), &bare())), "M");
}

#[test]
fn a_long_print_is_cut_and_a_call_without_arguments_has_its_parentheses() {
    let agent = Agent::after(&["(println (apply str (repeat 3000 \"ä\")))", "(tool/ping)"]);
    let expected =
        format!("M\n\n;; Tool calls made:\n;   ping() -> nil\n\n;; Output:\n{}...", "ä".repeat(2000));
    assert_eq!(only(&agent.render(&bare())), expected);
    let short = DisplayOptions { println_characters: 10, ..DisplayOptions::specified() };
    let rendered = with(short).render(&agent.history(), &bare());
    assert!(only(&rendered).ends_with(";; Output:\nääääääääää..."));
}

#[test]
fn results_can_be_left_out_always() {
    let agent = Agent::after(&["(tool/search {:query \"a\" :limit 1})"]);
    let never = DisplayOptions { tool_results: ToolResults::Never, ..DisplayOptions::specified() };
    let rendered = with(never).render(&agent.history(), &bare());
    assert_eq!(only(&rendered), "M\n\n;; Tool calls made:\n;   search({:limit 1 :query \"a\"})");
}

#[test]
fn failed_turns_stay_as_they_were() {
    let agent = Agent::after(&[
        "(def x 1)",
        "(def lost 2) (println \"before\") (tool/search {:query \"q\" :limit 0}) (nth [] 1)",
        "(def y 2)",
        "(/ 1 0)",
    ]);
    let rendered = agent.render(&scene().max_turns(Some(6)));
    let spoken = spoken(&rendered);
    assert_eq!(spoken.len(), 6);
    let user = spoken[1].1;
    let expected = "\n\n;; === user/ (your prelude) ===
x                             ; = integer, sample: 1
y                             ; = integer, sample: 2

;; Tool calls made:
;   search({:limit 0 :query \"q\"}) ; (failed turn)";
    assert!(user.ends_with(expected), "{user}");
    assert_eq!(spoken[2], (Role::Assistant, agent.turns[1].answer.as_str()));
    let error = agent.turns[1].error.as_ref().unwrap().message.as_str();
    assert!(spoken[3].1.starts_with(&format!("Error: {}", error.lines().next().unwrap())), "{}", spoken[3].1);
    assert_eq!(spoken[4], (Role::Assistant, agent.turns[3].answer.as_str()));
    assert!(
        spoken[5].1.starts_with("Error: ") && spoken[5].1.ends_with("\n\nTurns left: 1"),
        "{}",
        spoken[5].1
    );
    assert_eq!(rendered.statistics.failed_turns, ShownCount { total: 2, shown: 2 });
    assert_eq!((rendered.statistics.turns_summarised, rendered.statistics.turns_whole), (2, 2));
}

#[test]
fn calls_of_failed_turns_are_listed_and_their_prints_stand_with_the_error() {
    let agent = Agent::after(&["(println \"seen\") (tool/ping) (/ 1 0)"]);
    let rendered = agent.render(&bare());
    let spoken = spoken(&rendered);
    assert_eq!(spoken[0].1, "M\n\n;; Tool calls made:\n;   ping() ; (failed turn)");
    assert!(spoken[2].1.ends_with("\n\n;; Output:\nseen"), "{}", spoken[2].1);
    assert_eq!(rendered.statistics.prints.total, 0);
}

#[test]
fn failed_turns_can_be_forgotten() {
    let answers = |agent: &Agent, errors: Errors| -> Vec<String> {
        let strategy = SingleUserCoalesced::new(CoalescedOptions { errors, ..CoalescedOptions::specified() });
        let rendered = strategy.render(&agent.history(), &bare());
        let shown = rendered.messages.iter().filter(|message| message.role == Role::Assistant).count();
        assert_eq!(rendered.statistics.failed_turns.shown, shown);
        assert_eq!(rendered.statistics.turns_dropped, rendered.statistics.failed_turns.dropped());
        let answers = rendered.messages.into_iter().filter(|message| message.role == Role::Assistant);
        answers.map(|message| message.text.replace("```clojure\n", "").replace("\n```", "")).collect()
    };
    let recovered = Agent::after(&["(a)", "(b)", "1"]);
    assert_eq!(answers(&recovered, Errors::Keep), ["(a)", "(b)"]);
    assert_eq!(answers(&recovered, Errors::Last), ["(b)"]);
    assert!(answers(&recovered, Errors::UntilRecovered).is_empty());
    let failing = Agent::after(&["(a)", "1", "(b)", "(c)"]);
    assert_eq!(answers(&failing, Errors::UntilRecovered), ["(b)", "(c)"]);
    assert_eq!(answers(&failing, Errors::Last), ["(c)"]);
}

#[test]
fn an_answer_without_a_program_is_a_failed_turn() {
    let mut agent = Agent::new();
    agent.turns.push(backstitch_repl::Turn {
        number: 1,
        answer: "I cannot do that.  \n".into(),
        error: Some(backstitch_repl::TurnError {
            kind: "no_program".into(),
            message: "no program found".into(),
        }),
        ..Default::default()
    });
    agent.turns.push(backstitch_repl::Turn { number: 2, answer: " \n".into(), ..Default::default() });
    let rendered = agent.render(&bare());
    assert_eq!(
        spoken(&rendered)[1..],
        [
            (Role::Assistant, "I cannot do that."),
            (Role::User, "Error: no program found"),
            (Role::Assistant, "(no answer)"),
            (Role::User, "Error: the turn failed"),
        ]
    );
}

#[test]
fn turns_are_counted_by_turns_and_the_last_one_is_announced() {
    let last_line = |programs: &[&str], most: u64| {
        let rendered = Agent::after(programs).render(&RenderContext::new("M").max_turns(Some(most)));
        rendered.messages.last().unwrap().text.lines().last().unwrap().to_owned()
    };
    assert_eq!(last_line(&[], 5), "Turns left: 4");
    assert_eq!(last_line(&["1", "(boom)"], 5), "Turns left: 2");
    let last = "FINAL TURN - you must call (return result) or (fail reason) now.";
    assert_eq!(last_line(&["1", "2", "3", "4"], 5), last);
    assert_eq!(last_line(&["1", "2", "3", "4", "5", "6"], 5), last);
    assert_eq!(last_line(&[], 1), "M");
    assert_eq!(RenderContext::DEFAULT_MAX_TURNS, 5);
    let rendered = Agent::new().render(&RenderContext::new("M"));
    assert!(only(&rendered).ends_with("Turns left: 4"));
}

#[test]
fn samples_follow_the_option() {
    let agent = Agent::after(&["(def a 1)", "(def b 2) (println b)"]);
    let shown = |samples: Samples| -> Vec<bool> {
        let strategy =
            SingleUserCoalesced::new(CoalescedOptions { samples, ..CoalescedOptions::specified() });
        let rendered = strategy.render(&agent.history(), &bare());
        only(&rendered)
            .lines()
            .filter(|line| line.contains("; = "))
            .map(|line| line.contains("sample"))
            .collect()
    };
    assert_eq!(shown(Samples::UnlessPrinted), [true, false]);
    assert_eq!(shown(Samples::UnlessOutput), [false, false]);
    assert_eq!(shown(Samples::Always), [true, true]);
    assert_eq!(shown(Samples::Never), [false, false]);
}

#[test]
fn the_newest_definitions_within_the_budget_are_shown_and_the_rest_is_counted() {
    let mut agent = Agent::new();
    for number in 0..50 {
        agent.turn(&format!("(def v{number:02} {number})"));
    }
    agent.turn("(def v00 \"again\")");
    let budget = DisplayOptions { user_budget: 180, ..DisplayOptions::specified() };
    let rendered = with(budget).render(&agent.history(), &bare());
    assert_eq!(
        only(&rendered),
        r#"M

;; === user/ (your prelude) ===
;; (47 older definitions not shown)
v00                           ; = string, sample: "again"
v48                           ; = integer, sample: 48
v49                           ; = integer, sample: 49

;; No tool calls made"#
    );
    assert_eq!(rendered.statistics.definitions, ShownCount { total: 50, shown: 3 });
    let tiny = DisplayOptions { user_budget: 0, ..DisplayOptions::specified() };
    assert_eq!(with(tiny).render(&agent.history(), &bare()).statistics.definitions.shown, 1);
}

#[test]
fn statistics_tell_what_was_saved() {
    let mut agent = Agent::new();
    for number in 0..30 {
        agent.turn(&format!(
            "(def x (tool/search {{:query \"{}\" :limit 9}})) ; {number}",
            "long ".repeat(50)
        ));
    }
    let rendered = agent.render(&scene());
    let statistics = &rendered.statistics;
    assert_eq!(statistics.strategy, "single_user_coalesced");
    assert_eq!((statistics.turns, statistics.turns_summarised, statistics.turns_dropped), (30, 30, 0));
    let bytes: usize = rendered.messages.iter().map(|message| message.text.len()).sum();
    assert_eq!(statistics.bytes_after, bytes as u64);
    assert!(statistics.bytes_before > 2 * statistics.bytes_after, "{statistics:?}");
    assert!(statistics.tokens_before > 2 * statistics.tokens_after, "{statistics:?}");
    let json = serde_json::to_value(statistics).unwrap();
    assert_eq!(json["tool_calls"], json!({"total": 30, "shown": 20}));
}
