//! Codex as an engine: a stand-in program.

use std::fs;

use serde_json::{Value, json};

use super::codex_stand_in::{CODEX_AGENT, Codex, codex_stage};
use super::pipes::{give_up, with_deadline};
use super::stand_in::run;
use crate::stage::{Stage, ended, interrupt, wait_until};

fn stage() -> Stage {
    codex_stage("0.166.0")
}

fn call_id(stage: &Stage, foreign: &str) -> String {
    let output = stage.run(&["log", &stage.session(), "--json", "--all"]).worked_quietly();
    let records = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut contents = records.map(|record| record["data"]["message"]["content"].clone());
    let found = contents.find(|content| content["provider_call_id"] == foreign);
    found.unwrap()["invocation_id"].as_str().unwrap().to_owned()
}

#[test]
fn each_call_of_codex_is_a_point_and_its_tokens_are_counted() {
    let stage = stage();
    fs::write(stage.path("files/kept"), "kept").unwrap();
    let child = run(&stage, &[]);
    let mut codex = Codex::begin(&stage, None);
    let opened = codex.opened.clone();
    assert_eq!(opened["method"], "thread/start");
    assert_eq!(opened["params"]["approvalPolicy"], "untrusted", "so that it asks about each call: {opened}");
    assert_eq!(opened["params"]["developerInstructions"], "You mend clothes.");
    assert_eq!(codex.prompt(), "Mend it");
    let settings = codex.pipes.arguments.join(" ");
    assert!(
        settings.contains("mcp_servers.backstitch.command=") && settings.contains("\"relay\""),
        "{settings}"
    );
    assert!(codex.calls("call_01", "echo one > one", 0, |files| fs::write(files.join("one"), "1").unwrap()));
    assert!(
        codex.calls("call_02", "rm kept; exit 3", 3, |files| fs::remove_file(files.join("kept")).unwrap())
    );
    // Tools of this agent are recorded where they run, and others are asked about like commands.
    let approval = |server: &str| json!({"serverName": server, "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"t": 1}}});
    let own = codex.ask("mcpServer/elicitation/request", approval("backstitch"));
    assert_eq!(own["result"]["action"], "accept", "{own}");
    let mut item = json!({"type": "mcpToolCall", "id": "call_03", "server": "notes", "tool": "add", "arguments": {"t": 1}});
    codex.notify("item/started", json!({"item": item}));
    let other = codex.ask("mcpServer/elicitation/request", approval("notes"));
    assert_eq!(other["result"]["action"], "accept", "{other}");
    item["status"] = json!("completed");
    codex.notify("item/completed", json!({"item": item}));
    // What nobody can answer is refused, and what is not known is ignored.
    assert!(codex.ask("item/tool/requestUserInput", json!({"questions": []}))["error"].is_object());
    codex.notify("later/notification", json!({"item": 7}));
    codex.notify("item/completed", json!({"item": {"type": "later"}}));
    codex.ends("Mended.");
    assert!(ended(child).worked_quietly().contains("Mended."));
    let session = stage.session();
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains("calls Bash {\"command\":\"echo one > one\"}"), "{log}");
    assert!(log.contains("failed: Exit code 3") && log.contains("calls mcp__notes__add"), "{log}");
    let tokens = stage.json(&["stats"]).to_string();
    assert!(tokens.contains("150"), "three requests of 50 tokens: {tokens}");
    stage.run(&["rewind", &session, &format!("before:{}", call_id(&stage, "call_02"))]).worked_quietly();
    assert_eq!((stage.file("kept").as_deref(), stage.file("one").as_deref()), (Some("kept"), Some("1")));
}

#[test]
fn a_denied_call_of_codex_does_not_run_and_its_model_reads_why() {
    let stage = stage();
    stage.write("tailor.toml", &format!("{CODEX_AGENT}\n[approval]\ndefault = \"ask\"\n"));
    let child = run(&stage, &[]);
    let mut codex = Codex::begin(&stage, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let denies = || {
                stage.run(&["deny", &stage.session(), "--all", "--reason", "Keep the seam"]).code == Some(0)
            };
            wait_until("a call that waits", denies);
        });
        assert!(!codex.calls("call_01", "rm seam", 0, |_| panic!("it was denied")));
    });
    assert!(codex.remarks.concat().contains("Keep the seam"), "{:?}", codex.remarks);
    codex.ends("Left as it is.");
    ended(child).worked_quietly();
}

