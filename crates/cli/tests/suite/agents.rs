//! Agents that ask models: the real binary against a server on loopback.

use serde_json::{Value, json};

use crate::command::Ran;
use crate::model::{MODEL, Model, PROVIDERS, Said};
use crate::stage::{Stage, as_slices, interrupt, last_line, wait_until};

const KEY: &str = "sk-hunter2-0123456789";

fn writes() -> Said {
    Said::Call("I write.", "write_file", json!({"path": "a.txt", "text": "mended\n"}))
}

fn start(stage: &Stage, provider: &str, model: &Model, more: &[&str]) -> Ran {
    stage.run(&as_slices(&Stage::asking(provider, model, more)))
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn every_provider_is_driven_to_its_answer_and_its_requests_can_be_made_again() {
    for (provider, variable) in PROVIDERS {
        let stage = Stage::new().with_variable(variable, KEY);
        let model = Model::new(provider, [writes(), Said::Text("It is mended.")]);
        let ran = start(&stage, provider, &model, &["--system", "You mend. It costs $5."]);
        assert_eq!(ran.worked_quietly(), "It is mended.\n", "{provider}");
        assert_eq!(stage.file("a.txt").unwrap(), "mended\n");
        let asked = model.asked();
        assert_eq!(asked.len(), 2, "{provider}");
        assert!(asked.iter().all(|asked| asked.head.contains(KEY)), "{provider}: {:?}", asked[0].head);
        assert!(asked[0].body.contains("It costs $5."), "{provider}");

        let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
        for (turn, asked) in ["1", "2"].into_iter().zip(&asked) {
            let ran = stage.run(&["request", &session, turn, "--raw"]);
            assert!(ran.errors.contains("it is the request that was sent"), "{provider}: {}", ran.errors);
            assert_eq!(ran.worked_quietly(), asked.body, "{provider}, turn {turn}");
        }
        let latest = stage.json(&["request", &session]);
        assert_eq!((&latest["turn"], &latest["agrees"]), (&json!(2), &json!(true)), "{provider}");
        assert!(!contains(&stage.stored_bytes(), KEY), "{provider}: the key is in the store");
    }
}

#[test]
fn a_follow_up_is_sent_with_the_conversation_before_it_and_can_be_made_again() {
    for (provider, variable) in PROVIDERS {
        let stage = Stage::new().with_variable(variable, KEY);
        let answers =
            [writes(), Said::Text("It is mended."), writes(), Said::Text("That too."), Said::Text("Bye.")];
        let model = Model::new(provider, answers);
        let ran = start(&stage, provider, &model, &["--system", "You mend."]);
        assert_eq!(ran.worked_quietly(), "It is mended.\n", "{provider}");
        let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
        assert_eq!(stage.run(&["ask", &session, "And the sleeve?"]).worked_quietly(), "That too.\n");
        let asked = model.asked();
        assert_eq!(asked.len(), 4, "{provider}: the server refused none of them");
        let follow_up = &asked[3].body;
        let place = |what: &str| follow_up.find(what).unwrap_or_else(|| panic!("{what}: {follow_up}"));
        assert!(place("Mend it") < place("It is mended."), "{provider}: {follow_up}");
        assert!(place("It is mended.") < place("And the sleeve?"), "{provider}: {follow_up}");
        assert_eq!(follow_up.matches("You mend.").count(), 1, "{provider}: {follow_up}");
        assert_eq!(follow_up.matches("I write.").count(), 2, "{provider}: {follow_up}");
        for (turn, asked) in ["1", "2"].into_iter().zip(&asked[2..]) {
            let ran = stage.run(&["request", &session, turn, "--raw"]);
            assert!(ran.errors.contains("it is the request that was sent"), "{provider}: {}", ran.errors);
            assert_eq!(ran.worked_quietly(), asked.body, "{provider}, turn {turn}");
        }
        // Messages after the point of a rewind are not in the next request.
        stage.run(&["rewind", &session, "start"]).worked();
        assert_eq!(stage.run(&["ask", &session, "Hello"]).worked_quietly(), "Bye.\n");
        let last = &model.asked()[4].body;
        assert!(!last.contains("Mend it") && last.contains("Hello"), "{provider}: {last}");
    }
}

#[test]
fn the_text_of_a_model_is_streamed_and_a_killed_process_repeats_the_request() {
    for (provider, _) in PROVIDERS {
        let stage = Stage::new();
        let model = Model::new(provider, [Said::Hangs("It is half"), Said::Text("It is mended.")]);
        let mut child =
            stage.command(&as_slices(&Stage::asking(provider, &model, &["--json"]))).spawn().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let told = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let told = told.into_iter().find(|line| line["event"] == "text").unwrap();
        assert_eq!((&told["turn"], &told["text"]), (&json!(1), &json!("It is half")), "{provider}");
        child.kill().unwrap();
        child.wait().unwrap();

        let shown = stage.json(&["show"]);
        assert!(!shown.to_string().contains("It is half"), "{provider}: half an answer was recorded");
        assert_eq!(stage.run(&["resume"]).worked_quietly(), "It is mended.\n", "{provider}");
        let asked = model.asked();
        assert_eq!(asked.len(), 2, "{provider}");
        assert_eq!(asked[0].body, asked[1].body, "{provider}: the same journal makes the same request");
    }
}

#[test]
fn a_process_that_is_killed_in_a_call_makes_it_again_and_asks_nothing_twice() {
    let stage = Stage::new();
    let command =
        "echo one > a.txt; if [ -e ../again ]; then echo two >> a.txt; else touch ../again; sleep 60; fi";
    let call = Said::Call("I run it.", "shell", json!({"command": command}));
    let model = Model::new("anthropic", [call, Said::Text("It ran.")]);
    let arguments = Stage::asking("anthropic", &model, &["--shell-effect", "workspace"]);
    let mut child = stage.command(&as_slices(&arguments)).spawn().unwrap();
    wait_until("the call", || stage.path("again").exists());
    child.kill().unwrap();
    child.wait().unwrap();

    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    assert_eq!(stage.run(&["resume", &session]).worked_quietly(), "It ran.\n");
    assert_eq!(stage.file("a.txt").unwrap(), "one\ntwo\n");
    assert_eq!(model.asked().len(), 2);
    for turn in ["1", "2"] {
        assert_eq!(stage.json(&["request", &session, turn])["agrees"], true);
    }
}

#[test]
fn ctrl_c_pauses_a_session_that_waits_for_an_answer() {
    let stage = Stage::new();
    let model = Model::new("openai", [Said::Hangs(""), Said::Text("Done.")]);
    let child = stage.command(&as_slices(&Stage::asking("openai", &model, &[]))).spawn().unwrap();
    wait_until("the request", || model.asked().len() == 1);
    let ran = interrupt(child);
    assert_eq!((ran.code, ran.output.as_str()), (Some(130), ""), "{}", ran.errors);
    assert!(ran.errors.contains("backstitch resume"), "{}", ran.errors);
    assert_eq!(stage.json(&["ls"])["status"], "paused");
    assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n");
}

#[test]
fn ctrl_c_rolls_back_a_call() {
    let stage = Stage::new();
    let command = "echo half > half.txt; touch ../begun; sleep 60";
    let call = Said::Call("I run it.", "shell", json!({"command": command}));
    let model = Model::new("gemini", [call, Said::Text("Never mind.")]);
    let child = stage.command(&as_slices(&Stage::asking("gemini", &model, &["--json"]))).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    let ran = interrupt(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(last_line(&ran.output)["outcome"], "paused");
    assert_eq!(stage.file("half.txt"), None, "what ran is rolled back");
}

#[test]
fn a_call_that_needs_approval_waits_for_it() {
    for (decision, wrote) in [("approve", true), ("deny", false)] {
        let stage = Stage::new();
        let model = Model::new("openai-chat", [writes(), Said::Text("Well.")]);
        let paused = start(&stage, "openai-chat", &model, &["--approve", "ask", "--json"]);
        assert_eq!(paused.code, Some(3), "{paused:?}");
        let paused = last_line(&paused.output);
        assert_eq!((&paused["outcome"], &paused["reason"]), (&json!("paused"), &json!("approval")));
        assert_eq!(stage.file("a.txt"), None);
        let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
        stage.run(&["resolve", session, call, decision]).worked();
        assert_eq!(stage.run(&["resume", session]).worked_quietly(), "Well.\n");
        assert_eq!(stage.file("a.txt").is_some(), wrote, "{decision}");
    }
}

#[test]
fn a_spent_budget_pauses_and_a_larger_one_resumes() {
    let stage = Stage::new();
    let model = Model::new("openai", [writes(), Said::Text("Done.")]);
    let paused = start(&stage, "openai", &model, &["--budget", "input_tokens=100"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    assert!(paused.errors.contains("--budget"), "{}", paused.errors);
    assert_eq!(stage.run(&["resume"]).code, Some(3));
    assert_eq!(stage.run(&["resume", "--budget", "input_tokens=1000000"]).worked_quietly(), "Done.\n");
}

#[test]
fn a_session_continues_with_another_provider_and_every_request_agrees() {
    let stage = Stage::new();
    let first = Model::new("gemini", [writes(), Said::Hangs("")]);
    let child = stage.command(&as_slices(&Stage::asking("gemini", &first, &[]))).spawn().unwrap();
    wait_until("the second request", || first.asked().len() == 2);
    assert_eq!(interrupt(child).code, Some(130));

    let second = Model::new("anthropic", [writes(), Said::Text("Done.")]);
    let name = format!("anthropic:{MODEL}");
    let ran = stage.run(&["resume", "--model", &name, "--base-url", &second.url]);
    assert_eq!(ran.worked_quietly(), "Done.\n");
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let log = stage.run(&["log", &session]).worked();
    assert!(log.contains(&format!("continues with {name}")), "{log}");
    assert!(log.contains("not what was said"), "the log names what was dropped: {log}");
    let turns = [("1", "gemini", &first.asked()[0]), ("2", "anthropic", &second.asked()[0])];
    for (turn, provider, asked) in turns {
        let request = stage.json(&["request", &session, turn]);
        assert_eq!((&request["provider"], &request["agrees"]), (&json!(provider), &json!(true)), "{turn}");
        assert_eq!(stage.run(&["request", &session, turn, "--raw"]).worked_quietly(), asked.body);
    }
    // A later resume continues with the other model without naming it.
    let shown = stage.json(&["resume", &session]);
    assert_eq!(shown["text"], "Done.");
}

/// Messages of a script have no raw payload, so they are sent as text. The model refuses what a strict server
/// refuses.
#[test]
fn a_session_of_a_script_continues_with_every_provider() {
    for (provider, variable) in PROVIDERS {
        for said in ["text = \"I look.\"", ""] {
            let stage = Stage::new().with_variable(variable, KEY);
            stage
                .write("script.toml", &format!("[[reply]]\n{said}\n[[reply.call]]\nname = \"list_files\"\n"));
            let script = format!("scripted:{}", stage.path("script.toml").display());
            assert_eq!(stage.run(&["run", "Look", "--model", &script]).code, Some(1));
            let model = Model::new(provider, [Said::Text("Seen.")]);
            let name = format!("{provider}:{MODEL}");
            let ran = stage.run(&["resume", "--model", &name, "--base-url", &model.url]);
            assert_eq!(ran.worked_quietly(), "Seen.\n", "{provider} after {said:?}");
        }
    }
}

#[test]
fn what_a_provider_cannot_honour_and_what_never_ends_is_refused_before_anything_starts() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", KEY);
    stage.write("agent.toml", "model = 'openai:m'\n[request]\nthinking = 16000\n");
    let agent = stage.path("agent.toml").display().to_string();
    let ran = stage.run(&["run", "Look", "--agent", &agent]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.errors.contains("agent.toml:3: request.thinking: "), "{}", ran.errors);
    for endless in [["--agent", "/dev/zero"], ["--model", "scripted:/dev/zero"]] {
        let ran = stage.run(&["run", "Look", endless[0], endless[1]]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.errors.contains("larger than"), "{}", ran.errors);
    }
}

#[test]
fn a_key_is_nowhere_even_when_a_provider_repeats_it() {
    for (provider, variable) in PROVIDERS {
        let stage = Stage::new().with_variable(variable, KEY);
        let body = json!({"error": {"message": format!("Incorrect key {KEY}"), "code": "invalid_api_key"}});
        let model = Model::new(provider, [Said::Refused("401 Unauthorized", body.to_string())]);
        let ran = start(&stage, provider, &model, &[]);
        assert_eq!(ran.code, Some(1), "{provider}: {ran:?}");
        assert!(ran.errors.contains("auth") && ran.errors.contains("backstitch resume"), "{}", ran.errors);
        assert!(!ran.errors.contains(KEY), "{provider}: {}", ran.errors);
        assert!(!contains(&stage.stored_bytes(), KEY), "{provider}");
    }
}

#[test]
fn an_error_that_repeats_the_keys_of_all_providers_is_said_once_without_them() {
    let keys = [
        ("OPENAI_API_KEY", "sk-hunter2-0123456789"),
        ("ANTHROPIC_API_KEY", "sk-ant-hunter3-0123456789"),
        ("OPENROUTER_API_KEY", "sk-or-hunter4-0123456789"),
    ];
    let stage = keys.iter().fold(Stage::new(), |stage, (name, key)| stage.with_variable(name, key));
    let said = keys.map(|(_, key)| key).join(" ");
    let body = json!({"error": {"message": format!("Wrong keys: {said}"), "code": "invalid_api_key"}});
    let model = Model::new("openai", [Said::Refused("401 Unauthorized", body.to_string())]);
    let ran = start(&stage, "openai", &model, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.errors.contains("hunter"), "{}", ran.errors);
    assert_eq!(ran.errors.matches("[secret] [secret] [secret]").count(), 1, "{}", ran.errors);
}

#[test]
fn a_message_sent_during_a_run_reaches_the_model() {
    let stage = Stage::new();
    let command = "touch ../begun; while [ ! -e ../heard ]; do sleep 0.05; done";
    let call = Said::Call("I wait.", "shell", json!({"command": command}));
    let model = Model::new("openai", [call, Said::Text("With wool, then.")]);
    let child = stage.command(&as_slices(&Stage::asking("openai", &model, &[]))).spawn().unwrap();
    wait_until("the call", || stage.path("begun").exists());
    stage.run(&["send", stage.json(&["ls"])["session"].as_str().unwrap(), "Use wool"]).worked();
    stage.write("heard", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "With wool, then.\n");
    assert!(model.asked()[1].body.contains("Use wool"));
}

#[test]
fn a_retry_is_reported_as_an_event() {
    let stage = Stage::new();
    let body = json!({"error": {"message": "too much to do", "type": "overloaded_error"}}).to_string();
    let model = Model::new("anthropic", [Said::Refused("529 Overloaded", body), Said::Text("Done.")]);
    let ran = start(&stage, "anthropic", &model, &["--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events: Vec<Value> = ran.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let retry = events.iter().find(|event| event["event"] == "retry").unwrap();
    assert_eq!((&retry["attempt"], &retry["kind"]), (&json!(1), &json!("overloaded")), "{retry}");
    assert_eq!(last_line(&ran.output)["text"], "Done.");
}

#[test]
fn commands_do_not_see_keys() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", KEY);
    let call = Said::Call("I look.", "shell", json!({"command": "env > env.txt"}));
    let model = Model::new("openai-chat", [call, Said::Text("Done.")]);
    start(&stage, "openai-chat", &model, &[]).worked_quietly();
    assert!(!stage.file("env.txt").unwrap().contains(KEY));
}

#[test]
fn too_many_turns_fail_and_say_so() {
    let stage = Stage::new();
    let model = Model::new("openai-chat", [writes(), writes(), writes()]);
    let ran = start(&stage, "openai-chat", &model, &["--max-turns", "1", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(last_line(&ran.output)["outcome"], "failed");
}

#[test]
fn wrong_calls_of_run_exit_with_2_and_start_nothing() {
    let stage = Stage::new();
    let wrong: &[(&[&str], &str)] = &[
        (&["run", "Mend it"], "--model"),
        (&["run", "Mend it", "--model", "openai:m"], "OPENAI_API_KEY"),
        (&["run", "Mend it", "--model", "gemini:m"], "GEMINI_API_KEY or GOOGLE_API_KEY"),
        (
            &["run", "Mend it", "--model", "anthropic:m", "--base-url", "https://example.org"],
            "ANTHROPIC_API_KEY",
        ),
        (&["run", "Mend it", "--model", "anthropc:m"], "did you mean `anthropic`?"),
        (&["run", "Mend it", "--model", "openai"], "PROVIDER:MODEL"),
        (&["run", "Mend it", "--model", "scripted:none.toml"], "none.toml cannot be read"),
        (
            &["run", "Mend it", "--model", "openai:m", "--base-url", "http://me:secret@localhost"],
            "--base-url: ",
        ),
        (&["run", "Mend it", "--model", "openai:m", "--tools", "shel"], "did you mean `shell`?"),
        (&["run", "Mend it", "--model", "openai:m", "--approve", "shel"], "did you mean `shell`?"),
        (&["run", "Mend it", "--model", "openai:m", "--budget", "tokns=1"], "tokns"),
        (&["run", "Mend it", "--agent", "none.toml"], "none.toml cannot be read"),
    ];
    for (arguments, words) in wrong {
        let said = stage.run(arguments).called_wrongly();
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert!(!stage.path("store").exists(), "nothing was started");
}
