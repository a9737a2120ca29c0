//! Programs and their outcomes.

use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{EvaluationOutcome, Role};
use backstitch_core::machine::{MachineAction, MachineEvent};
use backstitch_core::message::{Arguments, Content, Message, OptionCall, PolicyName, RoleHint};
use backstitch_repl::compression::{Compression, NoCompression, SingleUserCoalesced};
use backstitch_repl::{LispOptions, Turn, TurnCallOutcome, TurnSignal};
use serde_json::json;

use crate::simulation::{CALLS_EVERYWHERE, Simulation, agent, fenced, simulate};

#[test]
fn programs_call_tools_wherever_they_stand_and_memory_lasts() {
    let (simulation, ending) = simulate(agent(), CALLS_EVERYWHERE);
    assert_eq!(ending.outcome, EvaluationOutcome::Completed, "{ending:?}");
    assert_eq!(
        ending.output.unwrap(),
        json!({"doubled": [2, 4, 6], "seen": 24, "sums": [6, 10, 14], "again": 42, "before": null, "n": 3})
    );
    let turns = simulation.finished_turns();
    assert_eq!(turns.len(), 5);
    let calls: Vec<usize> = turns.iter().map(|turn| turn.tool_calls.len()).collect();
    assert_eq!(calls, [6, 0, 7, 1, 3]);
    assert_eq!(turns.iter().map(|turn| turn.success).collect::<Vec<_>>(), [true, false, true, false, true]);
    assert_eq!(turns[1].error.as_ref().unwrap().kind, "unbound_var");
    assert!(turns[1].error.as_ref().unwrap().message.contains("line 1"));
    assert_eq!(turns[2].prints, ["sums (6 10 14)"]);
    assert_eq!(turns[3].error.as_ref().unwrap().kind, "tool_error");
    assert!(matches!(turns[3].tool_calls[0].outcome, TurnCallOutcome::Error(_)));
    assert!(turns[3].memory.is_empty(), "what a failed program defined is gone");
    assert_eq!(turns[4].signal, Some(TurnSignal::Return));
    // Each call ran once.
    assert!(simulation.ran.values().all(|times| *times == 1), "{:?}", simulation.ran);
    assert_eq!(simulation.ran.len(), 17);
}

#[test]
fn nothing_that_is_hidden_is_shown() {
    let programs = [
        "(def mine {:_secret data/_token :open 1}) (def rows data/rows)",
        "(case data/_token \"a\" 1)",
        "(apply data/_token [])",
        "(fail {:_secret data/_token :why \"no\"})",
    ];
    let (simulation, ending) = simulate(agent(), &programs);
    assert_eq!(ending.error.unwrap().message, "{:why \"no\"}");
    for shown in &simulation.shown {
        assert!(!shown.contains("s3cret") && !shown.contains("\"hidden\""), "{shown}");
    }
    assert!(simulation.shown[1].contains("mine"));
}

#[test]
fn firewalled_values_reach_no_request_through_errors_or_results() {
    let agent = || agent().with_data("_pin", json!("pin-7788")).with_data("_salary", json!(51234));
    let programs = [
        "(Long/parseLong data/_pin)",
        "data/_pin",
        "(data/_salary 1)",
        "[data/_salary {:a data/_pin}]",
        "(throw (ex-info (str \"no \" data/_pin) {}))",
        "(LocalDate/parse data/_pin)",
        "(case data/_salary 1 2)",
        "(nth [1] data/_salary)",
        "(subs data/_pin 51234)",
        "(str/split data/_pin data/_pin)",
        "(re-pattern (str \"(\" data/_pin))",
        "(set [data/_pin])",
        "(repeat 40 (str data/_pin \" and more of it to make the value a large one\"))",
        "(assert (= 1 data/_salary) data/_pin)",
    ];
    for program in programs {
        for compression in [true, false] {
            let mut agent = agent();
            if !compression {
                agent = agent.with_compression(Arc::new(NoCompression::default()));
            }
            let (simulation, _) = simulate(agent, &[program, "(return 1)"]);
            assert_eq!(simulation.shown.len(), 2, "{program}");
            let shown = &simulation.shown[1];
            // The program itself is shown where it failed, and it names no value.
            assert!(!shown.contains("pin-7788") && !shown.replace("51234)", "").contains("51234"), "{shown}");
        }
    }
}