#[test]
fn an_interrupted_codex_is_rolled_back_and_continues_in_its_thread() {
    let stage = stage();
    let child = run(&stage, &["--json"]);
    let mut codex = Codex::begin(&stage, None);
    let prompt = codex.prompt_id().clone();
    codex.calls("call_01", "echo one > one", 0, |files| fs::write(files.join("one"), "1").unwrap());
    assert!(codex.begins_call("call_02", "make everything"));
    fs::write(stage.path("files/half"), "half").unwrap();
    let ran = std::thread::scope(|scope| {
        let ending = scope.spawn(|| interrupt(child));
        codex.wait_for_interrupt();
        ending.join().unwrap()
    });
    assert!(ran.output.contains("paused"), "{}\n{}", ran.output, ran.errors);
    assert_eq!((stage.file("one").as_deref(), stage.file("half")), (Some("1"), None));

    let done = |id: &str, status: &str| json!({"type": "commandExecution", "id": id, "status": status});
    let items = json!([{"type": "userMessage", "clientId": prompt}, done("call_01", "completed"), done("call_02", "inProgress")]);
    let known = json!([{"id": "turn-1", "items": items}]);
    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    let codex = Codex::begin(&stage, Some(known));
    assert_eq!(
        (&codex.opened["method"], &codex.opened["params"]["threadId"]),
        (&json!("thread/resume"), &json!("thread-1"))
    );
    assert!(
        codex.prompt().contains("make everything") && codex.prompt().contains("rolled back"),
        "{}",
        codex.prompt()
    );
    codex.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));

    // A thread that is gone, and a point that it cannot be cut at: it gets the record of the conversation.
    let call = call_id(&stage, "call_01");
    stage.run(&["rewind", &stage.session(), &format!("after:{call}")]).worked_quietly();
    let child = stage.command(&["resume", &stage.session()]).spawn().unwrap();
    let codex = Codex::begin(&stage, None);
    assert_eq!(codex.opened["method"], "thread/start");
    assert!(codex.prompt().contains("echo one > one"), "{}", codex.prompt());
    codex.ends("Done otherwise.");
    assert!(ended(child).worked_quietly().contains("Done otherwise."));
}

#[test]
fn a_deadline_interrupts_codex_and_a_spent_budget_pauses_it() {
    with_deadline(|deadline| {
        let stage = stage();
        let mut child = run(&stage, &["--deadline", deadline, "--json"]);
        let Some(mut codex) = Codex::try_begin(&stage, &mut child) else { return give_up(child) };
        if !codex.begins_call("call_01", "make everything") || codex.is_stopped() {
            return give_up(child);
        }
        fs::write(stage.path("files/half"), "half").unwrap();
        codex.wait_for_interrupt();
        let ran = ended(child);
        assert!(ran.output.contains("deadline"), "{}\n{}", ran.output, ran.errors);
        assert_eq!(stage.file("half"), None, "a call that was stopped is rolled back");
        Some(())
    });

    let stage = stage();
    let child = run(&stage, &["--budget", "calls=1", "--json"]);
    let mut codex = Codex::begin(&stage, None);
    let prompt = codex.prompt_id().clone();
    codex.calls("call_01", "echo one > one", 0, |files| fs::write(files.join("one"), "1").unwrap());
    let is_allowed = codex.calls("call_02", "echo two > two", 0, |_| panic!("one call is allowed"));
    assert!(!is_allowed);
    codex.wait_for_interrupt();
    let ran = ended(child);
    assert!(ran.output.contains("budget"), "{}\n{}", ran.output, ran.errors);
    assert_eq!(stage.file("one").as_deref(), Some("1"));
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(!log.contains("not seen") && log.contains("was not run"), "{log}");
    // The refused call is named when the session continues in the same thread.
    let done = |id: &str, status: &str| json!({"type": "commandExecution", "id": id, "status": status});
    let items = json!([{"type": "userMessage", "clientId": prompt}, done("call_01", "completed"), done("call_02", "declined")]);
    let known = json!([{"id": "turn-1", "items": items}]);
    let child = stage.command(&["resume", &stage.session(), "--budget", "calls=9"]).spawn().unwrap();
    let codex = Codex::begin(&stage, Some(known));
    assert_eq!(codex.opened["method"], "thread/resume");
    assert!(
        codex.prompt().contains("echo two > two") && codex.prompt().contains("not run"),
        "{}",
        codex.prompt()
    );
    codex.ends("Done.");
    assert!(ended(child).worked_quietly().contains("Done."));
}

