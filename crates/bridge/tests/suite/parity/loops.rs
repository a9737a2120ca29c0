//! Callers with a model: an agent that answers with JSON calls, and one that answers with programs.

use std::sync::Arc;

use backstitch_core::message::PolicyName;
use backstitch_providers::{Script, ScriptedCall, ScriptedPolicy, ScriptedReply};
use backstitch_repl::LispAgent;
use backstitch_runtime::{Agent, DriveOutcome, ResumeOptions};
use backstitch_testkit::tool::CallSpec;
use serde_json::Value;

use super::place::{Place, threads};
use super::{Case, Trouble};

fn policy(replies: impl IntoIterator<Item = ScriptedReply>) -> Arc<ScriptedPolicy> {
    let script = Script { replies: replies.into_iter().collect() };
    Arc::new(ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), script))
}

pub(super) fn scripted(calls: Vec<CallSpec>) -> Arc<ScriptedPolicy> {
    let call = |call: CallSpec| {
        let arguments = call.arguments.as_object().cloned().unwrap();
        ScriptedReply { calls: vec![ScriptedCall::new(call.name, arguments)], ..ScriptedReply::default() }
    };
    let done = ScriptedReply { text: Some("done".to_owned()), ..ScriptedReply::default() };
    policy(calls.into_iter().map(call).chain([done]))
}

/// An agent that makes each call in a turn of its own.
pub(super) fn json(place: &Place, case: &Case) {
    drive(place, case, Agent::new("tests/parity").policy(scripted(case.calls())).tools(Place::tools()));
}

/// An agent that makes each call by a program.
pub(super) fn lisp(place: &Place, case: &Case) {
    let program = |call: CallSpec| format!("(tool/{} {})", call.name, literal(&call.arguments));
    let programs = case.calls().into_iter().map(program).chain(["(return :done)".to_owned()]);
    let reply = |program: String| ScriptedReply {
        text: Some(format!("```clojure\n{program}\n```")),
        ..ScriptedReply::default()
    };
    let policy = policy(programs.map(reply));
    let agent = Agent::lisp("tests/parity", policy, LispAgent::new(), Place::tools()).unwrap();
    drive(place, case, agent);
}

/// Writes a value as a literal of the language.
fn literal(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!(":{name} {}", literal(value))).collect();
            format!("{{{}}}", fields.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(" ")),
        other => other.to_string(),
    }
}

fn drive(place: &Place, case: &Case, agent: Agent) {
    let (threads, runtime) = (threads(), place.runtime());
    let options = place.options();
    let driver = threads.block_on(runtime.create(place.complete(agent), options)).unwrap();
    std::thread::scope(|scope| {
        let started = scope.spawn(|| threads.block_on(driver.start("Sew.")).unwrap());
        if case.trouble == Trouble::Cancelled {
            place.wait_for_begin();
            threads.block_on(runtime.cancel(Place::session())).unwrap();
        }
        let mut ended = started.join().unwrap();
        if case.trouble == Trouble::Denied {
            assert!(matches!(ended, DriveOutcome::Paused { .. }), "{ended:?}");
            place.deny();
            ended = threads.block_on(driver.resume(ResumeOptions::default())).unwrap();
        }
        let is_expected = match case.trouble {
            Trouble::None | Trouble::Denied => matches!(ended, DriveOutcome::Completed(_)),
            Trouble::Cancelled => matches!(ended, DriveOutcome::Cancelled { .. }),
            Trouble::Budget => matches!(ended, DriveOutcome::Paused { .. }),
        };
        assert!(is_expected, "{}: {ended:?}", case.name);
    });
    threads.block_on(driver.session().release()).unwrap();
}
