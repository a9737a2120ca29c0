//! Questions of MCP servers to the person at the terminal. The server is a program of its own.

use serde_json::{Value, json};

use crate::chat;
use crate::pty::Pty;
use crate::stage::{Stage, scripted, text_of, wait_until};

const SERVER: &str = include_str!("asking.py");

fn form() -> Value {
    let properties = json!({
        "length": {"type": "integer", "minimum": 1, "maximum": 9, "description": "In \u{1b}[2Jcm."},
        "cloth": {"type": "string", "enum": ["silk", "wool"], "default": "wool"},
        "lined": {"type": "boolean"},
    });
    let schema = json!({"type": "object", "properties": properties, "required": ["length"]});
    json!({"mode": "form", "message": "Which hem?\nanswer it? [y]", "requestedSchema": schema})
}

/// Writes an agent with the server `forms`, and a model that calls it with these questions.
fn prepared(stage: &Stage, arguments: Value) -> (String, String) {
    let command = json!(["python3", stage.write("asking.py", SERVER)]);
    let file = format!("name = \"tailor\"\ntools = []\n\n[[mcp]]\nname = \"forms\"\ncommand = {command}\n");
    let agent = stage.write("tailor.toml", &file);
    let call = json!({"name": "forms__ask", "arguments": arguments});
    (agent, scripted(stage, &json!([{"calls": [call]}, {"text": "Sewn."}])))
}

/// Returns what the server returned, from the records of the session.
fn answers(stage: &Stage) -> Value {
    let shown = stage.json(&["show"]).to_string();
    let start = shown.find("{\\\"elicitation").unwrap_or_else(|| panic!("{shown}"));
    let end = start + shown[start..].find("]}").unwrap() + 2;
    serde_json::from_str(&shown[start..end].replace("\\\"", "\"")).unwrap()
}

/// Types the values of the form.
fn fill_in(terminal: &Pty) {
    terminal.wait_for("the MCP server \"forms\" asks you:");
    terminal.wait_for("  | Which hem?");
    terminal.wait_for("  | answer it? [y]");
    terminal.wait_for("- length (a whole number from 1 to 9, required)");
    terminal.wait_for("  | In \\u001b[2Jcm.");
    terminal.wait_for("- cloth (one of the choices, optional)");
    terminal.wait_for("  | 1  silk");
    terminal.wait_for("answer it? [y/n/q]");
    terminal.send("y\r");
    terminal.wait_for("length:");
    terminal.send("12\r");
    terminal.wait_for("this has to be a whole number from 1 to 9");
    terminal.wait_for_times("length:", 2);
    terminal.send("7\r");
    terminal.wait_for("cloth [\"wool\"]:");
    terminal.send("1\r");
    terminal.wait_for("lined (Enter for none):");
    terminal.send("\r");
    terminal.wait_for("this will be sent:");
    terminal.wait_for("  | {\"length\":7,\"cloth\":\"silk\"}");
    terminal.wait_for("send it? [y/e/n/q]");
    terminal.send("y\r");
}

#[test]
fn a_form_is_filled_in_at_the_terminal_and_recorded() {
    let stage = Stage::new();
    let (agent, model) = prepared(&stage, json!({"questions": [form()]}));
    let terminal = Pty::start(&stage, &["run", "Sew", "--agent", &agent, "--model", &model], 100, 40);
    fill_in(&terminal);
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("sent to the MCP server \"forms\"") && text.contains("\nSewn.\n"), "{text}");
    let answers = answers(&stage);
    assert_eq!(answers["elicitation"], json!({"form": {"schemaValidation": true}, "url": {}}));
    let content = json!({"length": 7, "cloth": "silk"});
    assert_eq!(answers["answers"], json!([{"action": "accept", "content": content}]));
    let records = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(records.contains("question 1 of the MCP server") && records.contains("Which hem?"), "{records}");
}

#[test]
fn a_conversation_shows_an_address_and_continues_after_a_question_is_declined() {
    let stage = chat::stage();
    let visit =
        json!({"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "1"});
    let (agent, model) = prepared(&stage, json!({"questions": [visit, form(), form()]}));
    let terminal = Pty::start(&stage, &["chat", "--agent", &agent, "--model", &model], 100, 40);
    chat::prompt(&terminal);
    terminal.send("Sew\r");
    terminal.wait_for("  | https://example.com/in");
    terminal.wait_for("have you visited it? [y/n/q]");
    terminal.send("y\r");
    terminal.wait_for("answer it? [y/n/q]");
    terminal.send("n\r");
    terminal.wait_for("declined: the MCP server \"forms\"");
    terminal.wait_for_times("answer it? [y/n/q]", 2);
    // Ctrl-C ends the question, not the turn.
    terminal.send("\u{3}");
    terminal.wait_for("cancelled: the MCP server \"forms\"");
    terminal.wait_for("Sewn.");
    chat::leave(terminal);
    let actions = json!([{"action": "accept"}, {"action": "decline"}, {"action": "cancel"}]);
    assert_eq!(answers(&stage)["answers"], actions);
}

#[test]
fn an_answer_survives_a_kill_and_is_not_asked_for_again() {
    let stage = Stage::new();
    let written = stage.path("written");
    let arguments = json!({"questions": [form()], "written": text_of(&written)});
    let (agent, model) = prepared(&stage, arguments);
    let flags = ["--agent", &agent, "--model", &model];
    let mut terminal = Pty::start(&stage, &[&["run", "Sew"], &flags[..]].concat(), 100, 40);
    // A kill at the question loses nothing: it is asked again.
    terminal.wait_for("answer it? [y/n/q]");
    terminal.kill();
    let mut terminal = Pty::start(&stage, &["resume"], 100, 40);
    fill_in(&terminal);
    wait_until("the answer", || std::fs::read_to_string(&written).is_ok_and(|text| text.ends_with('}')));
    terminal.kill();
    std::fs::write(stage.path("go"), "").unwrap();
    let terminal = Pty::start(&stage, &["resume"], 100, 40);
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Sewn.") && !text.contains("asks you"), "{text}");
    assert_eq!(answers(&stage)["answers"][0]["content"], json!({"length": 7, "cloth": "silk"}));
}

#[test]
fn without_a_terminal_a_question_is_declined_with_a_word() {
    let stage = Stage::new();
    let (agent, model) = prepared(&stage, json!({"questions": [form()]}));
    let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(ran.errors.contains("which is declined: nobody is at a terminal"), "{}", ran.errors);
    let answers = answers(&stage);
    assert_eq!(answers, json!({"elicitation": null, "answers": [{"action": "decline"}]}));
}

#[test]
fn a_question_in_a_form_that_is_not_known_is_declined() {
    let stage = Stage::new();
    let nowhere =
        json!({"mode": "url", "message": "Look", "url": "file:///etc/passwd", "elicitationId": "1"});
    let (agent, model) = prepared(&stage, json!({"questions": [nowhere]}));
    let terminal = Pty::start(&stage, &["run", "Sew", "--agent", &agent, "--model", &model], 100, 40);
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("asks you"), "{text}");
    assert_eq!(answers(&stage)["answers"], json!([{"action": "decline"}]));
}

#[test]
fn a_server_that_asks_on_and_on_is_declined_and_fills_no_journal() {
    let stage = Stage::new();
    let (agent, model) = prepared(&stage, json!({"questions": vec![form(); 25]}));
    let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert_eq!(answers(&stage)["answers"], json!(vec![json!({"action": "decline"}); 25]));
    let records = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(records.contains("question 20 of") && !records.contains("question 21 of"), "{records}");
}
