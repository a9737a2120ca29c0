//! The queue, with real workers: processes that are killed, drained and woken.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::stage::{Stage, ended, scripted, signal, wait_until};

/// Starts a worker, whose events go to a file.
fn worker(stage: &Stage, name: &str, more: &[&str]) -> Child {
    let arguments = [&["worker", "--poll", "1", "--json"], more].concat();
    let events = std::fs::File::create(stage.path(name)).unwrap();
    let mut command = stage.command(&arguments);
    command.stdout(events).stderr(Stdio::null()).spawn().unwrap()
}

fn events(stage: &Stage, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(stage.path(name)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn has_event(stage: &Stage, name: &str, event: &str) -> bool {
    events(stage, name).iter().any(|one| one["event"] == event)
}

/// Enqueues a session in a directory of its own, and returns its id.
fn enqueue(stage: &Stage, model: &str, directory: &str, more: &[&str]) -> String {
    let directory = stage.path(directory);
    let first = [
        "enqueue",
        "Do it",
        "--sandbox",
        "off",
        "--model",
        model,
        "--workspace",
        directory.to_str().unwrap(),
    ];
    let done = stage.json(&[&first[..], more].concat());
    done["session"].as_str().unwrap().to_owned()
}

/// The entries of the queue, by session.
fn queue(stage: &Stage) -> BTreeMap<String, Value> {
    let output = stage.run(&["queue", "--json"]).worked_quietly();
    let entries = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter_map(|one| Some((one["session"].as_str()?.to_owned(), one))).collect()
}

fn outcomes(stage: &Stage) -> Vec<Value> {
    let output = stage.run(&["ls", "--json", "--limit", "100"]).worked_quietly();
    output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].clone()).collect()
}

fn shell(command: &str) -> Value {
    json!({"name": "shell", "arguments": {"command": command}})
}

