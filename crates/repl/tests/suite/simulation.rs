//! Drives a machine record by record, and rebuilds it at each of them: both must return the same actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, IdStream};
use backstitch_core::journal::{
    EvaluationStarted, InnerMessage, Position, ProgramStarted, Record, RecordBody, SessionCreated,
};
use backstitch_core::machine::{
    EvaluationHistory, EvaluationResult, Machine, MachineAction, MachineEvent, MachineFactory, PendingCall,
};
use backstitch_core::message::{Content, Message, OptionCall, OptionResult, Part, PolicyName, RoleHint};
use backstitch_core::rng::Seed;
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{ToolName, ToolSpec};
use backstitch_core::view::JournalView;
use backstitch_repl::compression::SingleUserCoalesced;
use backstitch_repl::{LispAgent, LispMachinery, Turn};
use serde_json::{Value as Json, json};

/// A journal in memory, and a minimal runtime that does the actions of a machine.
pub(crate) struct Simulation {
    pub(crate) ids: IdStream,
    pub(crate) evaluation: EvaluationId,
    pub(crate) records: Vec<Record>,
    pub(crate) machinery: LispMachinery,
    pub(crate) machine: Box<dyn Machine>,
    pub(crate) answers: Vec<String>,
    /// The number of runs of each call.
    pub(crate) ran: BTreeMap<String, usize>,
    /// The rendered history of each request.
    pub(crate) shown: Vec<String>,
}

pub(crate) fn tool(name: &str, parameters: &[&str]) -> Arc<ToolSpec> {
    let mut spec = ToolSpec::new(ToolName::new(name).unwrap(), "A tool.");
    let properties: serde_json::Map<String, Json> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    spec.parameters = json!({"type": "object", "properties": properties});
    Arc::new(spec)
}

pub(crate) fn agent() -> LispAgent {
    LispAgent::new()
        .with_data("rows", json!([{"id": 1, "_key": "hidden"}, {"id": 2}, {"id": 3}]))
        .with_data("_token", json!("s3cret"))
        .with_tools([tool("twice", &["n"]), tool("fails", &[])])
        .with_compression(Arc::new(SingleUserCoalesced::default()))
}

pub(crate) fn at() -> backstitch_core::time::Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

impl Simulation {
    pub(crate) fn new(agent: LispAgent, answers: &[&str]) -> Self {
        let ids = IdStream::from_seed([3; 32], Arc::new(FixedClock::at(at())));
        let evaluation = ids.next();
        let machinery = LispMachinery::new(agent).unwrap();
        let created = SessionCreated::new(ids.next(), at(), Seed::new(7));
        let started = EvaluationStarted::new(evaluation, "tests", "lisp");
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

    pub(crate) fn push(&mut self, body: RecordBody) {
        let position = Position::new(self.records.len() as u64);
        self.records.push(Record { position, at: at(), body, extra: Extra::default() });
    }

    pub(crate) fn view(&self) -> JournalView {
        JournalView::fold(&self.records).unwrap()
    }

    pub(crate) fn rebuilt(&self) -> Box<dyn Machine> {
        self.machinery.rebuild(&EvaluationHistory::of(&self.view(), self.evaluation).unwrap()).unwrap()
    }

    pub(crate) fn rebuild(&mut self) {
        self.machine = self.rebuilt();
    }

    pub(crate) fn add(&mut self, turn: u64, message: Message) -> Arc<InnerMessage> {
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
            role: None,
            provider: None,
            extra: Extra::default(),
        });
        self.push(RecordBody::MessageAppended(inner.clone()));
        inner
    }

    pub(crate) fn say(&mut self, turn: u64, hint: RoleHint, text: &str) -> Arc<InnerMessage> {
        let policy = PolicyName::new("person").unwrap();
        let mut message = Message::new(policy, Content::Parts(vec![Part::text(text)].into()));
        message.role_hint_for_llm = Some(hint);
        self.add(turn, message)
    }

    pub(crate) fn turns(&self) -> u64 {
        self.view().evaluation(self.evaluation).unwrap().turns
    }

    /// The next action, which must be the same for a rebuilt machine.
    pub(crate) fn next(&mut self) -> MachineAction {
        let rebuilt = self.rebuilt().next();
        let live = self.machine.next();
        assert_eq!(rebuilt, live, "after {} records", self.records.len());
        live
    }

    pub(crate) fn answer(&mut self) {
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
        self.machine.handle(MachineEvent::Answered { messages: vec![message], output: None });
    }

    pub(crate) fn make(&mut self, wanted: &PendingCall) {
        if wanted.made_at.is_some() {
            let mut call = OptionCall::new(wanted.call_id, &wanted.name, wanted.arguments.clone());
            call.path = wanted.made_at.clone();
            let message = Message::new(PolicyName::new("person").unwrap(), Content::OptionCall(call));
            self.add(wanted.turn, message);
        }
    }

    pub(crate) fn run(&mut self, wanted: &PendingCall) -> (CallId, Arc<InnerMessage>) {
        let arguments = wanted.arguments.object().cloned().unwrap_or_default();
        let mut result = OptionResult::new(wanted.call_id, wanted.name.as_str(), Json::Null);
        match (&wanted.refusal, wanted.name.as_str(), arguments.get("n").and_then(Json::as_i64)) {
            (Some(refusal), ..) => {
                result.is_error = true;
                result.error_message = Some(refusal.clone());
            }
            // The result of a tool with a message beside its value.
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

    /// Does an action; may die after this number of calls, and between making and running one.
    pub(crate) fn act(
        &mut self,
        action: MachineAction,
        dies_after: Option<usize>,
    ) -> Option<EvaluationResult> {
        match action {
            MachineAction::Ask => self.answer(),
            MachineAction::Record(bodies) => bodies.into_iter().for_each(|body| self.push(body)),
            MachineAction::Call(wanted) => {
                wanted.iter().for_each(|one| self.make(one));
                for (index, one) in wanted.iter().enumerate() {
                    if dies_after == Some(index) {
                        self.rebuild();
                        return None;
                    }
                    let (call, result) = self.run(one);
                    self.machine.handle(MachineEvent::CallEnded { call, result });
                }
            }
            MachineAction::Wait => panic!("no call is running"),
            MachineAction::Finish(ending) => return Some(ending),
        }
        None
    }

    pub(crate) fn drive(&mut self) -> EvaluationResult {
        loop {
            let action = self.next();
            if let Some(ending) = self.act(action, None) {
                return ending;
            }
        }
    }

    pub(crate) fn finished_turns(&self) -> Vec<Turn> {
        let view = self.view();
        let turns = view.evaluation(self.evaluation).unwrap().finished_turns.clone();
        turns
            .iter()
            .map(|turn| serde_json::from_value(turn.data.inline().unwrap().clone()).unwrap())
            .collect()
    }

    pub(crate) fn last_program(&mut self) -> &mut ProgramStarted {
        let program = self.records.iter_mut().rev().find_map(|record| match &mut record.body {
            RecordBody::ProgramStarted(program) => Some(program),
            _ => None,
        });
        Arc::make_mut(program.unwrap())
    }
}

pub(crate) fn fenced(program: &str) -> String {
    format!("I try this.\n```clojure\n{program}\n```")
}

pub(crate) fn simulate(agent: LispAgent, programs: &[&str]) -> (Simulation, EvaluationResult) {
    let answers: Vec<String> = programs.iter().map(|program| fenced(program)).collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let mut simulation = Simulation::new(agent, &answers);
    let ending = simulation.drive();
    (simulation, ending)
}

pub(crate) const CALLS_EVERYWHERE: &[&str] = &[
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
