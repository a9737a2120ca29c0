//! Interrupted programs: they run again and continue, or end with an error.

use std::sync::Arc;

use backstitch_core::journal::{Position, Record, RecordBody, TurnFinished};
use backstitch_core::machine::{EvaluationHistory, MachineAction, MachineFactory};
use proptest::prelude::*;
use serde_json::json;

use crate::simulation::{CALLS_EVERYWHERE, Simulation, agent, fenced, simulate};

#[test]
fn a_program_that_does_something_else_when_it_runs_again_is_ended() {
    let program = "(tool/twice 1) (tool/twice 2) (return 1)";
    for change in [
        "(tool/twice 1) (tool/twice 3) (return 1)",
        "(tool/twice 1) (return 1)",
        "(tool/twice 1) (fails)",
        "(boom",
    ] {
        let mut simulation = Simulation::new(agent(), &[&fenced(program), &fenced("(return 2)")]);
        while simulation.ran.len() < 2 {
            let action = simulation.next();
            // Dies after the second call is made and before it runs.
            let dies = (simulation.ran.len() == 1).then_some(0);
            simulation.act(action, dies);
            if dies.is_some() {
                break;
            }
        }
        simulation.last_program().source = Some(change.into());
        simulation.rebuild();
        let ending = simulation.drive();
        assert_eq!(ending.output, Some(json!(2)), "{change}");
        let turn = &simulation.finished_turns()[0];
        let error = turn.error.as_ref().unwrap();
        assert_eq!(error.kind, "program_diverged", "{change}");
        assert!(error.message.contains("twice({\"n\":1}) done"), "{}", error.message);
        assert_eq!(turn.tool_calls.len(), 2, "{change}");
        let view = simulation.view();
        assert_eq!(view.pending_calls().count(), 0, "{change}: no call stays open");
        assert_eq!(simulation.ran.len(), 1, "{change}: the second call was never run");
    }
}

#[test]
fn another_interpreter_does_not_run_a_program_again() {
    let mut simulation =
        Simulation::new(agent(), &[&fenced("(tool/twice 1) (tool/twice 2)"), &fenced("(return 2)")]);
    loop {
        let action = simulation.next();
        let is_call = matches!(action, MachineAction::Call(_));
        simulation.act(action, None);
        if is_call {
            break;
        }
    }
    simulation.last_program().interpreter = "0.0.1/0".to_owned();
    simulation.rebuild();
    let ending = simulation.drive();
    assert_eq!(ending.output, Some(json!(2)));
    let error = simulation.finished_turns()[0].error.clone().unwrap();
    assert_eq!(error.kind, "program_interrupted");
    assert!(
        error.message.contains("0.0.1/0") && error.message.contains("twice({\"n\":1}) done"),
        "{}",
        error.message
    );
}

/// Drives until this number of calls has run and the next one is made, and dies there.
fn dies_in_call(simulation: &mut Simulation, ran: usize) {
    loop {
        let action = simulation.next();
        let dies = simulation.ran.len() == ran && matches!(action, MachineAction::Call(_));
        simulation.act(action, dies.then_some(0));
        if dies {
            return;
        }
    }
}

#[test]
fn a_divergence_does_not_say_what_is_hidden_and_is_short() {
    let program = "(tool/twice {:n 1 :_key data/_token :long (clojure.string/join (repeat 50000 \"x\"))})";
    let mut simulation = Simulation::new(agent(), &[&fenced(program), &fenced("(return 2)")]);
    dies_in_call(&mut simulation, 0);
    simulation.last_program().source = Some("(tool/twice {:n 2 :_key data/_token})".into());
    simulation.rebuild();
    simulation.drive();
    let error = simulation.finished_turns()[0].error.clone().unwrap();
    assert_eq!(error.kind, "program_diverged");
    assert!(error.message.contains("now it calls twice with {\"n\":2}"), "{}", error.message);
    assert!(error.message.len() < 1_000 && !error.message.contains("s3cret"), "{}", error.message);
}

#[test]
fn tasks_of_a_program_that_is_not_resumed_stay_done() {
    let programs =
        ["(task \"once\" (tool/twice 21)) (tool/twice 2)", "(return (task \"once\" (tool/twice 1)))"];
    let mut simulation = Simulation::new(agent(), &[&fenced(programs[0]), &fenced(programs[1])]);
    dies_in_call(&mut simulation, 1);
    simulation.last_program().interpreter = "0.0.1/0".to_owned();
    simulation.rebuild();
    assert_eq!(simulation.drive().output, Some(json!(42)));
    assert_eq!(simulation.ran.len(), 1);
}

#[test]
fn a_program_without_recorded_inputs_is_not_run_again() {
    let answers = [fenced("(tool/twice 1) (tool/twice 2)"), fenced("(return 2)")];
    let mut simulation = Simulation::new(agent(), &[&answers[0], &answers[1]]);
    while simulation.ran.is_empty() {
        let action = simulation.next();
        simulation.act(action, None);
    }
    // An imported conversation comes without its journal.
    let gone = |record: &Record| matches!(record.body, RecordBody::ProgramStarted(_));
    let at = simulation.records.iter().position(gone).unwrap();
    simulation.records.remove(at);
    for (place, record) in simulation.records.iter_mut().enumerate() {
        record.position = Position::new(place as u64);
    }
    simulation.rebuild();
    let ending = simulation.drive();
    assert_eq!(ending.output, Some(json!(2)));
    assert_eq!(simulation.finished_turns()[0].error.as_ref().unwrap().kind, "program_interrupted");
    assert_eq!(simulation.ran.len(), 1);
}

#[test]
fn a_turn_that_cannot_be_read_is_reported() {
    let (mut simulation, _) = simulate(agent(), &["(def x 1)", "(return x)"]);
    for record in &mut simulation.records {
        if let RecordBody::TurnFinished(turn) = &mut record.body {
            let turn: &mut TurnFinished = Arc::make_mut(turn);
            turn.data = json!({"number": "one"}).into();
        }
    }
    let past = EvaluationHistory::of(&simulation.view(), simulation.evaluation).unwrap();
    let Err(error) = simulation.machinery.rebuild(&past) else { panic!("it was rebuilt") };
    assert!(error.to_string().contains("turn 1"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whichever record the machine is rebuilt at, the evaluation ends the same, and no call runs twice.
    #[test]
    fn rebuilt_anywhere_it_ends_the_same(
        programs in prop::sample::subsequence(CALLS_EVERYWHERE, 1..=4),
        dies in prop::collection::vec((0_usize..30, prop::option::of(0_usize..3)), 0..6),
    ) {
        let mut programs = programs;
        programs.push("(return {:n (count (map tool/twice [1 2 3]))})");
        let (quiet, expected) = simulate(agent(), &programs);
        let answers: Vec<String> = programs.iter().map(|program| fenced(program)).collect();
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        let mut simulation = Simulation::new(agent(), &answers);
        let mut step = 0;
        let ending = loop {
            let action = simulation.next();
            let death = dies.iter().find(|(at, _)| *at == step);
            step += 1;
            match death {
                Some((_, after)) => {
                    if let Some(ending) = simulation.act(action, *after) {
                        break ending;
                    }
                    simulation.rebuild();
                }
                None => {
                    if let Some(ending) = simulation.act(action, None) {
                        break ending;
                    }
                }
            }
        };
        prop_assert_eq!(&ending, &expected);
        prop_assert_eq!(simulation.finished_turns(), quiet.finished_turns());
        prop_assert_eq!(&simulation.ran, &quiet.ran);
    }
}
