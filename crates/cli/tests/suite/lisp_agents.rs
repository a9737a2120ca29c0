//! Agents that answer with programs, and compression of long conversations: the real binary.

use std::process::Child;

use serde_json::{Value, json};

use crate::model::{MODEL, Model, PROVIDERS, Said};
use crate::stage::{Stage, as_slices, interrupt, wait_until};

const ORDERS: &str = r#"[{"id": 1, "total": 20}, {"id": 2, "total": 5}, {"id": 3, "total": 7}]"#;

const LOOK: &str = "I look.\n```clojure\n(def large \"orders worth more than 6\" (filter #(> (:total %) 6) data/orders))\n(println (count large))\n```";
const RETURN: &str = "```clojure\n(return {:count (count large)})\n```";

fn lisp<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let first = ["--answers", "lisp", "--data", data, "--signature", "{count :int}", "--tools", "none"];
    first.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn every_provider_is_asked_for_programs_and_its_requests_can_be_made_again() {
    for (provider, _) in PROVIDERS {
        let stage = Stage::new();
        let data = format!("orders={}", stage.write("orders.json", ORDERS));
        let model = Model::new(provider, [Said::Text(LOOK), Said::Text(RETURN)]);
        let arguments = Stage::asking(provider, &model, &lisp(&data, &[]));
        let answer = stage.run(&as_slices(&arguments)).worked_quietly();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"count": 2}), "{provider}");
        let asked = model.asked();
        assert_eq!(asked.len(), 2, "{provider}");
        assert!(asked[0].body.contains("data/orders") && !asked[0].body.contains("\"tools\""), "{provider}");

        let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
        for (turn, asked) in ["1", "2"].into_iter().zip(&asked) {
            let ran = stage.run(&["request", &session, turn, "--raw"]);
            assert!(ran.errors.contains("it is the request that was sent"), "{provider}: {}", ran.errors);
            assert_eq!(ran.output, asked.body, "{provider}, turn {turn}");
        }
        let shown = stage.run(&["show", &session, "--turns"]).worked();
        for words in ["turn 1: ok", "(def large", "  | 2", "turn 2: returned", "{\"count\":2}"] {
            assert!(shown.contains(words), "{provider}, {words}: {shown}");
        }
        assert_eq!(stage.json(&["show", &session, "--turns"])["turns"].as_array().unwrap().len(), 2);
        // The data is recorded with the session, so a resume does not need the file.
        std::fs::remove_file(stage.path("orders.json")).unwrap();
        assert_eq!(stage.json(&["resume", &session])["output"], json!({"count": 2}), "{provider}");
    }
}