#[test]
fn pieces_of_firewalled_texts_reach_no_request() {
    let key = "sk-0123456789abcdefghijklmnopqrstuv";
    for program in [
        "(subs data/_key 4 16)",
        "[(subs data/_key 10) {:a (str \"<\" (subs data/_key 3 20) \">\")}]",
        "(throw (ex-info (str \"no \" (subs data/_key 7 22) \" there\") {}))",
        "(str/split data/_key #\"8\")",
    ] {
        let (simulation, _) = simulate(agent().with_data("_key", json!(key)), &[program, "(return 1)"]);
        let shown = &simulation.shown[1];
        let pieces = (0..=key.len() - 12).map(|at| &key[at..at + 12]);
        for piece in pieces {
            assert!(!shown.contains(piece), "{program}: {shown}");
        }
        assert!(shown.contains("[hidden]"), "{program}: {shown}");
    }
    // Words of a hidden text may be used.
    let agent = agent().with_data("_note", json!("the customer called about the refund"));
    let (simulation, _) = simulate(agent, &["(str \"customer \" 1)", "(return 1)"]);
    assert!(simulation.shown[1].contains("customer 1"), "{}", simulation.shown[1]);
}

#[test]
fn many_firewalled_values_are_hidden_in_long_results() {
    let rows: Vec<_> = (0..6_000)
        .map(|id| json!({"name": format!("name-{id:05}"), "_pin": format!("pin-{id:05}")}))
        .collect();
    let agent = agent().with_data("people", json!(rows));
    for program in ["(map :name data/people)", "(map :_pin data/people)", "(map :_pin (take 3 data/people))"]
    {
        let (simulation, _) = simulate(agent.clone(), &[program, "(return 1)"]);
        let shown = &simulation.shown[1];
        let value = shown.split_once("Its value (*1): ").unwrap().1;
        assert_eq!(value.contains("name-00000"), program.contains(":name"), "{program}: {value}");
        assert!(!value.contains("pin-0"), "{program}: {value}");
    }
}

#[test]
fn what_all_requests_of_an_evaluation_share_is_a_part_of_its_own() {
    let answers = ["(def a 1)", "(println a)", "(return a)"].map(fenced);
    let mut simulation = Simulation::new(agent(), &answers.each_ref().map(String::as_str));
    let mut requests = Vec::new();
    loop {
        let action = simulation.next();
        if matches!(action, MachineAction::Ask) {
            let shown = simulation.machine.show(None).unwrap();
            let user = shown.messages.iter().find(|message| message.role() == Role::User).unwrap();
            requests.push(user.message.parts().unwrap().to_vec());
        }
        if simulation.act(action, None).is_some() {
            break;
        }
    }
    assert_eq!(requests.len(), 3);
    // Providers cache whole parts: the first is the same in each request, and the rest is not.
    for pair in requests.windows(2) {
        assert_eq!(pair[0].len(), 2, "{:?}", pair[0]);
        assert_eq!(pair[0][0], pair[1][0]);
        assert_ne!(pair[0][1], pair[1][1]);
    }
}

#[test]
fn answers_without_a_program_are_failed_turns() {
    let mut simulation = Simulation::new(agent(), &["I am thinking.", "", "```clojure\n(return 1)\n```"]);
    let ending = simulation.drive();
    assert_eq!(ending.output, Some(json!(1)));
    let turns = simulation.finished_turns();
    assert_eq!(turns.len(), 3);
    assert_eq!(turns[0].program, None);
    assert_eq!(turns[0].error.as_ref().unwrap().kind, "no_program");
    assert!(simulation.shown[1].contains("fenced as ```clojure"), "{}", simulation.shown[1]);
}

