//! Unchanged turns: all of them, or the last.

use backstitch_core::journal::Role;
use backstitch_repl::compression::{
    Compression, DisplayOptions, FullOptions, NoCompression, RenderContext, Trim, TrimOptions,
};

use crate::support::{Agent, bare, spoken};

const PROGRAMS: [&str; 4] = [
    "(def a (tool/search {:query \"q\" :limit 1}))",
    "(println \"seen\") (def b 2)",
    "(nth [] 1)",
    "(+ 1 2)",
];

fn trim(turns: usize) -> Trim {
    Trim::new(TrimOptions { turns, display: DisplayOptions::specified(), ..TrimOptions::default() })
}

#[test]
fn without_compression_all_turns_are_as_they_were() {
    let agent = Agent::after(&PROGRAMS);
    let rendered = NoCompression::new(FullOptions { display: DisplayOptions::specified() })
        .render(&agent.history(), &RenderContext::new("M").system("S").max_turns(Some(9)));
    let error = format!("Error: {}", agent.turns[2].error.as_ref().unwrap().message);
    let answer = |turn: usize| (Role::Assistant, agent.turns[turn].answer.as_str());
    assert_eq!(
        spoken(&rendered),
        [
            (Role::System, "S"),
            (Role::User, "M"),
            answer(0),
            (
                Role::User,
                r#";; === user/ (your prelude) ===
a                             ; = list[1], sample: [{:id 1 :title "A"}]

;; Tool calls made:
;   search({:limit 1 :query "q"}) -> [{:id 1 :title "A"}]"#
            ),
            answer(1),
            (
                Role::User,
                ";; === user/ (your prelude) ===\nb                             ; = integer\n\n;; Output:\nseen"
            ),
            answer(2),
            (Role::User, &error),
            answer(3),
            (Role::User, ";; Result: 3\n\nTurns left: 4"),
        ]
    );
    let statistics = &rendered.statistics;
    assert_eq!((statistics.turns_whole, statistics.turns_dropped, statistics.turns_summarised), (4, 0, 0));
    assert_eq!(
        (statistics.tool_calls.shown, statistics.prints.shown, statistics.definitions.shown),
        (1, 1, 2)
    );
}

#[test]
fn a_single_turn_has_neither_history_nor_a_count() {
    let rendered = NoCompression::new(FullOptions { display: DisplayOptions::specified() })
        .render(&Agent::new().history(), &RenderContext::new("M").max_turns(Some(1)));
    assert_eq!(spoken(&rendered), [(Role::User, "M")]);
}

#[test]
fn definitions_of_trimmed_turns_are_still_shown() {
    let agent = Agent::after(&PROGRAMS);
    let rendered = trim(2).render(&agent.history(), &bare());
    let spoken = spoken(&rendered);
    assert_eq!(
        spoken[0].1,
        r#"M

;; === user/ (your prelude) ===
a                             ; = list[1], sample: [{:id 1 :title "A"}]
b                             ; = integer

;; (Turns 1 to 2 are not shown)"#
    );
    assert_eq!(spoken[1], (Role::Assistant, agent.turns[2].answer.as_str()));
    assert_eq!(spoken.len(), 5);
    let statistics = &rendered.statistics;
    assert_eq!((statistics.turns_whole, statistics.turns_dropped), (2, 2));
    assert_eq!((statistics.tool_calls.total, statistics.tool_calls.shown), (1, 0));
    assert_eq!((statistics.failed_turns.total, statistics.failed_turns.shown), (1, 1));
    assert_eq!((statistics.definitions.total, statistics.definitions.shown), (2, 2));
}

#[test]
fn tokens_press_as_well_and_the_last_turn_stays() {
    let long = format!("\"{}\"", "word ".repeat(400));
    let agent = Agent::after(&[&long, &long, &long, &long]);
    let press = |tokens: u64| {
        let strategy = Trim::new(TrimOptions {
            tokens: Some(tokens),
            display: DisplayOptions::specified(),
            ..TrimOptions::default()
        });
        strategy.render(&agent.history(), &bare()).statistics.turns_whole
    };
    assert_eq!(press(100_000), 4);
    assert_eq!(press(1_200), 2);
    assert_eq!(press(0), 1);
    assert_eq!(trim(0).render(&agent.history(), &bare()).statistics.turns_whole, 1);
}

#[test]
fn turns_are_left_out_some_at_a_time() {
    let mut agent = Agent::new();
    let mut shown = Vec::new();
    for _ in 0..14 {
        agent.turn("1");
        shown.push(trim(8).render(&agent.history(), &bare()).statistics.turns_whole);
    }
    assert_eq!(shown, [1, 2, 3, 4, 5, 6, 7, 8, 7, 8, 7, 8, 7, 8]);
}

#[test]
fn older_definitions_have_a_budget_too() {
    let mut agent = Agent::new();
    for number in 0..30 {
        agent.turn(&format!("(def v{number:02} {number})"));
    }
    let display = DisplayOptions { user_budget: 120, ..DisplayOptions::specified() };
    let strategy = Trim::new(TrimOptions { turns: 1, display, ..TrimOptions::default() });
    let rendered = strategy.render(&agent.history(), &bare());
    assert_eq!(
        rendered.messages[0].text,
        "M

;; === user/ (your prelude) ===
;; (27 older definitions not shown)
v27                           ; = integer, sample: 27
v28                           ; = integer, sample: 28

;; (Turns 1 to 29 are not shown)"
    );
}
