//! Several servers, and other users of the same directory, side by side.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{AGENT, Client, failed, worked};
use super::http_client::HttpServer;
use crate::stage::{Stage, ended, scripted, wait_until};

fn write(path: &str, text: &str) -> Value {
    json!({"path": path, "text": text})
}

fn sessions(stage: &Stage) -> usize {
    stage.run(&["ls", "--json"]).worked_quietly().lines().filter(|line| line.contains("\"session\"")).count()
}

fn checkpoints(client: &mut Client) -> usize {
    let listed = client.call("checkpoints", json!({}));
    listed["result"]["structuredContent"]["checkpoints"].as_array().unwrap().len()
}

#[test]
fn two_windows_have_histories_of_their_own() {
    let stage = Stage::new();
    let mut first = Client::connected(&stage, &[]);
    worked(&first.call("write_file", write("a.txt", "1\n")));
    let mut second = Client::connected(&stage, &[]);
    worked(&second.call("write_file", write("b.txt", "1\n")));
    worked(&first.call("write_file", write("a.txt", "2\n")));
    worked(&second.call("shell", json!({"command": "cat a.txt b.txt"})));
    assert_eq!((checkpoints(&mut first), checkpoints(&mut second)), (2, 2));
    assert_eq!(sessions(&stage), 2);
    // Both continue where they were, whichever comes first.
    assert_eq!(second.leave().code, Some(0));
    assert_eq!(first.leave().code, Some(0));
    let mut again = [Client::connected(&stage, &[]), Client::connected(&stage, &[])];
    for client in &mut again {
        assert_eq!(checkpoints(client), 2);
        worked(&client.call("write_file", write("c.txt", "1\n")));
    }
    assert_eq!(sessions(&stage), 2);
}

#[test]
fn calls_of_two_windows_at_the_same_time_wait_for_each_other() {
    let stage = Stage::new();
    let mut clients = [Client::connected(&stage, &[]), Client::connected(&stage, &[])];
    for round in 0..3 {
        let ids: Vec<u64> = clients
            .iter_mut()
            .enumerate()
            .map(|(number, client)| {
                let script = format!("echo {round} >> lines-{number}.txt; sleep 0.2");
                client.post_call(None, "mend", json!({"script": script}))
            })
            .collect();
        for (client, id) in clients.iter_mut().zip(ids) {
            worked(&client.answer(id));
        }
    }
    assert_eq!(stage.file("lines-0.txt").unwrap(), "0\n1\n2\n");
    assert_eq!(stage.file("lines-1.txt").unwrap(), "0\n1\n2\n");
}

#[test]
fn a_call_that_another_window_repeats_runs_nothing() {
    let stage = Stage::new();
    let marking = json!({"command": format!("echo ran >> {}", stage.path("mark").display())});
    let marks = || std::fs::read_to_string(stage.path("mark")).unwrap_or_default().lines().count();
    let mut first = Client::connected(&stage, &[]);
    let mut second = Client::connected(&stage, &[]);
    worked(&second.call_as("toolu_0", "shell", json!({"command": "true"})));
    let told = worked(&first.call_as("toolu_1", "shell", marking.clone()));
    let again = second.call_as("toolu_1", "shell", marking.clone());
    assert_eq!(worked(&again), told);
    assert_eq!(again["result"]["_meta"]["backstitch/call"]["repeated"], true, "{again}");
    // Also after kills, when the servers continue each other's sessions.
    first.kill();
    second.kill();
    for _ in 0..2 {
        let mut next = Client::connected(&stage, &[]);
        worked(&next.call_as("toolu_1", "shell", marking.clone()));
        next.kill();
    }
    assert_eq!(marks(), 1);
}

#[test]
fn a_run_works_beside_an_idle_server() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    worked(&client.call("write_file", write("a.txt", "1\n")));
    let call = json!({"calls": [{"name": "write_file", "arguments": write("b.txt", "2\n")}]});
    let model = scripted(&stage, &json!([call, {"text": "Done."}]));
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert_eq!(stage.file("b.txt").unwrap(), "2\n");
    worked(&client.call("write_file", write("a.txt", "3\n")));
    assert_eq!(client.leave().code, Some(0));
}

#[test]
fn a_call_waits_for_a_run_and_then_says_what_holds_the_directory() {
    let stage = Stage::new();
    let mut patient = Client::connected(&stage, &[]);
    worked(&patient.call("write_file", write("a.txt", "1\n")));
    let mut hasty = Client::connected(&stage, &["--wait", "1s"]);
    let go = stage.path("go");
    let command = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done",
        stage.path("begun").display(),
        go.display()
    );
    let call = json!({"calls": [{"name": "shell", "arguments": {"command": command}}]});
    let model = scripted(&stage, &json!([call, {"text": "Done."}]));
    let run = stage.command(&["run", "Sew", "--model", &model]).spawn().unwrap();
    wait_until("the run", || stage.path("begun").exists());
    let waiting = patient.post_call(None, "write_file", write("a.txt", "2\n"));
    let refused = hasty.call("write_file", write("c.txt", "1\n"));
    assert!(failed(&refused).contains("waited for 1 s"), "{refused}");
    assert_eq!(refused["result"]["_meta"]["backstitch/error"]["code"], "workspace_held", "{refused}");
    assert!(patient.answer_within(waiting, Duration::from_millis(100)).is_err());
    std::fs::write(&go, "").unwrap();
    assert_eq!(ended(run).code, Some(0));
    worked(&patient.answer(waiting));
    worked(&hasty.call("write_file", write("c.txt", "1\n")));
    assert_eq!(stage.file("a.txt").unwrap(), "2\n");
}

#[test]
fn what_is_wrong_is_reported_to_the_client() {
    let stage = Stage::new();
    let mut client = Client::start_with(&stage, "name = \"tailor\"\ntools = [\"knit\"]\n", &[]);
    assert!(client.shake_hands(&json!({})), "the handshake is answered");
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "why_unavailable", "{listed}");
    let told = failed(&client.call("write_file", write("a.txt", "1\n")));
    assert!(told.contains("knit"), "{told}");
    // The next request tries again.
    stage.write("tailor.toml", AGENT);
    worked(&client.call("write_file", write("a.txt", "1\n")));
    assert_eq!(client.leave().code, Some(0));
    let mut client = Client::start_with(&stage, "name = 7\n", &[]);
    assert!(client.shake_hands(&json!({})), "the handshake is answered");
    let left = client.leave();
    assert_eq!(left.code, Some(2), "{}", left.errors);
}

#[test]
fn the_instructions_name_the_tools_and_files_are_sent_as_they_are() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let client = server.client();
    let instructions = client.information["instructions"].as_str().unwrap_or_default();
    assert!(instructions.contains("mend, read_file, shell, write_file"), "{instructions}");
    worked(&client.call("write_file", write("a.txt", "one\n\ttwo\n")));
    let read = client.call("read_file", json!({"path": "a.txt"}));
    assert_eq!(worked(&read), "one\n\ttwo\n");
    assert!(read["result"]["structuredContent"].is_null(), "{read}");
    let asking = json!({"name": "read_file", "arguments": {"path": "a.txt"}, "_meta": {"backstitch/structured": true}});
    let read = client.request("tools/call", asking);
    assert_eq!(read["result"]["structuredContent"]["text"], "one\n\ttwo\n", "{read}");
}
