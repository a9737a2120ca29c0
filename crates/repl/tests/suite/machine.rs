//! The machine, driven record by record and rebuilt at every one of them: both must want the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, IdStream};
use backstitch_core::journal::{
    EvaluationStarted, InnerMessage, Origin, Outcome, Position, ProgramStarted, Record, RecordBody,
    SessionCreated, TurnFinished,
};
use backstitch_core::machine::{Action, Ending, Event, Machine, Machinery, Past, Wanted};
use backstitch_core::message::{
    Arguments, Content, Message, OptionCall, OptionResult, Part, PolicyName, RoleHint,
};
use backstitch_core::rng::Seed;
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{ToolName, ToolSpec};
use backstitch_core::view::JournalView;
use backstitch_repl::compression::{Compression, Full, SingleUserCoalesced};
use backstitch_repl::{CallOutcome, LispAgent, LispMachinery, LispOptions, Turn, TurnSignal};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// A journal in memory, and somebody who does what a machine wants.
struct Simulation {
    ids: IdStream,
    evaluation: EvaluationId,
    records: Vec<Record>,
    machinery: LispMachinery,
    machine: Box<dyn Machine>,
    answers: Vec<String>,
    /// How often each call ran.
    ran: BTreeMap<String, usize>,
    /// What was shown with each question.
    shown: Vec<String>,
}

fn tool(name: &str, parameters: &[&str]) -> Arc<ToolSpec> {
    let mut spec = ToolSpec::new(ToolName::new(name).unwrap(), "A tool.");
    let properties: serde_json::Map<String, Json> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    spec.parameters = json!({"type": "object", "properties": properties});
    Arc::new(spec)
}

fn agent() -> LispAgent {
    LispAgent::new()
        .with_data("rows", json!([{"id": 1, "_key": "hidden"}, {"id": 2}, {"id": 3}]))
        .with_data("_token", json!("s3cret"))
        .with_tools([tool("twice", &["n"]), tool("fails", &[])])
        .with_compression(Arc::new(SingleUserCoalesced::default()))
}

fn at() -> backstitch_core::time::Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

impl Simulation {
    fn new(agent: LispAgent, answers: &[&str]) -> Self {
        let ids = IdStream::from_seed([3; 32], Arc::new(FixedClock::at(at())));
        let evaluation = ids.next();
        let machinery = LispMachinery::new(agent).unwrap();
        let created = SessionCreated {
            session_id: ids.next(),
            created_at: at(),
            origin: Origin::Root,
            seed: Seed::new(7),
            agent: Json::Null,
            state: Vec::new(),
            tags: BTreeMap::new(),
            extra: Extra::default(),
        };
        let started = EvaluationStarted {
            evaluation_id: evaluation,
            prompt_ns: "tests".into(),
            prompt_key: "lisp".into(),
            fingerprint: None,
            parent_evaluation: None,
            budget: None,
            deadline_millis: None,
            extra: Extra::default(),
        };
        let mut simulation = Self {
            ids,
            evaluation,
            records: Vec::new(),
            machine: Box::new(backstitch_core::machine::ToolLoop::default()),
            machinery,
            answers: answers.iter().map(|answer| (*answer).to_owned()).collect(),
            ran: BTreeMap::new(),
            shown: Vec::new(),
        };
        simulation.push(created.into());
        simulation.push(started.into());
        let system = simulation.machinery.agent().system();
        simulation.say(0, RoleHint::System, &system);
        simulation.say(0, RoleHint::User, "Double what there is.");
        simulation.rebuild();
        simulation
    }

    fn push(&mut self, body: RecordBody) {
        let position = Position::new(self.records.len() as u64);
        self.records.push(Record { position, at: at(), body, extra: Extra::default() });
    }

    fn view(&self) -> JournalView {
        JournalView::fold(&self.records).unwrap()
    }

    fn rebuilt(&self) -> Box<dyn Machine> {
        self.machinery.rebuild(&Past::of(&self.view(), self.evaluation).unwrap()).unwrap()
    }

    fn rebuild(&mut self) {
        self.machine = self.rebuilt();
    }

    fn add(&mut self, turn: u64, message: Message) -> Arc<InnerMessage> {
        let view = self.view();
        let inner = Arc::new(InnerMessage {
            message_id: self.ids.next(),
            evaluation_id: self.evaluation,
            sequence: view.evaluation(self.evaluation).unwrap().messages,
            turn,
            prompt_ns: "tests".into(),
            prompt_key: "lisp".into(),
            created_at: at(),
            message,
            provider: None,
            extra: Extra::default(),
        });
        self.push(RecordBody::MessageAppended(inner.clone()));
        inner
    }

    fn say(&mut self, turn: u64, hint: RoleHint, text: &str) -> Arc<InnerMessage> {
        let policy = PolicyName::new("somebody").unwrap();
        let mut message = Message::new(policy, Content::Parts(vec![Part::text(text)].into()));
        message.role_hint_for_llm = Some(hint);
        self.add(turn, message)
    }

    fn turns(&self) -> u64 {
        self.view().evaluation(self.evaluation).unwrap().turns
    }

