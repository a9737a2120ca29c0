//! Fallbacks to other models, over HTTP.

use serde_json::{Value, json};

use crate::model::{MODEL, Model, PROVIDERS, Said};
use crate::stage::{Stage, ended, wait_until};

/// An error that each provider means as this kind.
fn refusal(kind: &str) -> Said {
    let (status, message) = match kind {
        "overload" => ("503 Service Unavailable", "overloaded"),
        "credit" => ("402 Payment Required", "no credit"),
        _ => ("413 Payload Too Large", "prompt is too long"),
    };
    Said::Refused(status, json!({"error": {"message": message, "type": "x", "code": 1}}).to_string())
}

/// Writes an agent with a model at one address, and one at another for these reasons.
fn agent(stage: &Stage, from: (&str, &Model), to: (&str, &Model), on: &str, more: &str) -> String {
    let word = |provider: &str| if provider == "openai" { "openai-responses" } else { provider }.to_owned();
    stage.write(
        "agent.toml",
        &format!(
            "model = 'first:{MODEL}'\ntools = ['list_files']\n{more}\n[retry]\nretries = 0\n\
             [[fallback]]\non = {on}\nmodel = 'second:{MODEL}'\n\
             [[provider]]\nname = 'first'\nbase_url = '{}'\nformat = '{}'\n\
             [[provider]]\nname = 'second'\nbase_url = '{}'\nformat = '{}'\n",
            from.1.url,
            word(from.0),
            to.1.url,
            word(to.0)
        ),
    )
}

/// The data of all records of a kind, in order.
fn records(stage: &Stage, kind: &str) -> Vec<Value> {
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["kind"] == kind).map(|record| record["data"].clone()).collect()
}

/// The providers of the recorded requests, in order.
fn asked(stage: &Stage) -> Vec<String> {
    let started = records(stage, "request_started");
    started.iter().map(|started| started["provider"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn another_model_continues_in_the_middle_of_an_evaluation_for_every_pair_of_formats() {
    for (from, _) in PROVIDERS {
        for (to, _) in PROVIDERS {
            let stage = Stage::new();
            let call = Said::Call("I look.", "list_files", json!({}));
            let first = Model::new(from, [call.clone(), refusal("overload")]);
            let second = Model::new(to, [call, Said::Text("Done.")]);
            let agent = agent(&stage, (from, &first), (to, &second), "['overload']", "");
            let ran = stage.run(&["run", "Mend", "--agent", &agent]);
            assert_eq!(ran.worked_quietly(), "Done.\n", "{from} to {to}");
            // The strict servers accepted all requests, and the rest of the evaluation stayed with the second.
            assert_eq!((first.asked().len(), second.asked().len()), (2, 2), "{from} to {to}");
            assert_eq!(asked(&stage), ["first", "first", "second", "second"]);
            let log = stage.run(&["log", "--all"]).worked_quietly();
            assert!(log.contains(&format!("turn 2 continues with second:{MODEL}: first:{MODEL}")), "{log}");
        }
    }
}

#[test]
fn each_reason_counts_and_others_do_not() {
    for (kind, on, falls_back) in [
        ("overload", "['overload']", true),
        ("credit", "['credit']", true),
        ("length", "['credit', 'length']", true),
        ("overload", "['credit', 'length', 'refusal']", false),
        ("credit", "['overload']", false),
    ] {
        let stage = Stage::new();
        let first = Model::new("openai-chat", [refusal(kind), Said::Text("Own.")]);
        let second = Model::new("anthropic", [Said::Text("Other.")]);
        let agent = agent(&stage, ("openai-chat", &first), ("anthropic", &second), on, "");
        let ran = stage.run(&["run", "Mend", "--agent", &agent]);
        assert_eq!(ran.code == Some(0), falls_back, "{kind} {on}: {}", ran.errors);
        assert_eq!(second.asked().len(), usize::from(falls_back), "{kind} {on}");
        if falls_back {
            // The next evaluation begins with the agent's own model.
            assert_eq!(stage.run(&["ask", &stage.session(), "More"]).worked_quietly(), "Own.\n");
        }
    }
}

#[test]
fn a_killed_session_continues_with_the_fallback_and_pays_nothing_twice() {
    let stage = Stage::new();
    let first = Model::new("openai-chat", [refusal("overload"), Said::Text("Never.")]);
    let second = Model::new("anthropic", [Said::Hangs("Half"), Said::Text("Done.")]);
    let more = "[budget]\ntokens = 100000\n";
    let agent = agent(&stage, ("openai-chat", &first), ("anthropic", &second), "['overload']", more);
    let mut child = stage.command(&["run", "Mend", "--agent", &agent]).spawn().unwrap();
    wait_until("the fallback is asked", || second.asked().len() == 1);
    child.kill().unwrap();
    ended(child);
    let session = stage.session();
    assert_eq!(stage.run(&["resume", &session]).worked_quietly(), "Done.\n");
    assert_eq!((first.asked().len(), second.asked().len()), (1, 2));
    assert_eq!(asked(&stage), ["first", "second", "second"]);
    assert_eq!(records(&stage, "request_failed").len(), 1);
    assert!(stage.run(&["verify"]).code == Some(0));
}

#[test]
fn wrong_fallbacks_are_named() {
    let stage = Stage::new();
    for (text, message) in [
        (
            "model = 'openai:m'\n[[fallback]]\non = []\nmodel = 'anthropic:m'\n",
            "agent.toml:3: fallback[0].on",
        ),
        ("model = 'openai:m'\n[[fallback]]\non = ['credit']\nmodel = 'antropic:m'\n", "did you mean"),
        ("model = 'openai:m'\n[[fallback]]\non = ['cheap']\nmodel = 'openai:m'\n", "overload"),
        ("model = 'openai:m'\n[[fallback]]\non = ['credit']\nmodel = 'scripted:m'\n", "script"),
    ] {
        let agent = stage.write("agent.toml", text);
        let errors = stage.run(&["run", "Mend", "--agent", &agent]).called_wrongly();
        assert!(errors.contains(message), "{text}: {errors}");
    }
}
