//! A run whose agent calls a tool of an MCP server is killed at every crash point of the call, and resumed.
//!
//! The server is a shell script, so that it shares no code with the client. It changes files of the workspace and
//! leaves a mark beside it each time it runs. A tool with effects outside is never run twice without a decision.

use serde_json::json;

use super::trial::{Crash, Files, files};
use super::{crashes, for_each};
use crate::stage::{Stage, last_line, scripted, text_of};

/// A server with one tool.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"mend","description":"Mends.","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      echo ran >> "$0.mark"
      echo half > half.txt; echo nine > note.txt; rm half.txt; echo new > new.txt
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"mended"}]}}\n' "$id" ;;
    *) [ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
  esac
done
"#;

/// A directory with a note, an agent and its server.
struct Place {
    stage: Stage,
    agent: String,
    model: String,
}

impl Place {
    fn new(effect: &str) -> Self {
        let stage = Stage::new();
        std::fs::write(stage.path("files/note.txt"), "seven\n").unwrap();
        let server = stage.write("server.sh", SERVER);
        let file = format!(
            "name = \"outer\"\ntools = []\n\n[[mcp]]\nname = \"it\"\ncommand = {}\neffects = {{ mend = \"{effect}\" }}\n",
            json!(["sh", server])
        );
        let agent = stage.write("outer.toml", &file);
        let model =
            scripted(&stage, &json!([{"calls": [{"name": "it__mend", "arguments": {}}]}, {"text": "Done."}]));
        Self { stage, agent, model }
    }

    /// Starts the run with a variable, and returns its exit code.
    fn run(&self, variable: &str, value: &str) -> Option<i32> {
        let stage = Stage::beside(&self.stage).with_variable(variable, value);
        stage.run(&["run", "Sew", "--agent", &self.agent, "--model", &self.model]).code
    }

    fn marks(&self) -> usize {
        std::fs::read_to_string(self.stage.path("server.sh.mark")).unwrap_or_default().lines().count()
    }
}

/// Resumes a killed run until it is done. Returns whether a person was asked.
fn resume(place: &Place, crash: &Crash, before: &Files) -> bool {
    let stage = &place.stage;
    let resumed = stage.run(&["resume", "--json"]);
    let last = last_line(&resumed.output);
    if resumed.code == Some(0) {
        assert_eq!(last["text"], "Done.", "{crash}: {last}");
        return false;
    }
    assert_eq!((resumed.code, &last["reason"]), (Some(3), &json!("effect_unknown")), "{crash}: {last}");
    let (session, call) = (last["session"].as_str().unwrap(), last["call"].as_str().unwrap());
    stage.run(&["resolve", session, call, "fail"]).worked();
    let resumed = stage.run(&["resume"]);
    assert_eq!((resumed.code, &*resumed.output), (Some(0), "Done.\n"), "{crash}: {}", resumed.errors);
    assert_eq!(&files(stage), before, "{crash}: the files of a failed call are restored");
    true
}

fn check(effect: &str) {
    let place = Place::new(effect);
    let before = files(&place.stage);
    let list = text_of(&place.stage.path("reached"));
    assert_eq!(place.run("BACKSTITCH_REACHED", &list), Some(0));
    let after = files(&place.stage);
    assert_eq!((place.marks(), &*after["note.txt"], after.len()), (1, "nine\n", 2));
    let reached = std::fs::read_to_string(list).unwrap();
    // The points of the call. What comes before it is covered for all tools.
    let from = reached.find("call.before_intent").expect("the call is made");
    let all = crashes(&reached);
    let of_call: Vec<_> = all.into_iter().filter(|crash| reached[from..].contains(&crash.point)).collect();
    for_each(of_call, |crash| {
        let place = Place::new(effect);
        let code = place.run("BACKSTITCH_ABORT_AT", &crash.to_string());
        assert!(code.is_none() || crash.hit > 1, "{crash} was not reached");
        if !place.stage.path("store/store.db").exists()
            || place.stage.run(&["ls", "--json"]).output.is_empty()
        {
            assert_eq!(place.marks(), 0, "{crash}");
            return;
        }
        let was_asked = resume(&place, crash, &before);
        if !was_asked {
            assert_eq!(files(&place.stage), after, "{crash}");
        }
        if effect == "external" {
            assert!(place.marks() <= 1, "{crash}: it ran {} times", place.marks());
            assert!(was_asked || place.marks() == 1, "{crash}");
        } else {
            assert!(!was_asked && place.marks() >= 1, "{crash}");
        }
        let verified = place.stage.run(&["verify"]);
        assert_eq!(verified.code, Some(0), "{crash}: {}{}", verified.output, verified.errors);
    });
}

#[test]
fn an_external_tool_of_a_server_is_not_run_twice_without_a_decision() {
    check("external");
}

#[test]
fn a_workspace_tool_of_a_server_is_rolled_back_and_run_again() {
    check("workspace");
}
