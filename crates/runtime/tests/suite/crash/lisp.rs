//! A session of a Lisp agent: killed inside of its programs, and resumed by other processes.

use std::sync::Arc;

use backstitch_core::message::PolicyName;
use backstitch_providers::{Script, ScriptedPolicy, ScriptedReply};
use backstitch_repl::LispAgent;
use backstitch_runtime::Agent;

use super::matrix::killed_in;
use super::session::counted;
use super::stage::{Place, Plot, Stage};
use super::tools::tools;

/// Calls in `map`, `doseq`, functions, `loop`, `pmap` and `pcalls`, of every effect class; a call that fails
/// and is caught; a program that fails after its calls; and a task that runs once.
const PROGRAMS: [&str; 4] = [
    r#"(def paths ["a/one.txt" "a/two.txt"])
       (defn put "writes a file" [path] (tool/write {:path path :text (str "all of " path "\n")}))
       (def written (map put paths))"#,
    r#"(doseq [who ["ada" "bob"]] (tool/mail {:to who}))
       (def texts (mapv (fn [path] (tool/read {:path path})) paths))
       (try (tool/tear {:path "a/one.txt"}) (catch Exception e (println "caught" (ex-message e))))"#,
    r#"(task "order" (tool/order {:to "thread"}))
       (def lost (pmap (fn [path] (put path)) ["p/one.txt" "p/two.txt"]))
       (throw (ex-info "on purpose" {}))"#,
    r#"(def both (pcalls (fn [] (tool/mail {:to "cy"})) (fn [] (tool/count)) (fn [] (tool/read {:path "p/one.txt"}))))
       (return {:order (task "order" (tool/order {:to "thread"}))
                :texts texts :both both :written written
                :loop (loop [i 0] (if (< i 2) (do (put (str "l/" i)) (recur (inc i))) i))
                :last *1})"#,
];

pub(crate) fn agent(stage: &Stage) -> Agent {
    let reply = |program: &&str| {
        let text = format!("I try this:\n```clojure\n{program}\n```");
        ScriptedReply { text: Some(text), ..ScriptedReply::default() }
    };
    let script = Script { replies: PROGRAMS.iter().map(reply).collect() };
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), script);
    let agent = Agent::lisp("tests/tailor", Arc::new(policy), LispAgent::new(), tools(stage)).unwrap();
    counted(stage, agent)
}

#[tokio::test]
async fn killed_while_a_program_is_recorded() {
    killed_in(Plot::Programs, Place::Host, &["machine.", "ask."], u64::MAX).await;
}

#[tokio::test]
async fn killed_around_the_intents_of_a_program() {
    killed_in(Plot::Programs, Place::Host, &["call.before_intent", "call.after_intent"], u64::MAX).await;
}

#[tokio::test]
async fn killed_in_the_calls_of_a_program() {
    killed_in(Plot::Programs, Place::Host, &["call.in_handler", "call.handler_done"], u64::MAX).await;
}

#[tokio::test]
async fn killed_after_the_calls_of_a_program() {
    let points = ["call.finished", "call.files_captured", "call.before_restore", "call.after_restore"];
    killed_in(Plot::Programs, Place::Host, &points, u64::MAX).await;
}

#[tokio::test]
async fn killed_while_the_records_of_a_program_are_stored() {
    killed_in(Plot::Programs, Place::Host, &["append.", "store."], 6).await;
}

#[tokio::test]
async fn killed_in_programs_with_files_in_memory() {
    killed_in(Plot::Programs, Place::Memory, &["call.", "machine."], 2).await;
}
