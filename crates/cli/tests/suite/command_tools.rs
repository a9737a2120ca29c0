//! Agents without Rust: programs as tools, sub-agents and retries in agent files.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::command::Ran;
use crate::model::{Model, Said};
use crate::stage::{Stage, last_line, text_of, wait_until};

/// Writes an agent file whose scripted model makes these calls, one per reply, and then answers.
fn agent(stage: &Stage, calls: &[(&str, Value)], tools: &str) -> String {
    let mut replies: Vec<_> = calls
        .iter()
        .map(|(name, arguments)| json!({"text": "I call.", "call": [{"name": name, "arguments": arguments}]}))
        .collect();
    replies.push(json!({"text": "Done."}));
    let script = stage.write("replies.json", &json!({"reply": replies}).to_string());
    stage.write("agent.toml", &format!("model = \"scripted:{script}\"\nsystem = \"You mend.\"\n{tools}"))
}

/// Runs the agent, and returns the results of its calls.
fn results(stage: &Stage, agent: &str) -> Vec<Value> {
    let ran = stage.run(&["run", "Mend", "--agent", agent, "--json"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.output, ran.errors);
    let events = ran.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "result").collect()
}

#[test]
fn a_program_gets_its_arguments_verbatim_and_no_keys() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "sk-hunter2-0123456789");
    let hostile = "a b; touch owned $(touch owned) `touch owned` \"x\" --flag\n";
    let calls = [("note", json!({"text": hostile, "words": ["one", "two"], "number": 7}))];
    let tools = r#"