#[test]
fn sessions_of_a_killed_worker_are_continued_and_no_effect_happens_twice() {
    const SESSIONS: usize = 20;
    let stage = Stage::new();
    let effects = stage.path("effects");
    let effects = effects.to_str().unwrap();
    let mut sessions = BTreeSet::new();
    for number in 0..SESSIONS {
        // Each session leaves its own id outside of its directory, once.
        let id = format!("01890a5d-ac96-774b-bcce-0000000{number:05}");
        let model = {
            let replies = json!({"reply": [
                {"calls": [shell(&format!("sleep 0.1; echo {id} >> {effects}; sleep 0.1"))]}, {"text": "Done."},
            ]});
            format!("scripted:{}", stage.write(&format!("script{number}.json"), &replies.to_string()))
        };
        let key = format!("key-{number}");
        let session = enqueue(&stage, &model, &format!("work/{number}"), &["--key", &key]);
        let again = enqueue(&stage, &model, &format!("work/{number}"), &["--key", &key]);
        assert_eq!(session, again);
        assert!(sessions.insert((session, id)));
    }
    let mut killed = worker(&stage, "first.events", &["--concurrency", "3"]);
    let other = worker(&stage, "second.events", &["--concurrency", "3"]);
    let lines = || std::fs::read_to_string(effects).unwrap_or_default().lines().count();
    wait_until("some effects", || lines() >= 4 && has_event(&stage, "first.events", "taken"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut completed = 0;
    while completed < SESSIONS {
        wait_until("the end of another session", || {
            decide_by_id(&stage, effects, &sessions);
            let now = outcomes(&stage).iter().filter(|outcome| **outcome == "completed").count();
            std::mem::replace(&mut completed, now) < now
        });
    }
    wait_until("an empty queue", || queue(&stage).is_empty());
    signal(&other, "TERM");
    assert_eq!(ended(other).code, Some(0));
    let text = std::fs::read_to_string(effects).unwrap();
    let mut seen: Vec<&str> = text.lines().collect();
    seen.sort_unstable();
    let expected: BTreeSet<&str> = sessions.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(seen, expected.into_iter().collect::<Vec<_>>());
    stage.run(&["verify"]).worked_quietly();
}

/// Decides about interrupted calls by the ids that their sessions leave.
fn decide_by_id(stage: &Stage, effects: &str, sessions: &BTreeSet<(String, String)>) {
    let output = stage.run(&["inbox", "--here", "--json"]).worked_quietly();
    let text = std::fs::read_to_string(effects).unwrap_or_default();
    for pending in output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let session = pending["session"].as_str().unwrap();
        let Some((_, id)) = sessions.iter().find(|(known, _)| known == session) else { continue };
        for decision in pending["decisions"].as_array().unwrap() {
            let Some(call) = decision["call"].as_str().filter(|_| decision["reason"] == "effect_unknown")
            else {
                continue;
            };
            let happened = text.lines().any(|line| line == id);
            let words: &[&str] = if happened { &["happened", "--result", "done"] } else { &["retry"] };
            // Another round may have decided before.
            stage.run(&[&["resolve", session, call], words].concat());
        }
    }
}

#[test]
fn a_drained_worker_finishes_what_it_drives_and_takes_nothing_more() {
    let stage = Stage::new();
    let model = scripted(
        &stage,
        &json!([{"calls": [shell("touch ../../begun; while [ ! -e ../../end ]; do sleep 0.05; done")]}, {"text": "Done."}]),
    );
    enqueue(&stage, &model, "work/1", &[]);
    let running = worker(&stage, "events", &["--concurrency", "1"]);
    wait_until("the call", || stage.path("begun").exists());
    enqueue(&stage, &model, "work/2", &[]);
    signal(&running, "TERM");
    wait_until("the drain", || has_event(&stage, "events", "draining"));
    stage.write("end", "");
    assert_eq!(ended(running).code, Some(0));
    let all = events(&stage, "events");
    assert_eq!(all.iter().filter(|one| one["event"] == "taken").count(), 1, "{all:?}");
    assert_eq!(outcomes(&stage).iter().filter(|outcome| **outcome == "completed").count(), 1);
    assert_eq!(queue(&stage).len(), 1);
}

#[test]
fn a_second_signal_pauses_what_runs_for_another_worker() {
    let stage = Stage::new();
    let wait = json!([{"calls": [{"name": "shell", "arguments": {"command": "touch ../../begun; while [ ! -e ../../end ]; do sleep 0.05; done"}}]}, {"text": "Done."}]);
    let model = scripted(&stage, &wait);
    let session = enqueue(&stage, &model, "work/1", &["--shell-effect", "workspace"]);
    let running = worker(&stage, "events", &[]);
    wait_until("the call", || stage.path("begun").exists());
    signal(&running, "TERM");
    wait_until("the drain", || has_event(&stage, "events", "draining"));
    signal(&running, "TERM");
    assert_eq!(ended(running).code, Some(130));
    assert_eq!(queue(&stage)[&session]["state"], "ready");
    stage.write("end", "");
    let next = worker(&stage, "next.events", &[]);
    wait_until("the answer", || outcomes(&stage) == ["completed"]);
    signal(&next, "TERM");
    assert_eq!(ended(next).code, Some(0));
}

#[test]
fn an_approval_wakes_a_session_that_waits_without_a_worker() {
    let stage = Stage::new();
    let model =
        scripted(&stage, &json!([{"calls": [shell("echo approved > ../../approved")]}, {"text": "Done."}]));
    let session = enqueue(&stage, &model, "work/1", &["--approve", "ask"]);
    let running = worker(&stage, "events", &[]);
    wait_until("the pause", || queue(&stage).get(&session).is_some_and(|one| one["state"] == "waiting"));
    stage.run(&["approve", &session, "--all"]).worked_quietly();
    wait_until("the answer", || outcomes(&stage) == ["completed"]);
    assert!(stage.path("approved").exists());
    signal(&running, "TERM");
    assert_eq!(ended(running).code, Some(0));
}

#[test]
fn a_session_whose_directory_is_in_use_is_reported_once_and_driven_later() {
    let stage = Stage::new();
    let wait = shell("touch begun; while [ ! -e ../../end ]; do sleep 0.05; done");
    let model = scripted(&stage, &json!([{"calls": [wait]}, {"text": "Done."}]));
    let first = enqueue(&stage, &model, "work/1", &["--priority", "1"]);
    let running = worker(&stage, "events", &["--concurrency", "2"]);
    wait_until("the call", || stage.path("work/1/begun").exists());
    let second = enqueue(&stage, &model, "work/1", &[]);
    let of = |session: &str, event: &str| {
        let all = events(&stage, "events");
        all.iter().filter(|one| one["session"] == session && one["event"] == event).count()
    };
    wait_until("the refusal", || of(&second, "busy") > 0);
    wait_until("the pause", || queue(&stage).get(&second).is_some_and(|one| one["state"] == "waiting"));
    assert_eq!((of(&second, "taken"), of(&first, "taken")), (0, 1));
    assert!(stage.run(&["queue", "remove", &first]).failed().contains("is driven by a worker"));
    stage.write("end", "");
    wait_until("the answers", || outcomes(&stage) == ["completed", "completed"]);
    signal(&running, "TERM");
    assert_eq!(ended(running).code, Some(0));
    assert_eq!((of(&second, "taken"), of(&second, "busy")), (1, 1));
}

#[test]
fn a_session_that_waits_is_taken_out_of_the_queue() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let session = enqueue(&stage, &model, "work/1", &["--at", "1h"]);
    let removed = stage.json(&["queue", "remove", &session]);
    assert_eq!((&removed["session"], &removed["removed"]), (&json!(session), &json!(true)));
    assert!(queue(&stage).is_empty());
    assert!(stage.run(&["queue", "remove", &session]).failed().contains("is not in the queue"));
    stage.run(&["resume", &session, "--quiet"]).worked_quietly();
    assert_eq!(outcomes(&stage), ["completed"]);
}

