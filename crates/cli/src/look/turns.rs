//! `show --turns`: prints the turns of agents that answer with programs, in full.

use backstitch::host::{EvaluationTurns, OpenProgram, SessionAt};
use backstitch::repl::{Excerpt, Turn, TurnCallOutcome, TurnSignal};
use backstitch_lisp::{Value, to_edn, to_json};

use crate::open::short;

/// Prints the turns of a session for people.
pub(crate) async fn print(shown: &SessionAt) -> anyhow::Result<()> {
    let all = shown.turns().await?;
    if all.iter().all(|of_one| of_one.turns.is_empty() && of_one.unfinished.is_none()) {
        println!("there are no turns yet: the agent has answered with no program");
        return Ok(());
    }
    let machinery = shown.machinery().await;
    for EvaluationTurns { turns, unfinished } in &all {
        let results = machinery.as_ref().map(|machinery| machinery.results(turns)).unwrap_or_default();
        for (index, turn) in turns.iter().enumerate() {
            print_turn(turn, results.get(index).and_then(Option::as_ref));
        }
        if let Some(OpenProgram { turn, source, is_over }) = unfinished {
            println!("turn {turn}: {}", if *is_over { "was cut off" } else { "has not ended" });
            print_indented(source, "    ");
        }
    }
    Ok(())
}

fn print_turn(turn: &Turn, result: Option<&Value>) {
    let how = match (&turn.error, turn.signal) {
        (Some(error), _) => format!("failed ({})", error.kind),
        (None, Some(TurnSignal::Return)) => "returned".to_owned(),
        (None, Some(TurnSignal::Fail)) => "gave up".to_owned(),
        (None, None) => "ok".to_owned(),
    };
    println!("turn {}: {how}", turn.number);
    print_indented(turn.program.as_deref().unwrap_or(&turn.answer), "    ");
    for call in &turn.tool_calls {
        let outcome = match &call.outcome {
            TurnCallOutcome::Result(result) => format!("-> {}", text_of(result)),
            TurnCallOutcome::Error(message) => format!("failed: {}", message.replace('\n', "\n    ")),
            TurnCallOutcome::Open => "has no result".to_owned(),
        };
        let called = format!("call {} {} [{}]", call.name, text_of(&call.arguments), short(call.call_id));
        print_indented(&format!("{called} {outcome}"), "  ");
    }
    turn.prints.iter().for_each(|printed| print_indented(printed, "  | "));
    if let Some(error) = &turn.error {
        print_indented(&error.message, "  ! ");
    }
    match (result, &turn.result) {
        (Some(whole), Some(_)) => print_indented(&whole_text_of(whole), "  = "),
        (None, Some(excerpt)) => print_indented(&text_of(excerpt), "  = "),
        (_, None) => {}
    }
}

fn whole_text_of(value: &Value) -> String {
    to_json(value, None).map_or_else(|_| to_edn(value), |json| json.to_string())
}

fn text_of(excerpt: &Excerpt) -> String {
    match excerpt {
        Excerpt::Whole(json) => json.to_string(),
        Excerpt::Sample { text, label } => format!("{text} ({label})"),
    }
}

/// Prints text line by line, indented.
fn print_indented(text: &str, before: &str) {
    text.lines().for_each(|line| println!("{before}{line}"));
}
