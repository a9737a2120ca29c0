//! The client's id is the identity of a call.

use serde_json::{Value, json};

use super::client::{Client, failed, worked};
use crate::stage::{Stage, wait_until};

/// A call that leaves a mark beside the workspace each time it runs.
fn marking(stage: &Stage) -> Value {
    json!({"command": format!("echo ran >> {}", stage.path("mark").display())})
}

fn marks(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.path("mark")).unwrap_or_default().lines().count()
}

#[test]
fn a_repeated_call_runs_nothing() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let first = client.call_as("toolu_1", "shell", marking(&stage));
    let again = client.call_as("toolu_1", "shell", marking(&stage));
    assert_eq!(worked(&first), worked(&again));
    assert_eq!(marks(&stage), 1);
    let other = client.call_as("toolu_1", "shell", json!({"command": "true"}));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let other = client.call_as("toolu_1", "write_file", json!({"path": "a", "text": "b"}));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    // Without an id, the same call is another call.
    worked(&client.call("shell", marking(&stage)));
    assert_eq!(marks(&stage), 2);
    // A failure is a result, too.
    let broken = json!({"script": "exit 4"});
    let first = failed(&client.call_as("toolu_2", "mend", broken.clone()));
    assert_eq!(first, failed(&client.call_as("toolu_2", "mend", broken)));
}

#[test]
fn a_repeated_call_runs_nothing_in_another_process() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let first = worked(&client.call_as("toolu_1", "shell", marking(&stage)));
    let left = client.leave();
    assert_eq!(left.code, Some(0), "{}", left.errors);
    let mut client = Client::connected(&stage, &[]);
    assert_eq!(worked(&client.call_as("toolu_1", "shell", marking(&stage))), first);
    client.kill();
    let mut client = Client::connected(&stage, &[]);
    assert_eq!(worked(&client.call_as("toolu_1", "shell", marking(&stage))), first);
    assert_eq!(marks(&stage), 1);
    client.leave();
    let mut client = Client::connected(&stage, &["--new"]);
    worked(&client.call_as("toolu_1", "shell", marking(&stage)));
    assert_eq!(marks(&stage), 2);
}

#[test]
fn a_call_that_is_repeated_while_it_runs_joins_the_first() {
    let stage = Stage::new();
    let mut client = Client::connected(&stage, &[]);
    let mark = stage.path("mark");
    let command = format!("echo ran >> {}; while [ ! -e go ]; do sleep 0.05; done", mark.display());
    let arguments = json!({"command": command});
    let first = client.post_call(Some("toolu_1"), "shell", arguments.clone());
    wait_until("the call", || mark.exists());
    let second = client.post_call(Some("toolu_1"), "shell", arguments);
    let other = client.post_call(Some("toolu_1"), "shell", json!({"command": "true"}));
    assert_eq!(client.answer(other)["error"]["code"], -32602);
    std::fs::write(stage.path("files/go"), "").unwrap();
    let (first, second) = (client.answer(first), client.answer(second));
    assert_eq!(worked(&first), worked(&second));
    assert_eq!(marks(&stage), 1);
}