#[test]
fn a_program_that_is_killed_in_a_call_resumes_at_that_call() {
    interrupted_in_a_call(|mut child| {
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn a_program_that_is_interrupted_in_a_call_resumes_at_that_call() {
    interrupted_in_a_call(|child| assert_eq!(interrupt(child).code, Some(130)));
}

#[test]
fn a_program_that_computes_is_interrupted_and_begins_anew() {
    let stage = Stage::new();
    // The program computes until its fuel is used up, which takes a while.
    let program = r#"```clojure
(tool/shell {:command "echo started >> log.txt; touch ../started"})
(def words (mapv (fn [i] (str "word " (mod (* i 7919) 100003))) (range 20000)))
(loop [] (sort words) (recur))
```"#;
    let model =
        Model::new("anthropic", [Said::Text(program), Said::Text("```clojure\n(return {:count 7})\n```")]);
    let more = [
        "--answers",
        "lisp",
        "--signature",
        "{count :int}",
        "--tools",
        "shell",
        "--shell-effect",
        "workspace",
    ];
    let child = stage.command(&as_slices(&Stage::asking("anthropic", &model, &more))).spawn().unwrap();
    let has_called = || stage.run(&["log", "--all", "--json"]).output.contains("call_finished");
    wait_until("the end of its call", || stage.path("started").exists() && has_called());
    assert_eq!(interrupt(child).code, Some(130));
    assert_eq!(model.asked().len(), 1);
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let turns = stage.json(&["show", &session, "--turns"]);
    assert_eq!(turns["turns"].as_array().map(Vec::len), Some(0), "it was stopped in the middle: {turns}");

    // A resume runs the program again, and uses the recorded results of its calls.
    let answer = stage.run(&["resume"]).worked_quietly();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"count": 7}));
    assert_eq!(stage.file("log.txt").unwrap(), "started\n");
    assert!(model.asked()[1].body.contains("fuel_exceeded"));
}

/// Ends a process in the third call of a program, and resumes in another process.
fn interrupted_in_a_call(end: impl FnOnce(Child)) {
    let stage = Stage::new();
    let program = r#"```clojure
(doseq [n [1 2]] (tool/shell {:command (str "echo " n " >> log.txt")}))
(tool/shell {:command "echo 3 >> log.txt; if [ ! -e ../again ]; then touch ../again; sleep 60; fi"})
(return {:count 3})
```"#;
    let model = Model::new("anthropic", [Said::Text(program)]);
    let more = [
        "--answers",
        "lisp",
        "--signature",
        "{count :int}",
        "--tools",
        "shell",
        "--shell-effect",
        "workspace",
    ];
    let child = stage.command(&as_slices(&Stage::asking("anthropic", &model, &more))).spawn().unwrap();
    wait_until("the third call", || stage.path("again").exists());
    end(child);
    let answer = stage.run(&["resume"]).worked_quietly();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"count": 3}));
    assert_eq!(stage.file("log.txt").unwrap(), "1\n2\n3\n", "no call was made twice");
    assert_eq!(model.asked().len(), 1, "the request was not repeated");
}

#[test]
fn programs_recall_what_was_left_out_of_their_turns() {
    let stage = Stage::new();
    // Some programs write a byte order mark before their JSON.
    let data = format!("orders={}", stage.write("orders.json", &format!("\u{feff}{ORDERS}")));
    let answers = [
        "(doseq [n (range 40)] (println \"line\" n))",
        "(println (:text (tool/recall {}))) (println (:text (tool/recall {:turn 1})))",
        "(return {:count 2})",
    ];
    let model = Model::new("anthropic", answers.map(Said::Text));
    stage.run(&as_slices(&Stage::asking("anthropic", &model, &lisp(&data, &[])))).worked_quietly();
    let asked: Vec<String> = model.asked().iter().map(|asked| asked.body.clone()).collect();
    assert!(asked[0].contains("(tool/recall turn call_id from limit)"), "{}", asked[0]);
    assert!(asked[1].contains("line 39") && !asked[1].contains("line 3\\n"), "{}", asked[1]);
    assert!(asked[1].contains("25 earlier prints not shown"));
    assert!(asked[2].contains("line 3\\n"), "{}", asked[2]);
    assert!(asked[2].contains("Turn 1: (doseq [n (range 40)]") && asked[2].contains("40 prints"));
    // Without compression nothing is left out, so there is no tool for recall.
    let model = Model::new("anthropic", [Said::Text(answers[2])]);
    let more = lisp(&data, &["--compression", "off"]);
    stage.run(&as_slices(&Stage::asking("anthropic", &model, &more))).worked_quietly();
    assert!(!model.asked()[0].body.contains("recall"));
}

#[test]
fn compression_leaves_out_what_recall_brings_back() {
    for strategy in ["trim", "elide"] {
        let stage = Stage::new();
        std::fs::write(stage.path("files").join("long.txt"), "a long line of the file\n".repeat(400))
            .unwrap();
        let read = || Said::Call("I read.", "read_file", json!({"path": "long.txt"}));
        let again = || Said::Call("What was it?", "recall", json!({"turn": 1}));
        let mut answers: Vec<Said> = (0..9).map(|_| read()).collect();
        answers.extend([again(), Said::Text("Done."), again(), Said::Text("Still the same.")]);
        let model = Model::new("openai-chat", answers);
        let arguments = Stage::asking("openai-chat", &model, &["--compression", strategy]);
        assert_eq!(stage.run(&as_slices(&arguments)).worked_quietly(), "Done.\n", "{strategy}");
        let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
        let asked = model.asked();
        for (index, asked) in asked.iter().enumerate() {
            let turn = (index + 1).to_string();
            let request = stage.json(&["request", &session, &turn]);
            assert_eq!(request["agrees"], true, "{strategy}: {request}");
            assert_eq!(request["recorded"]["length"], asked.body.len(), "{strategy}");
        }
        // A follow-up recalls the turns of the conversation before it.
        assert_eq!(stage.run(&["ask", &session, "And now?"]).worked_quietly(), "Still the same.\n");
        assert_eq!(stage.json(&["request", &session])["agrees"], true, "{strategy}");
        let last = &model.asked().last().unwrap().body.clone();
        assert_eq!(last.matches("Result of call").count(), 2, "{strategy}: {last}");
    }
}

#[test]
fn an_agent_file_has_the_same_keys() {
    let stage = Stage::new();
    stage.write("orders.json", ORDERS);
    stage
        .write("script.toml", &format!("[[reply]]\ntext = '''{LOOK}'''\n[[reply]]\ntext = '''{RETURN}'''\n"));
    let file = stage.write(
        "agent.toml",
        r#"
model = "scripted:script.toml"
answers = "lisp"
signature = "{count :int}"
compression = { strategy = "single_user_coalesced", println_limit = 5 }
tools = []
[data]
orders = { file = "orders.json" }
"#,
    );
    let answer = stage.run(&["run", "Count the large of {{orders.0.id}}", "--agent", &file]).worked_quietly();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"count": 2}));
    let wrong: &[(&str, &str)] = &[
        ("answers = 'lips'", "did you mean `lisp`?"),
        ("name = 'x'\nmode = 'lisp'", "agent.toml:2: mode: the form of the answers has the name `answers`"),
        ("signature = '{count :int}'", "signature: this is for agents that answer with programs"),
        ("answers = 'lisp'\nsignature = '{count'", "agent.toml:2: signature: "),
        ("answers = 'lisp'\ncompression = 'tirm'", "agent.toml:2: compression: "),
        ("answers = 'lisp'\n[data]\norders = { file = 'none.json' }", "agent.toml:3: data.orders: "),
        ("compression = 'single_user_coalesced'", "compression: "),
        (
            "answers = 'lisp'\ncompression = { errors = 'all' }",
            "expected one of `keep`, `last`, `until_recovered`",
        ),
        ("answers = 'lisp'\n[data]\norders = 5", "{ file = \"FILE.json\" }"),
        ("answers = 'lisp'\n[data.'a b']\nvalue = 5", "data.a b: \"a b\" is not a name for data"),
        ("answers = 'lisp'\nmax_turns = 0", "agent.toml:2: max_turns: "),
    ];
    for (text, words) in wrong {
        let file = stage.write("agent.toml", text);
        let model = format!("openai:{MODEL}");
        let said = stage.run(&["run", "x", "--agent", &file, "--model", &model]).called_wrongly();
        assert!(said.contains(words), "{text}: {said}");
    }
}

/// Writes a file of replies, and returns the name of its model.
fn script(stage: &Stage, replies: impl IntoIterator<Item = String>) -> String {
    let replies: Vec<Value> = replies.into_iter().map(|text| json!({"text": text})).collect();
    format!("scripted:{}", stage.write("script.json", &json!({"reply": replies}).to_string()))
}

#[test]
fn turns_are_shown_in_full_and_do_not_steer_the_terminal() {
    let stage = Stage::new();
    let programs = [
        "(println \"red: \\u001b[31m\") (tool/read_file {:path 7})",
        "(return {:all (range 2000) :_key \"for people\"})",
    ];
    let model = script(&stage, programs.map(str::to_owned));
    let arguments = ["run", "x", "--answers", "lisp", "--tools", "read_file", "--model", &model];
    stage.run(&arguments).worked_quietly();
    let shown = stage.run(&["show", "--turns"]).worked();
    assert!(shown.contains("  | red: \\u001b[31m\n") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("1998,1999]") && shown.contains("\"_key\":\"for people\""), "{shown}");
    // Every line below a turn is indented.
    assert!(shown.lines().all(|line| line.starts_with("turn ") || line.starts_with("  ")), "{shown}");
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let request = stage.run(&["request", &session]);
    assert_eq!(request.code, Some(0));
    assert!(request.errors.contains("nothing was sent"), "{}", request.errors);
    let rendered = stage.run(&["request", &session, "--for", "openai-chat:any"]);
    assert_eq!(rendered.code, Some(0), "{}", rendered.errors);
    assert!(rendered.output.contains("Answer with ONE program"), "{}", rendered.output);
    assert!(rendered.errors.contains("rendered for openai-chat:any"), "{}", rendered.errors);
    assert_eq!(stage.run(&["request", &session, "--for", "nobody"]).code, Some(2));
}

#[test]
fn a_program_that_has_not_ended_is_shown() {
    let stage = Stage::new();
    let model = script(&stage, ["(tool/shell {:command \"true\"}) (return 1)".to_owned()]);
    let arguments =
        ["run", "x", "--answers", "lisp", "--tools", "shell", "--approve", "shell", "--model", &model];
    assert_eq!(stage.run(&arguments).code, Some(3));
    let shown = stage.run(&["show", "--turns"]).worked();
    assert!(shown.starts_with("turn 1: has not ended\n    (tool/shell"), "{shown}");
    // A session can be cancelled without a decision about its call.
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    stage.run(&["cancel", &session]).worked();
    assert_eq!(stage.run(&["resume"]).failed().lines().last(), Some("it was cancelled"));
    assert_eq!(stage.json(&["ls"])["status"], "idle");
    let shown = stage.run(&["show", "--turns"]).worked();
    assert!(shown.starts_with("turn 1: was cut off\n"), "{shown}");
}

#[test]
fn there_are_as_many_turns_as_are_allowed() {
    let stage = Stage::new();
    let silent = (0..24).map(|number| format!("(def x {number})"));
    let model = script(&stage, silent.chain(["(return x)".to_owned()]));
    let run = |turns: &str| {
        stage.run(&[
            "run",
            "x",
            "--answers",
            "lisp",
            "--tools",
            "none",
            "--max-turns",
            turns,
            "--model",
            &model,
        ])
    };
    assert_eq!(run("25").worked_quietly(), "23\n");
    let failed = run("1").failed();
    assert!(failed.contains("in 1 turn, and there may be no more. The last one failed: "), "{failed}");
}