[[tool]]
name = "note"
description = "Writes a note."
command = ["sh", "-c", "printf '%s|' \"$@\" > args.txt; cat > stdin.json; env | grep -c API_KEY; true", "sh", "--text={text}", "{words}", "{missing}", "{number}"]
stdin = "json"
effect = "workspace"
[tool.parameters]
required = ["text"]
properties.text.type = "string"
properties.words = { type = "array", items = { type = "string" } }
properties.missing = { type = "string" }
properties.number = { type = "integer" }
"#;
    let results = results(&stage, &agent(&stage, &calls, tools));
    assert_eq!(stage.file("args.txt").unwrap(), format!("--text={hostile}|one|two|7|"));
    assert!(stage.file("owned").is_none(), "no shell saw the value");
    let stdin: Value = serde_json::from_str(&stage.file("stdin.json").unwrap()).unwrap();
    assert_eq!(stdin, calls[0].1);
    let text = results[0]["text"].as_str().unwrap();
    assert!(text.contains(r#""stdout":"0\n""#), "no key is in its environment: {text}");
}

#[test]
fn a_failure_is_rolled_back_and_allowed_exit_codes_are_results() {
    let stage = Stage::new();
    let calls = [
        ("fail", json!({})),
        ("find", json!({})),
        ("slow", json!({})),
        ("gone", json!({})),
        ("fail", json!({"x": 1})),
    ];
    let tools = r#"
[[tool]]
name = "fail"
description = "Fails."
command = ["sh", "-c", "echo half > half.txt; echo wrong >&2; exit 3"]
[[tool]]
name = "find"
description = "Finds nothing."
command = ["sh", "-c", "echo kept > kept.txt; exit 1"]
exit_codes = [0, 1]
[[tool]]
name = "slow"
description = "Takes long."
command = ["sh", "-c", "echo half > slow.txt; sleep 600"]
timeout = "1s"
[[tool]]
name = "gone"
description = "Does not exist."
command = ["./no-such-program"]
"#;
    let results = results(&stage, &agent(&stage, &calls, tools));
    let text: Vec<_> = results.iter().map(Value::to_string).collect();
    assert!(text[0].contains("exit code 3") && text[0].contains("wrong"), "{}", text[0]);
    assert!(stage.file("half.txt").is_none() && stage.file("slow.txt").is_none());
    assert_eq!(stage.file("kept.txt").as_deref(), Some("kept\n"));
    assert!(text[2].contains("longer than 1 s"), "{}", text[2]);
    assert!(text[3].contains("could not be run"), "{}", text[3]);
    assert!(text[4].contains("x"), "an argument that is not declared is refused: {}", text[4]);
}

#[test]
fn a_tool_waits_for_approval_if_its_definition_or_the_user_says_so() {
    let stage = Stage::new();
    let tool = |more: &str| {
        format!(
            "[[tool]]\nname = \"note\"\ndescription = \"Notes.\"\ncommand = [\"touch\", \"noted\"]\n{more}"
        )
    };
    let calls = [("note", json!({}))];
    for (more, flags) in
        [("approval = \"ask\"\n", &[][..]), ("", &["--approve", "ask"]), ("", &["--approve", "note"])]
    {
        let agent = agent(&stage, &calls, &tool(more));
        let ran = stage.run(&[&["run", "Mend", "--agent", &agent][..], flags].concat());
        assert_eq!(ran.code, Some(3), "{more} {flags:?}: {}", ran.errors);
        assert!(stage.file("noted").is_none());
    }
}

/// Approves all calls that wait, and resumes the session in another process.
fn approve_and_resume(stage: &Stage) -> Ran {
    stage.run(&["approve", &stage.session(), "--all"]).worked();
    stage.run(&["resume"])
}

#[test]
fn a_file_that_was_replaced_after_the_question_does_not_run() {
    for program in ["sh SCRIPT", "SCRIPT", "LINK"] {
        let stage = Stage::new();
        let write = |name: &str, text: &str| {
            let path = stage.write(name, &format!("#!/bin/sh\n{text}\n"));
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let script = write("mend.sh", "echo one > mended.txt");
        write("other.sh", "echo two > mended.txt");
        let link = text_of(&stage.path("link.sh"));
        symlink("mend.sh", &link).unwrap();
        let command: Vec<_> =
            program.split(' ').map(|word| word.replace("SCRIPT", &script).replace("LINK", &link)).collect();
        let tool = format!(
            "[[tool]]\nname = \"mend\"\ndescription = \"Mends.\"\napproval = \"ask\"\ncommand = {}\n",
            json!(command)
        );
        let agent = agent(&stage, &[("mend", json!({}))], &tool);
        assert_eq!(stage.run(&["run", "Mend", "--agent", &agent]).code, Some(3));

        if program == "LINK" {
            std::fs::remove_file(&link).unwrap();
            symlink("other.sh", &link).unwrap();
        } else {
            write("mend.sh", "echo two > mended.txt");
        }
        let again = approve_and_resume(&stage);
        assert_eq!(again.code, Some(3), "{program}: {}", again.errors);
        assert_eq!(stage.file("mended.txt"), None, "{program}");
        let log = stage.run(&["log", &stage.session()]).worked_quietly();
        assert!(log.contains("mend needs approval again, because this has changed since: the file"), "{log}");
        let ended = approve_and_resume(&stage);
        assert_eq!(ended.code, Some(0), "{program}: {}", ended.errors);
        assert_eq!(stage.file("mended.txt").as_deref(), Some("two\n"), "{program}");
    }
}

#[test]
fn a_person_who_edits_a_call_is_not_asked_again() {
    let stage = Stage::new();
    let tool = "[[tool]]\nname = \"note\"\ndescription = \"Notes.\"\napproval = \"ask\"\n\
                command = [\"touch\", \"{name}\"]\nparameters.properties.name.type = \"string\"\n";
    let agent = agent(&stage, &[("note", json!({"name": "one"}))], tool);
    let paused = last_line(&stage.run(&["run", "Note", "--agent", &agent, "--json"]).output);
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    stage.run(&["resolve", session, call, "edit", "--arguments", r#"{"name": "two"}"#]).worked();
    let ended = stage.run(&["resume"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(stage.file("one").is_none() && stage.file("two").is_some());
}

#[test]
fn a_file_that_was_replaced_after_a_kill_does_not_run() {
    let stage = Stage::new();
    let started = stage.path("started");
    let slow = format!("echo > {}; while true; do sleep 0.05; done", started.display());
    let script = stage.write("mend.sh", &slow);
    let tool = format!(
        "[[tool]]\nname = \"mend\"\ndescription = \"Mends.\"\napproval = \"ask\"\neffect = \"workspace\"\ncommand = {}\n",
        json!(["sh", script])
    );
    let agent = agent(&stage, &[("mend", json!({}))], &tool);
    assert_eq!(stage.run(&["run", "Mend", "--agent", &agent]).code, Some(3));
    stage.run(&["approve", &stage.session(), "--all"]).worked();
    let mut child = stage.command(&["resume"]).spawn().unwrap();
    wait_until("the call", || started.exists());
    child.kill().unwrap();
    child.wait().unwrap();

    stage.write("mend.sh", "echo two > mended.txt");
    let again = stage.run(&["resume"]);
    assert_eq!(again.code, Some(3), "{}", again.errors);
    assert_eq!(stage.file("mended.txt"), None);
    let ended = approve_and_resume(&stage);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(stage.file("mended.txt").as_deref(), Some("two\n"));
}

#[test]
fn what_is_wrong_with_a_tool_is_named_with_its_line() {
    let stage = Stage::new();
    let tool = |text: &str| format!("[[tool]]\nname = \"note\"\ndescription = \"Notes.\"\n{text}\n");
    for (text, expected) in [
        (tool("command = []"), "tool[0].command: name a program"),
        (tool("command = [\"{x}\"]"), "the program is fixed"),
        (
            tool("command = [\"p\", \"{txt}\"]\nparameters.properties.text.type = \"string\""),
            "did you mean `text`",
        ),
        (tool("command = [\"p\", \"{x\"]"), "single brace"),
        (tool("command = [\"p\"]\nparameters.text.type = \"string\""), "below `properties`"),
        (tool("command = [\"p\"]\nparameters.properties.text.type = \"strin\""), "tool[0].parameters"),
        (tool("command = [\"p\"]\neffect = \"none\""), "effect"),
        (tool("command = [\"p\"]\ntimeout = 0"), "longer than 0"),
        (tool("command = [\"p\"]\nexit_codes = []"), "name at least one"),
        (tool("command = [\"p\"]\nexit_codes = [0, 256]"), "no program ends with 256"),
        (tool("command = [\"p\"]\ndirectory = \"../outside\""), "tool[0].directory"),
        (tool("comand = [\"p\"]"), "did you mean `command`"),
        (tool("command = [\"p\"]").replace("note", "shell"), "a built-in tool has the name `shell`"),
        (tool("command = [\"p\"]").repeat(2), "another tool has the name `note`"),
        (tool("command = [\"p\"]").replace("Notes.", " "), "tool[0].description"),
        (
            "[[sub_agent]]\nname = \"a\"\ndescription = \"b\"\n".to_owned(),
            "set `file` or `[sub_agent.agent]`",
        ),
        (
            "[[sub_agent]]\nname = \"a\"\ndescription = \"b\"\n[sub_agent.agent]\ntools = [\"nope\"]\n"
                .to_owned(),
            "sub_agent[0].agent.tools[0]",
        ),
        (
            "[[sub_agent]]\nname = \"a\"\ndescription = \"b\"\nfile = \"agent.toml\"\n".to_owned(),
            "nested more than",
        ),
        ("[retry]\nretries = 1000\n".to_owned(), "at most 100"),
    ] {
        let agent = stage.write("agent.toml", &format!("model = \"openai:x\"\n{text}"));
        let errors = stage.run(&["run", "Mend", "--agent", &agent]).called_wrongly();
        assert!(errors.contains(expected) && errors.contains("agent.toml:"), "{text}\n{errors}");
    }
}

#[test]
fn sub_agents_work_in_the_same_directory_with_the_same_approvals() {
    let stage = Stage::new();
    let child = json!([
        {"text": "I write.", "call": [{"name": "write_file", "arguments": {"path": "hem.txt", "text": "hemmed"}}]},
        {"text": "Hemmed."}
    ]);
    stage.write("child.json", &json!({"reply": child}).to_string());
    stage.write("child.toml", "name = \"hemmer\"\nmodel = \"scripted:child.json\"\nsystem = \"You hem.\"\n");
    let calls = [("hem", json!({"mission": "Hem the coat"}))];
    let tools = "[[sub_agent]]\nname = \"hem\"\ndescription = \"Hems.\"\nfile = \"child.toml\"\n";
    let file = agent(&stage, &calls, tools);
    let ended = results(&stage, &file);
    assert!(ended.iter().any(|result| result.to_string().contains("Hemmed.")), "{ended:?}");
    assert_eq!(stage.file("hem.txt").as_deref(), Some("hemmed"));
    // The file is recorded with the session, and needed no more.
    std::fs::remove_file(stage.path("child.toml")).unwrap();
    let session = last_line(&stage.run(&["ls", "--json", "--agent", "agent"]).worked())["session"].clone();
    let session = session.as_str().unwrap();
    stage.run(&["show", session]).worked();
    let graph = stage.run(&["log", session, "--graph"]).worked();
    let child = last_line(&stage.run(&["ls", "--json", "--parent", session]).worked())["session"].clone();
    let child = child.as_str().unwrap();
    let leaf = format!("sub-agent {} (idle): Hem the coat", &child[child.len() - 12..]);
    assert_eq!(graph.matches(&leaf).count(), 1, "{graph}");

    stage.write("child.toml", "name = \"hemmer\"\nmodel = \"scripted:child.json\"\nsystem = \"You hem.\"\n");
    let ran = stage.run(&["run", "Mend", "--agent", &file, "--approve", "write_file", "--json"]);
    assert_eq!(ran.code, Some(3), "the call of the sub-agent waits too: {}", ran.errors);
    assert!(ran.output.contains("write_file"), "{}", ran.output);
}

#[test]
fn retries_are_set_in_the_file() {
    let stage = Stage::new();
    let refused =
        || Said::Refused("503 Service Unavailable", json!({"error": {"message": "busy"}}).to_string());
    for (retries, asked) in [(0, 1), (2, 3)] {
        let model = Model::new("openai-chat", vec![refused(), refused(), refused(), refused()]);
        let text = format!(
            "model = \"openai-chat:m\"\nbase_url = {:?}\n[retry]\nretries = {retries}\nfirst = \"1ms\"\nlongest = \"2ms\"\n",
            model.url
        );
        let agent = stage.write("agent.toml", &text);
        assert_eq!(stage.run(&["run", "Mend", "--agent", &agent]).code, Some(1));
        assert_eq!(model.asked().len(), asked);
    }
}