#[test]
fn what_workers_give_up_is_listed_with_its_reason_and_can_be_tried_again() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([]));
    let session = enqueue(&stage, &model, "work/1", &[]);
    let running = worker(&stage, "events", &["--retries", "0"]);
    wait_until("the end", || queue(&stage).get(&session).is_some_and(|one| one["state"] == "failed"));
    assert!(queue(&stage)[&session]["reason"].as_str().unwrap().contains("script"));
    signal(&running, "TERM");
    assert_eq!(ended(running).code, Some(0));
    stage.run(&["queue", "retry", &session]).worked_quietly();
    assert_eq!(queue(&stage)[&session]["state"], "ready");
    assert!(stage.run(&["queue", "retry", &session]).failed().contains("was not given up"));
}

#[test]
fn the_budget_of_a_day_holds_for_what_was_enqueued_before_it_was_spent() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    stage.write("config/backstitch/config.toml", "[day_budget]\ntokens = 19000\n");
    let usage = json!({"input_tokens": 19_000, "output_tokens": 900});
    let model = scripted(&stage, &json!([{"text": "Done.", "usage": usage}]));
    let first = enqueue(&stage, &model, "work/1", &["--priority", "1"]);
    let second = enqueue(&stage, &model, "work/2", &[]);
    let running = worker(&stage, "events", &["--concurrency", "1"]);
    wait_until("the pause", || queue(&stage).get(&second).is_some_and(|one| one["state"] == "waiting"));
    signal(&running, "TERM");
    assert_eq!(ended(running).code, Some(0));
    let rests: Vec<Value> =
        events(&stage, "events").into_iter().filter(|one| one["event"] == "rested").collect();
    assert_eq!((&rests[0]["session"], &rests[0]["rest"]["kind"]), (&json!(first), &json!("finished")));
    assert_eq!(rests[1]["rest"]["reason"], "budget", "{rests:?}");
}

#[test]
fn schedules_are_listed_replaced_and_removed() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let add =
        |cron: &str| stage.run(&["schedule", "add", "report", cron, "Write it", "--model", &model, "--json"]);
    let added: Value = serde_json::from_str(add("0 6 * * 1-5").worked_quietly().trim()).unwrap();
    assert_eq!(added["cron"], "0 6 * * 1-5 UTC");
    let replaced: Value =
        serde_json::from_str(add("0 6 * * * Europe/Berlin").worked_quietly().trim()).unwrap();
    assert_eq!(replaced["cron"], "0 6 * * * Europe/Berlin");
    assert_eq!(stage.json(&["schedule", "list"])["schedules"].as_array().unwrap().len(), 1);
    assert!(add("99 6 * * *").errors.contains("99 6 * * *"));
    stage.run(&["schedule", "remove", "report"]).worked_quietly();
    assert!(stage.run(&["schedule", "remove", "report"]).called_wrongly().contains("there is no schedule"));
}

#[test]
fn what_waits_for_a_worker_does_not_wait_for_a_person() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let session = enqueue(&stage, &model, "work/1", &["--at", "1h"]);
    assert!(stage.run(&["inbox", "--here"]).worked_quietly().contains("nothing waits for you"));
    let resumed = stage.run(&["resume", "--all-interrupted"]).worked_quietly();
    assert!(resumed.contains("nothing was interrupted"), "{resumed}");
    assert_eq!(queue(&stage)[&session]["state"], "waiting");
}

#[test]
fn wrong_words_are_refused_before_anything_is_stored() {
    let stage = Stage::new();
    let refused = stage.run(&["enqueue", "Do it", "--at", "soon", "--model", "scripted:x"]).called_wrongly();
    assert!(refused.contains("is not a time"), "{refused}");
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let session = enqueue(&stage, &model, "work/1", &["--at", "1h", "--priority", "-3", "--tag", "team=a"]);
    let entry = &queue(&stage)[&session];
    assert_eq!(
        (&entry["state"], &entry["priority"], &entry["tags"]),
        (&json!("waiting"), &json!(-3), &json!(["team=a"]))
    );
    stage.run(&["queue", "limit", "team=a", "2"]).worked_quietly();
    let shown = stage.run(&["queue"]).worked_quietly();
    assert!(shown.contains("team=a") && shown.contains("limit: 0 of 2"), "{shown}");
    let refused = stage.run(&["signal", &session, ""]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