#[test]
fn answers_have_to_fit_the_signature() {
    let agent = || agent().with_signature("{count :int}".parse().unwrap());
    let (simulation, ending) =
        simulate(agent(), &["(def x 1) (return {:count \"3\"})", "(return {:count 3})"]);
    assert_eq!(ending.output, Some(json!({"count": 3})));
    let error = simulation.finished_turns()[0].error.clone().unwrap();
    assert_eq!(error.kind, "invalid_answer");
    assert!(error.message.contains("[:count]: expected an integer"), "{}", error.message);
    assert!(error.message.contains("(return {:count 42})"), "{}", error.message);
    assert!(simulation.finished_turns()[0].memory.is_empty());
    let (_, ending) = simulate(agent(), &["(return (fn [x] x))"]);
    assert_eq!(ending.error.unwrap().kind, "max_turns");
}

#[test]
fn an_agent_may_fail_run_out_of_turns_or_have_one_only() {
    let (_, ending) = simulate(agent(), &["(fail \"no data\")"]);
    let error = ending.error.unwrap();
    assert_eq!((error.kind.as_str(), error.message.as_str()), ("agent_failed", "no data"));
    let (simulation, ending) = simulate(agent().with_max_turns(2), &["1", "(+ 1 1)", "(return 3)"]);
    assert_eq!(ending.error.unwrap().kind, "max_turns");
    assert_eq!(simulation.finished_turns().len(), 2);
    assert!(simulation.shown[1].contains("FINAL TURN"), "{}", simulation.shown[1]);
    let (simulation, ending) = simulate(agent().with_max_turns(1), &["(reduce + (map tool/twice [1 2]))"]);
    assert_eq!(ending.output, Some(json!(6)));
    assert!(!simulation.shown[0].contains("Turns left"));
}

#[test]
fn an_agent_with_one_turn_compresses_nothing_however_it_was_made() {
    let of_budget = |turn_budget| {
        let compression: Arc<dyn Compression> = Arc::new(SingleUserCoalesced::default());
        agent().with_options(LispOptions { turn_budget, compression, ..LispOptions::default() })
    };
    for single in [agent().with_max_turns(1), of_budget(1)] {
        let simulation = Simulation::new(single, &[]);
        let shown = simulation.machine.show(None).unwrap();
        assert_eq!(shown.renderer, Some(NoCompression::default().renderer()));
        let text = shown.messages.latest().unwrap().content();
        assert!(
            text.ends_with(
                "data/rows                     ; list[3] of {:id}, sample: [{:id 1} {:id 2} {:id 3}]"
            ),
            "{text}"
        );
    }
    let several = Simulation::new(of_budget(2), &[]).machine.show(None).unwrap();
    assert_eq!(several.renderer, Some(SingleUserCoalesced::default().renderer()));
}

#[test]
fn an_agent_has_five_turns_by_default() {
    let (simulation, ending) = simulate(agent(), &["1", "2", "(boom)", "4", "5", "(return 6)"]);
    assert_eq!(ending.error.unwrap().kind, "max_turns");
    let last_lines: Vec<&str> =
        simulation.shown.iter().map(|shown| shown.lines().last().unwrap_or_default()).collect();
    assert_eq!(last_lines[..4], ["Turns left: 4", "Turns left: 3", "Turns left: 2", "Turns left: 1"]);
    assert_eq!(last_lines[4..], ["FINAL TURN - you must call (return result) or (fail reason) now."]);
}

#[test]
fn turns_are_only_ever_added_and_what_does_not_change_is_the_same_in_each_request() {
    let answers: Vec<String> = CALLS_EVERYWHERE.iter().map(|program| fenced(program)).collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let mut simulation = Simulation::new(agent(), &answers);
    let mut before: Vec<Turn> = Vec::new();
    loop {
        let action = simulation.next();
        if simulation.act(action, None).is_some() {
            break;
        }
        let now = simulation.finished_turns();
        assert_eq!(now[..before.len()], before);
        before = now;
    }
    assert_eq!(before.len(), CALLS_EVERYWHERE.len());
    assert!(
        before.iter().zip(CALLS_EVERYWHERE).all(|(turn, program)| turn.program.as_deref() == Some(program))
    );
    let stable = simulation.shown[0].split_once("\n\n;; No tool calls made").unwrap().0.to_owned();
    assert!(stable.contains(";; === tool/ ===") && stable.contains(";; === data/ ==="), "{stable}");
    assert!(simulation.shown.iter().all(|shown| shown.starts_with(&stable)), "{:#?}", simulation.shown);
}

