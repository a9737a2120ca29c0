//! `show --turns`: prints the turns of agents that answer with programs, in full.

use anyhow::Context as _;
use backstitch::code::ErrorCode;
use backstitch::message::Large;
use backstitch::ports::fetch_large;
use backstitch::repl::{Excerpt, LispMachinery, Turn, TurnCallOutcome, TurnSignal};
use backstitch::view::{Evaluation, JournalView};
use backstitch_lisp::{Value, to_edn, to_json};

use super::request::built_to_look;
use crate::error::CommandError;
use crate::open::definition::definition_of;
use crate::open::place::{OpenStore, short};

/// The turns of one evaluation.
pub(crate) struct Turns {
    /// The turns that have ended.
    pub(crate) turns: Vec<Turn>,
    /// The program of a turn that has not ended.
    unfinished: Option<OpenProgram>,
}

/// A program that has not ended.
struct OpenProgram {
    turn: u64,
    source: String,
    /// Whether the evaluation has ended, so the program never will.
    is_over: bool,
}

/// Loads the turns of all evaluations of a session.
pub(crate) async fn of(place: &OpenStore, view: &JournalView) -> anyhow::Result<Vec<Turns>> {
    let mut all = Vec::new();
    for evaluation in view.evaluations() {
        let mut turns = Vec::new();
        for finished in &evaluation.finished_turns {
            let mut finished = finished.clone();
            fetch_large(&*place.store, &mut finished).await.context("a turn cannot be read")?;
            let data = finished.data.inline().cloned().unwrap_or_default();
            turns.push(serde_json::from_value(data).map_err(|error| {
                CommandError::new(ErrorCode::JournalInvalid, format!("a turn cannot be read: {error}"))
            })?);
        }
        let unfinished = unfinished(place, evaluation).await?;
        all.push(Turns { turns, unfinished });
    }
    Ok(all)
}

async fn unfinished(place: &OpenStore, evaluation: &Evaluation) -> anyhow::Result<Option<OpenProgram>> {
    let done = evaluation.finished_turns.last().map_or(0, |turn| turn.turn);
    let Some(mut program) = evaluation.programs.last().filter(|program| program.turn > done).cloned() else {
        return Ok(None);
    };
    fetch_large(&*place.store, &mut program).await.context("a program cannot be read")?;
    let source = program.source.as_ref().and_then(Large::inline).map(ToString::to_string);
    let source = source.unwrap_or_default();
    Ok(Some(OpenProgram { turn: program.turn, source, is_over: evaluation.finished.is_some() }))
}

/// Prints turns for people.
pub(crate) async fn print(place: &OpenStore, view: &JournalView) -> anyhow::Result<()> {
    let all = of(place, view).await?;
    if all.iter().all(|of_one| of_one.turns.is_empty() && of_one.unfinished.is_none()) {
        println!("there are no turns yet: the agent has answered with no program");
        return Ok(());
    }
    let machinery = machinery(place, view).await;
    for Turns { turns, unfinished } in &all {
        let results = machinery.as_ref().map(|machinery| machinery.results(turns)).unwrap_or_default();
        for (index, turn) in turns.iter().enumerate() {
            print_turn(turn, results.get(index).and_then(Option::as_ref));
        }
        if let Some(OpenProgram { turn, source, is_over }) = unfinished {
            println!("turn {turn}: {}", if *is_over { "was cut off" } else { "has not ended" });
            indented(source, "    ");
        }
    }
    Ok(())
}

/// Builds the machinery that computes the full results of turns which hold a sample; `None` if the agent
/// cannot be built here.
async fn machinery(place: &OpenStore, view: &JournalView) -> Option<LispMachinery> {
    let built = built_to_look(&definition_of(place, view, None).await.ok()?).ok()?;
    let tools = built.agent.tools.iter().map(|tool| tool.spec.clone());
    LispMachinery::new(built.lisp?.with_tools(tools)).ok()
}

fn print_turn(turn: &Turn, result: Option<&Value>) {
    let how = match (&turn.error, turn.signal) {
        (Some(error), _) => format!("failed ({})", error.kind),
        (None, Some(TurnSignal::Return)) => "returned".to_owned(),
        (None, Some(TurnSignal::Fail)) => "gave up".to_owned(),
        (None, None) => "ok".to_owned(),
    };
    println!("turn {}: {how}", turn.number);
    indented(turn.program.as_deref().unwrap_or(&turn.answer), "    ");
    for call in &turn.tool_calls {
        let outcome = match &call.outcome {
            TurnCallOutcome::Result(result) => format!("-> {}", text_of(result)),
            TurnCallOutcome::Error(message) => format!("failed: {}", message.replace('\n', "\n    ")),
            TurnCallOutcome::Open => "has no result".to_owned(),
        };
        let called = format!("call {} {} [{}]", call.name, text_of(&call.arguments), short(call.call_id));
        indented(&format!("{called} {outcome}"), "  ");
    }
    turn.prints.iter().for_each(|printed| indented(printed, "  | "));
    if let Some(error) = &turn.error {
        indented(&error.message, "  ! ");
    }
    match (result, &turn.result) {
        (Some(whole), Some(_)) => indented(&whole_text_of(whole), "  = "),
        (None, Some(excerpt)) => indented(&text_of(excerpt), "  = "),
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
fn indented(text: &str, before: &str) {
    text.lines().for_each(|line| println!("{before}{line}"));
}
