//! A server that restores the files of a killed one is killed itself, at every point of its start.

use serde_json::{Value, json};

use super::super::client::{Client, failed, worked};
use super::kind::AGENT;
use super::trial::{Crash, files};
use super::{crashes, for_each};
use crate::stage::{Stage, wait_until};

/// Leaves a session whose server was killed in the middle of a call. Returns the arguments of the call.
fn interrupted(stage: &Stage) -> Value {
    let mut client = Client::start_with(stage, AGENT, &[]);
    assert!(client.shake_hands(&json!({})));
    worked(&client.call("write_file", json!({"path": "note.txt", "text": "seven\n"})));
    worked(&client.call("write_file", json!({"path": "deep/other.txt", "text": "eight\n"})));
    let command = json!({"command": "echo broken > note.txt; rm -r deep; echo half > half.txt; echo x > last.txt; sleep 600"});
    client.post_call(Some("toolu_it"), "shell", command.clone());
    wait_until("the change", || stage.file("last.txt").is_some());
    client.kill();
    command
}

fn start(stage: &Stage, variable: &str, value: &str) -> Option<Client> {
    let stage = Stage::beside(stage).with_variable(variable, value);
    let mut client = Client::start_with(&stage, AGENT, &[]);
    client.shake_hands(&json!({})).then_some(client)
}

fn check_restored(stage: &Stage, client: &mut Client, command: &Value, what: &str) {
    let found = files(stage);
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["deep/", "deep/other.txt", "note.txt"], "{what}");
    assert_eq!((&*found["note.txt"], &*found["deep/other.txt"]), ("seven\n", "eight\n"), "{what}");
    let told = failed(&client.call_as("toolu_it", "shell", command.clone()));
    assert!(told.contains("interrupted"), "{what}: {told}");
    worked(&client.call("write_file", json!({"path": "next.txt", "text": "next\n"})));
}

#[test]
fn a_server_that_dies_while_it_restores_is_followed_by_one_that_does() {
    let stage = Stage::new();
    let command = interrupted(&stage);
    let list = stage.path("reached");
    let mut client = start(&stage, "BACKSTITCH_REACHED", list.to_str().unwrap()).unwrap();
    let reached = std::fs::read_to_string(&list).unwrap();
    check_restored(&stage, &mut client, &command, "undisturbed");
    for point in ["resolve.before", "workspace.restore.half", "resolve.restored"] {
        assert!(reached.contains(point), "{point} is not reached:\n{reached}");
    }
    let check = |crash: &Crash| {
        let stage = Stage::new();
        let command = interrupted(&stage);
        let dying = start(&stage, "BACKSTITCH_ABORT_AT", &crash.to_string());
        assert!(dying.is_none() || crash.hit > 1, "{crash} was not reached");
        drop(dying);
        let mut client = Client::start_with(&stage, AGENT, &[]);
        assert!(client.shake_hands(&json!({})), "{crash}: the next server starts");
        check_restored(&stage, &mut client, &command, &crash.to_string());
        assert_eq!(client.leave().code, Some(0), "{crash}");
        let verified = stage.run(&["verify"]);
        assert_eq!(verified.code, Some(0), "{crash}: {}{}", verified.output, verified.errors);
    };
    for_each(crashes(&reached), check);
}