#[test]
fn the_calls_of_the_last_turn_of_codex_are_not_run_and_named_at_the_next_resume() {
    let stage = stage();
    let child = run(&stage, &["--budget", "turns=2", "--json"]);
    let mut codex = Codex::begin(&stage, None);
    let prompt = codex.prompt_id().clone();
    codex.calls("call_01", "echo one > one", 0, |files| fs::write(files.join("one"), "1").unwrap());
    // It would send a third request as soon as this call ends.
    assert!(!codex.calls("call_02", "echo two > two", 0, |_| panic!("it is the last turn")));
    codex.wait_for_interrupt();
    let ran = ended(child);
    assert!(ran.output.contains("the budget of 2 turns"), "{}\n{}", ran.output, ran.errors);
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(!log.contains("gap") && log.contains("was not run"), "{log}");
    let done = |id: &str, status: &str| json!({"type": "commandExecution", "id": id, "status": status});
    let items = json!([{"type": "userMessage", "clientId": prompt}, done("call_01", "completed"), done("call_02", "declined")]);
    let known = json!([{"id": "turn-1", "items": items}]);
    let child = stage.command(&["resume", &stage.session(), "--budget", "turns=9"]).spawn().unwrap();
    let codex = Codex::begin(&stage, Some(known));
    assert!(codex.prompt().contains("echo two > two"), "{}", codex.prompt());
    codex.ends("Done.");
    ended(child).worked_quietly();
}

#[test]
fn money_of_codex_is_limited_only_if_its_price_is_known() {
    let stage = stage();
    let named =
        CODEX_AGENT.replace("engine = \"codex\"", "engine = { name = \"codex\", model = \"thread-1\" }");
    let money = "[budget]\nmoney = 1.0\n";
    let price = "[prices.\"openai:thread-1\"]\ninput = 10000\noutput = 10000\n";
    for text in [
        format!("{CODEX_AGENT}\n{money}"),
        format!("{CODEX_AGENT}\n{money}{price}"),
        format!("{named}\n{money}"),
    ] {
        stage.write("tailor.toml", &text);
        let errors = ended(run(&stage, &[])).called_wrongly();
        assert!(errors.contains("budget.money") && errors.contains("`prices`"), "{errors}");
        assert!(!stage.path("pipes/pid").exists(), "the program was started");
    }
    // The stand-in uses another model than the named one, whose price is unknown.
    stage.write("tailor.toml", &format!("{named}\n{money}{price}"));
    let child = run(&stage, &["--json"]);
    let mut codex = Codex::begin(&stage, None);
    codex.calls("call_01", "echo one > one", 0, |files| fs::write(files.join("one"), "1").unwrap());
    assert!(!codex.begins_call("call_02", "echo two > two"));
    codex.wait_for_interrupt();
    let ran = ended(child);
    assert!(ran.output.contains("the price of openai:seam-1 is unknown"), "{}\n{}", ran.output, ran.errors);
}

#[test]
fn a_fork_of_a_session_continues_with_a_fork_of_the_thread() {
    let stage = stage();
    let child = run(&stage, &[]);
    let mut codex = Codex::begin(&stage, None);
    let prompt = codex.prompt_id().clone();
    codex.calls("call_01", "echo one > one", 0, |files| fs::write(files.join("one"), "1").unwrap());
    codex.ends("Done.");
    ended(child).worked_quietly();
    let fork = stage.json(&["fork", &stage.session()])["session"].as_str().unwrap().to_owned();
    let known = json!([{"id": "turn-1", "items": [{"type": "userMessage", "clientId": prompt}, {"type": "agentMessage"}]}]);
    let child = stage.command(&["ask", &fork, "And now?"]).spawn().unwrap();
    let codex = Codex::begin(&stage, Some(known));
    assert_eq!(
        (&codex.opened["method"], &codex.opened["params"]["threadId"]),
        (&json!("thread/fork"), &json!("thread-1"))
    );
    assert_eq!(codex.prompt(), "And now?");
    codex.ends("Forked.");
    assert!(ended(child).worked_quietly().contains("Forked."));
}

#[test]
fn a_missing_old_or_hostile_codex_is_an_error() {
    let stage = Stage::new();
    let agent = stage.write("tailor.toml", CODEX_AGENT);
    let stage = stage.with_variable("PATH", "/usr/bin:/bin");
    let errors = stage.run(&["run", "Mend it", "--agent", &agent]).failed();
    assert!(errors.contains("engine_missing") && errors.contains("npm install -g @openai/codex"), "{errors}");

    let stage = codex_stage("0.50.1");
    let errors = ended(run(&stage, &[])).failed();
    assert!(errors.contains("0.50.1") && errors.contains("too old"), "{errors}");

    for line in ["hello\n", "[1]\n", "{\"id\":\n", "\u{1b}[2J\u{7}\n", "{\"id\":{}}\n"] {
        let stage = self::stage();
        let child = run(&stage, &[]);
        let mut codex = Codex::begin(&stage, None);
        assert!(codex.begins_call("call_01", "echo half > half"));
        fs::write(stage.path("files/half"), "half").unwrap();
        codex.pipes.write(line);
        codex.pipes.read_rest();
        drop(codex);
        let errors = ended(child).failed();
        assert!(errors.contains("engine_failed") && !errors.contains('\u{1b}'), "{errors:?}");
        assert_eq!(stage.file("half"), None, "an open call is rolled back");
    }
}