    /// What is wanted, which is the same for one that was rebuilt.
    fn next(&mut self) -> Action {
        let rebuilt = self.rebuilt().next();
        let live = self.machine.next();
        assert_eq!(rebuilt, live, "after {} records", self.records.len());
        live
    }

    fn answer(&mut self) {
        let shown = self.machine.show(None).unwrap();
        assert_eq!(shown.renderer, self.rebuilt().show(None).unwrap().renderer);
        let text = |machine: &dyn Machine| {
            let shown = machine.show(None).unwrap().messages;
            shown
                .iter()
                .map(|one| format!("{:?}: {}", one.role(), one.content()))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(text(&*self.machine), text(&*self.rebuilt()));
        self.shown.push(text(&*self.machine));
        let turn = self.turns() + 1;
        let answer =
            self.answers.get(turn as usize - 1).cloned().unwrap_or_else(|| "nothing more".to_owned());
        let message = self.say(turn, RoleHint::Assistant, &answer);
        self.machine.take_in(Event::Answered { messages: vec![message], output: None });
    }

    fn make(&mut self, wanted: &Wanted) {
        if wanted.made_at.is_some() {
            let mut call = OptionCall::new(wanted.call_id, &wanted.name, wanted.arguments.clone());
            call.path = wanted.made_at.clone();
            let message = Message::new(PolicyName::new("somebody").unwrap(), Content::OptionCall(call));
            self.add(wanted.turn, message);
        }
    }

    fn run(&mut self, wanted: &Wanted) -> (CallId, Arc<InnerMessage>) {
        let arguments = wanted.arguments.object().cloned().unwrap_or_default();
        let mut result = OptionResult::new(wanted.call_id, wanted.name.as_str(), Json::Null);
        match (&wanted.refusal, wanted.name.as_str(), arguments.get("n").and_then(Json::as_i64)) {
            (Some(refusal), ..) => {
                result.is_error = true;
                result.error_message = Some(refusal.clone());
            }
            // As a tool answers that says something beside its value.
            (None, "twice", Some(n)) if arguments.contains_key("told") => {
                let told = json!({"message": "It is doubled.", "value": n * 2});
                result = OptionResult::new(wanted.call_id, "twice", told);
            }
            (None, "twice", Some(n)) => result = OptionResult::new(wanted.call_id, "twice", json!(n * 2)),
            _ => {
                result.is_error = true;
                result.error_message = Some("it broke".into());
            }
        }
        if wanted.refusal.is_none() {
            *self.ran.entry(format!("{} {}", wanted.call_id, wanted.name)).or_default() += 1;
        }
        let message = Message::new(PolicyName::new(&wanted.name).unwrap(), Content::OptionResult(result));
        (wanted.call_id, self.add(wanted.turn, message))
    }

    /// Does what is wanted; may die after so many of the calls, and between making and running one.
    fn act(&mut self, action: Action, dies_after: Option<usize>) -> Option<Ending> {
        match action {
            Action::Ask => self.answer(),
            Action::Record(bodies) => bodies.into_iter().for_each(|body| self.push(body)),
            Action::Call(wanted) => {
                wanted.iter().for_each(|one| self.make(one));
                for (index, one) in wanted.iter().enumerate() {
                    if dies_after == Some(index) {
                        self.rebuild();
                        return None;
                    }
                    let (call, result) = self.run(one);
                    self.machine.take_in(Event::CallEnded { call, result });
                }
            }
            Action::Wait => panic!("nobody runs anything"),
            Action::Finish(ending) => return Some(ending),
        }
        None
    }

    fn drive(&mut self) -> Ending {
        loop {
            let action = self.next();
            if let Some(ending) = self.act(action, None) {
                return ending;
            }
        }
    }

    fn finished_turns(&self) -> Vec<Turn> {
        let view = self.view();
        let turns = view.evaluation(self.evaluation).unwrap().finished_turns.clone();
        turns.iter().map(|turn| serde_json::from_value(turn.data.clone()).unwrap()).collect()
    }

    fn last_program(&mut self) -> &mut ProgramStarted {
        let program = self.records.iter_mut().rev().find_map(|record| match &mut record.body {
            RecordBody::ProgramStarted(program) => Some(program),
            _ => None,
        });
        Arc::make_mut(program.unwrap())
    }
}

fn fenced(program: &str) -> String {
    format!("I try this.\n```clojure\n{program}\n```")
}

fn simulate(agent: LispAgent, programs: &[&str]) -> (Simulation, Ending) {
    let answers: Vec<String> = programs.iter().map(|program| fenced(program)).collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let mut simulation = Simulation::new(agent, &answers);
    let ending = simulation.drive();
    (simulation, ending)
}

const CALLS_EVERYWHERE: &[&str] = &[
    "(defn double-all \"doubles\" [xs] (map (fn [x] (tool/twice x)) xs))
     (def doubled (double-all (map :id data/rows)))
     (def seen (atom 0))
     (doseq [x doubled] (swap! seen + (tool/twice {:n x})))",
    "(boom)",
    "(def sums (pmap (fn [x] (+ (tool/twice x) (tool/twice (inc x)))) [1 2 3]))
     (task \"once\" (tool/twice 21))
     (println \"sums\" sums)",
    "(def lost 1) (tool/fails)",
    "(return {:doubled doubled :seen @seen :sums sums :again (task \"once\" (tool/twice 1)) :before *1 :n (loop [i 0] (if (< i 3) (do (tool/twice i) (recur (inc i))) i))})",
];

#[test]
fn programs_call_tools_wherever_they_stand_and_memory_lasts() {
    let (simulation, ending) = simulate(agent(), CALLS_EVERYWHERE);
    assert_eq!(ending.outcome, Outcome::Completed, "{ending:?}");
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
    assert!(matches!(turns[3].tool_calls[0].outcome, CallOutcome::Error(_)));
    assert!(turns[3].memory.is_empty(), "what a failed program defined is gone");
    assert_eq!(turns[4].signal, Some(TurnSignal::Return));
    // Each call ran once.
    assert!(simulation.ran.values().all(|times| *times == 1), "{:?}", simulation.ran);
    assert_eq!(simulation.ran.len(), 17);
}

#[test]
fn nothing_that_is_hidden_is_shown() {
    let programs = ["(def mine {:_secret data/_token :open 1}) (def rows data/rows)", "(return 1)"];
    let (simulation, _) = simulate(agent(), &programs);
    for shown in &simulation.shown {
        assert!(!shown.contains("s3cret") && !shown.contains("\"hidden\""), "{shown}");
    }
    assert!(simulation.shown[1].contains("mine"));
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
        assert_eq!(shown.renderer, Some(Full::default().renderer()));
        let text = shown.messages.last().unwrap().content();
        assert!(
            text.ends_with("data/rows                     ; list[3], sample: [{:id 1} {:id 2} {:id 3}]"),
            "{text}"
        );
    }
    let several = Simulation::new(of_budget(2), &[]).machine.show(None).unwrap();
    assert_eq!(several.renderer, Some(SingleUserCoalesced::default().renderer()));
}

#[test]
fn an_agent_has_five_turns_unless_it_is_said() {
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
    // A machine that is rebuilt compiles them again, when what the names mean to others may have changed.
    let (_, ending) = simulate(
        agent(),
        &[
            "(defn all [] (count rows)) (defn call [] (twice 4)) (all)",
            "(def rows [1]) (defn twice [x] :mine)",
            "(return [(all) (count rows) (call) (twice 4)])",
        ],
    );
    assert_eq!(ending.output, Some(json!([3, 1, 8, "mine"])), "{ending:?}");
    // One that was compiled where the name may be defined asks each time.
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
            // Dies with the second call made and not run.
            let dies = (simulation.ran.len() == 1).then_some(0);
            simulation.act(action, dies);
            if dies.is_some() {
                break;
            }
        }
        simulation.last_program().source = Some(change.to_owned());
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
        let is_call = matches!(action, Action::Call(_));
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

#[test]
fn a_program_that_nothing_tells_the_start_of_is_not_run_again() {
    let answers = [fenced("(tool/twice 1) (tool/twice 2)"), fenced("(return 2)")];
    let mut simulation = Simulation::new(agent(), &[&answers[0], &answers[1]]);
    while simulation.ran.is_empty() {
        let action = simulation.next();
        simulation.act(action, None);
    }
    // As a conversation is that comes without its journal.
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
fn calls_that_an_answer_makes_itself_are_refused() {
    let mut simulation = Simulation::new(agent(), &["", &fenced("(return 1)")]);
    assert_eq!(simulation.next(), Action::Ask);
    let call_id: CallId = simulation.ids.next();
    let call = OptionCall::new(call_id, "twice", Arguments::none());
    let message =
        simulation.add(1, Message::new(PolicyName::new("somebody").unwrap(), Content::OptionCall(call)));
    simulation.machine.take_in(Event::Answered { messages: vec![message], output: None });
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
        if let Action::Finish(_) = action {
            break;
        }
        simulation.act(action, None);
    }
    let said = simulation.say(1, RoleHint::User, "One more thing.");
    simulation.machine.take_in(Event::Said(said));
    let ending = simulation.drive();
    assert_eq!(ending.output, Some(json!(2)));
    assert!(simulation.shown[1].contains("One more thing."));
}

#[test]
fn a_turn_that_cannot_be_read_is_told() {
    let (mut simulation, _) = simulate(agent(), &["(def x 1)", "(return x)"]);
    for record in &mut simulation.records {
        if let RecordBody::TurnFinished(turn) = &mut record.body {
            let turn: &mut TurnFinished = Arc::make_mut(turn);
            turn.data = json!({"number": "one"});
        }
    }
    let past = Past::of(&simulation.view(), simulation.evaluation).unwrap();
    let Err(error) = simulation.machinery.rebuild(&past) else { panic!("it was rebuilt") };
    assert!(error.to_string().contains("turn 1"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whoever takes over at whatever place, it ends the same, and no call is made twice.
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