#[test]
fn names_mean_the_same_to_functions_that_were_kept() {
    // A rebuilt machine compiles them again, when other definitions of the names may exist.
    let (_, ending) = simulate(
        agent(),
        &[
            "(defn all [] (count rows)) (defn call [] (twice 4)) (all)",
            "(def rows [1]) (defn twice [x] :mine)",
            "(return [(all) (count rows) (call) (twice 4)])",
        ],
    );
    assert_eq!(ending.output, Some(json!([3, 1, 8, "mine"])), "{ending:?}");
    // A function that was compiled where the name may be defined looks it up each time.
    let (_, ending) = simulate(
        agent(),
        &[
            "(when false (def rows 1)) (defn all [] (count rows))",
            "(def before (all)) (def rows [1])",
            "(return [before (all)])",
        ],
    );
    assert_eq!(ending.output, Some(json!([3, 1])), "{ending:?}");
}

#[test]
fn arguments_are_shown_short_however_long_they_are() {
    for length in [100, 5_000] {
        let program = format!("(tool/twice {{:n 1 :text (apply str (repeat {length} \"x\"))}})");
        let (simulation, _) = simulate(agent(), &[&program, "(return 1)"]);
        let shown = &simulation.shown[1];
        let expected = format!(";   twice({{:n 1 :text \"{}...\"}}) -> 2", "x".repeat(20));
        assert!(shown.lines().any(|line| line == expected), "{length}: {shown}");
    }
}

#[test]
fn results_are_shown_as_programs_get_them() {
    let programs = ["(def x (tool/twice {:n 4 :told true})) (def y (tool/twice 5))", "(return [x y])"];
    let (simulation, ending) = simulate(agent(), &programs);
    assert_eq!(ending.output, Some(json!([8, 10])));
    let shown = &simulation.shown[1];
    for line in [";   twice({:n 4 :told true}) -> 8", ";   twice({:n 5}) -> 10"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
}

#[test]
fn a_long_error_is_not_shown_with_every_request() {
    let programs = ["(throw (ex-info (clojure.string/join (repeat 1000000 \"E\")) {}))", "(return 1)"];
    let (simulation, _) = simulate(agent(), &programs);
    let shown = &simulation.shown[1];
    assert!(shown.len() < 20_000, "{}", shown.len());
    assert!(shown.contains("characters left out") && shown.contains("at line 1, column 1"), "{shown}");
}

#[test]
fn calls_that_an_answer_makes_itself_are_refused() {
    let mut simulation = Simulation::new(agent(), &["", &fenced("(return 1)")]);
    assert_eq!(simulation.next(), MachineAction::Ask);
    let call_id: CallId = simulation.ids.next();
    let call = OptionCall::new(call_id, "twice", Arguments::none());
    let message =
        simulation.add(1, Message::new(PolicyName::new("person").unwrap(), Content::OptionCall(call)));
    simulation.machine.handle(MachineEvent::Answered { messages: vec![message], output: None });
    let ending = simulation.drive();
    assert_eq!(ending.output, Some(json!(1)));
    assert!(simulation.ran.is_empty());
    assert_eq!(simulation.view().pending_calls().count(), 0);
}

#[test]
fn what_is_said_before_the_end_is_heard() {
    let mut simulation = Simulation::new(agent(), &[&fenced("(return 1)"), &fenced("(return 2)")]);
    loop {
        let action = simulation.next();
        if let MachineAction::Finish(_) = action {
            break;
        }
        simulation.act(action, None);
    }
    let said = simulation.say(1, RoleHint::User, "One more thing.");
    simulation.machine.handle(MachineEvent::MessageAdded(said));
    let ending = simulation.drive();
    assert_eq!(ending.output, Some(json!(2)));
    assert!(simulation.shown[1].contains("One more thing."));
}
