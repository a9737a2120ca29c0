//! Agent files: parsing, errors, and the agents that are built from them.

use backstitch::agent_file::{
    AgentDefinition, AgentFileError, AnswerMode, BuildOptions, ModelProvider, ToolChoice,
};
use backstitch::budget::Limits;
use backstitch::journal::Effect;
use backstitch::mode::AgentMode;
use backstitch::ports::Sandbox;
use backstitch::providers::{Provider, ThinkingBudget};
use backstitch::tool::{Approval, CommandLimit};
use backstitch::{DriveOutcome, Evaluator, Price, Runtime, SessionOptions};
use serde_json::json;

const WHOLE: &str = r#"
name = "tailor"
model = "anthropic:needle-1"
base_url = "https://models.example.org"
system = "You mend. It costs $5."
tools = ["read_file", "shell"]
deadline = "10m"
max_turns = 20
max_repeats = 3

[parameters]
cloth = "coat"

[[section]]
key = "task"
title = "Task"
text = "Mend the $cloth."

[[section]]
key = "plan"
title = "Plan"
text = "Plan first."
summary = "How to plan."
visibility = "summary"
tools = ["setup_plan", "read_plan"]

[[section.section]]
key = "steps"
title = "Steps"
text = "Few."

[workspace]
excludes = ["target"]

[shell]
effect = "workspace"
timeout = 30

[approval]
shell = "ask"

[budget]
tokens = 100_000
money = 2.5
calls = 50
time = "1h"

[prices."anthropic:needle-1"]
input = 3.0
cache_read = 0.3
cache_write = 3.75
output = 15.0

[output.schema]
type = "object"
required = ["done"]

[output.schema.properties.done]
type = "boolean"

[request]
max_output_tokens = 4096
thinking = 2048
effort = "high"
silence = "90s"
"#;

fn key(_: &str) -> Option<String> {
    Some("sk-hunter2".to_owned())
}

#[test]
fn a_file_defines_a_whole_agent() {
    let definition = AgentDefinition::from_toml(WHOLE).unwrap();
    let model = definition.model.clone().unwrap();
    assert_eq!(
        (model.provider, model.model.as_str()),
        (ModelProvider::Wire(Provider::Anthropic), "needle-1")
    );
    assert_eq!(definition.request.thinking, ThinkingBudget::Budget(2048));
    assert_eq!(definition.request.silence.unwrap().0.as_secs(), 90);
    let options = BuildOptions { key: Box::new(key), transport: None };
    let built = definition.build_with(options).unwrap();
    let agent = &built.agent;
    assert_eq!((agent.ns.as_str(), agent.key.as_str()), ("agent", "tailor"));
    let limits = Limits {
        total_tokens: Some(100_000),
        money_micros: Some(2_500_000),
        calls: Some(50),
        millis: Some(3_600_000),
        ..Limits::default()
    };
    assert_eq!(agent.budget, Some(limits));
    assert_eq!(
        agent.prices.0["anthropic:needle-1"],
        Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: Some(300_000),
            cache_write: Some(3_750_000)
        }
    );
    let unpriced =
        AgentDefinition::from_toml(&WHOLE.replace("anthropic:needle-1\"]", "anthropic:other\"]")).unwrap();
    let refused = unpriced.build_with(BuildOptions { key: Box::new(key), transport: None }).unwrap_err();
    assert!(refused.to_string().contains("budget.money: the price of"), "{refused}");
    assert_eq!(agent.deadline.unwrap().as_secs(), 600);
    let shell = agent.tools.get("shell").unwrap();
    assert_eq!((shell.spec.effect, shell.spec.approval), (Effect::Workspace, Approval::Needed));
    assert_eq!(agent.tools.get("read_file").unwrap().spec.approval, Approval::NotNeeded);
    assert!(agent.tools.get("write_file").is_none());
    assert!(built.prompt.prompt().output().is_some());
}

#[test]
fn a_recorded_definition_is_complete_and_holds_no_secret() {
    let definition = AgentDefinition::from_toml(WHOLE).unwrap();
    let built = definition.build_with(BuildOptions { key: Box::new(key), transport: None }).unwrap();
    let recorded = built.agent.definition.clone();
    assert!(!recorded.to_string().contains("hunter2"));
    assert_eq!(AgentDefinition::from_recorded(&recorded).unwrap(), definition);
    // Defaults are not recorded, except for rights.
    let mut smallest = AgentDefinition::from_toml("model = 'openai:m'").unwrap().to_recorded();
    let fields = smallest.as_object_mut().unwrap();
    assert!(["mode", "sandbox", "fetch"].iter().all(|right| fields.remove(*right).is_some()));
    let expected = json!({"v": 1, "ns": "agent", "name": "agent", "model": "openai:m", "tools": "all"});
    assert_eq!(smallest, expected);
}

#[test]
fn a_sandbox_is_a_name_or_a_table() {
    let sandbox = |text: &str| {
        let sandbox = AgentDefinition::from_toml(text).unwrap().sandbox;
        sandbox.map(|sandbox| Sandbox { hide: Vec::new(), ..sandbox })
    };
    assert_eq!(sandbox(""), Some(Sandbox::workspace().without_network()));
    assert_eq!(sandbox("mode = 'full'"), Some(Sandbox::off()));
    assert_eq!(sandbox("sandbox = 'read-only'"), Some(Sandbox::read_only().without_network()));
    assert_eq!(sandbox("[sandbox]\nnetwork = true"), Some(Sandbox::workspace()));
    let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap());
    let expected = Sandbox::workspace().write(home.join(".cargo")).write(std::path::absolute("a/b").unwrap());
    let table = "[sandbox]\nwrite = ['~/.cargo', 'a/b']\nnetwork = false";
    assert_eq!(sandbox(table), Some(expected.without_network()));
    let definition = AgentDefinition::from_toml(table).unwrap();
    assert_eq!(AgentDefinition::from_recorded(&definition.to_recorded()).unwrap(), definition);
}

#[test]
fn a_file_has_a_mode_and_sessions_without_one_keep_their_meaning() {
    let build = |definition: &AgentDefinition| {
        let options = BuildOptions { key: Box::new(key), transport: None };
        definition.build_with(options).unwrap().agent
    };
    let plan = "mode = 'plan'\nmodel = 'openai:m'\nsandbox = 'workspace'\n[approval]\nwrite_file = 'auto'";
    let definition = AgentDefinition::from_toml(plan).unwrap();
    assert_eq!(AgentDefinition::from_recorded(&definition.to_recorded()).unwrap(), definition);
    let agent = build(&definition);
    assert_eq!(agent.current_mode(), Some(AgentMode::Plan));
    let is_enforced = backstitch::host::probe().enforces(&definition.command_limits());
    let limit = if is_enforced { CommandLimit::Nothing } else { CommandLimit::Workspace };
    assert_eq!(agent.tools.get("shell").unwrap().spec.commands, Some(limit));
    assert_eq!(agent.tools.get("write_file").unwrap().spec.approval, Approval::Waived);
    // A file that names no rights has those of the command.
    let plain = AgentDefinition::from_toml("model = 'openai:m'").unwrap();
    assert_eq!(plain.mode, Some(AgentMode::default_of(backstitch::host::probe().confines())));
    assert!(plain.sandbox.as_ref().is_some_and(|sandbox| !sandbox.network && !sandbox.hide.is_empty()));
    assert!(build(&plain).tools.get("shell").unwrap().spec.commands.is_some());
    // A sandbox that was recorded before there were modes has the network, and nothing more is asked about.
    let recorded = json!({"v": 1, "model": "openai:m", "sandbox": "workspace"});
    let old = AgentDefinition::from_recorded(&recorded).unwrap();
    assert!(old.sandbox.as_ref().unwrap().network);
    assert_eq!(build(&old).current_mode(), None);
}

#[test]
fn a_declared_tool_takes_the_place_of_the_one_that_reads_pages() {
    let file =
        "model = 'openai:m'\n[[tool]]\nname = 'fetch'\ndescription = 'Fetches thread.'\ncommand = ['true']";
    let names = AgentDefinition::from_toml(file).unwrap().tool_names().unwrap();
    assert_eq!(names.iter().filter(|name| *name == "fetch").count(), 1, "{names:?}");
    let old = json!({"v": 1, "model": "openai:m", "tool": [{"name": "fetch", "description": "Fetches thread.", "command": ["true"]}]});
    assert!(AgentDefinition::from_recorded(&old).unwrap().tool_names().is_ok());
}

#[test]
fn definitions_of_older_versions_are_read() {
    let old = json!({
        "script": {"replies": [{"text": "Done."}]}, "system": "Mend.", "workspace": "/files",
        "shell_effect": "workspace", "max_turns": 7,
    });
    let definition = AgentDefinition::from_recorded(&old).unwrap();
    assert_eq!((definition.ns.as_str(), definition.name.as_str()), ("cli", "run"));
    assert_eq!(definition.workspace.path.as_deref(), Some("/files".as_ref()));
    assert_eq!((definition.shell.effect, definition.max_turns), (Effect::Workspace, Some(7)));
    assert_eq!(definition.script.unwrap().replies.len(), 1);
    // The form of the answers had another name.
    let inner = json!({"mode": "lisp", "signature": "{count :int}"});
    let old = json!({
        "v": 1, "mode": "lisp", "model": "openai:m",
        "sub_agent": [{"name": "count", "description": "Counts.", "agent": inner}],
    });
    let definition = AgentDefinition::from_recorded(&old).unwrap();
    let of_sub_agent = definition.sub_agents[0].agent.as_ref().unwrap().answers;
    assert_eq!([definition.answers, of_sub_agent], [AnswerMode::Lisp; 2]);
    assert_eq!(definition.to_recorded()["answers"], "lisp");
    assert_eq!(AgentDefinition::from_recorded(&definition.to_recorded()).unwrap(), definition);
    assert!(AgentDefinition::from_recorded(&json!({"v": 99})).unwrap_err().to_string().contains("newer"));
    assert!(AgentDefinition::from_recorded(&json!(null)).is_err());
}

#[test]
fn errors_name_line_and_key_and_suggest_names() {
    let cases: &[(&str, &[&str])] = &[
        ("model = ", &["line 1: "]),
        ("\nmodle = 'openai:m'", &["line 2: modle: ", "did you mean", "`model`?"]),
        ("model = 'opnai:m'", &["line 1: model: ", "did you mean `openai`"]),
        ("model = 7", &["line 1: model: ", "expected"]),
        ("max_turns = -1", &["line 1: max_turns: "]),
        ("tools = ['read_file',\n  'red_file']", &["line 2: tools[1]: ", "did you mean `read_file`?"]),
        ("tools = 'everything'", &["line 1: tools: ", "all"]),
        ("sandbox = 'some'", &["line 1: sandbox: ", "there are workspace, read-only and off"]),
        ("[sandbox]\nwrites = []", &["line 2: sandbox.writes: ", "did you mean `write`?"]),
        ("[sandbox]\nmode = 'off'\nnetwork = false", &["sandbox", "`network` has no effect"]),
        ("[sandbox]\nwrite = ['a',\n '']", &["line 3: sandbox.write[1]: ", "the path is empty"]),
        ("[budget]\ntoknes = 1", &["line 2: budget.toknes: ", "did you mean `tokens`?"]),
        ("[budget]\nmoney = -1", &["line 2: budget.money: "]),
        ("deadline = 'soon'", &["line 1: deadline: ", "10m"]),
        ("[request]\nthinking = 'adaptiv'", &["line 2: request.thinking: ", "did you mean `adaptive`?"]),
        (
            "model = 'openai:m'\n[request]\nthinking = 16000",
            &["line 3: request.thinking: ", "openai does not take", "`effort`"],
        ),
        ("model = 'openai-chat:m'\n[request]\nthinking = 0", &["line 3: request.thinking: ", "`effort`"]),
        ("model = 'anthropic:m'\n[request]\nthinking = 512", &["line 3: request.thinking: ", "1024"]),
        (
            "model = 'anthropic:m'\n[request]\nmax_output_tokens = 8000\nthinking = 8000",
            &["line 4: request.thinking: ", "max_output_tokens"],
        ),
        (
            "model = 'gemini:m'\n[request]\nthinking = 512\neffort = 'low'",
            &["line 3: request.thinking: ", "not both"],
        ),
        (
            "model = 'openai:m'\n[request]\nmax_output_tokens = 3",
            &["line 3: request.max_output_tokens: ", "16"],
        ),
        ("[request]\nsilence = 0", &["line 2: request.silence: "]),
        ("[request]\nsilence = 'long'", &["line 2: request.silence: ", "10m"]),
        ("[approval]\nshel = 'ask'", &["line 2: approval.shel: ", "did you mean `shell`?"]),
        ("[approval]\nshell = 'sometimes'", &["line 2: approval.shell: ", "`ask`"]),
        (
            "[[section]]\nkey = 'a'\ntitle = 'A'\n[[section]]\nkey = 'a'\ntitle = 'B'",
            &["line 4: section[1]: "],
        ),
        ("[[section]]\nkey = 'a'", &["line 1: section", "title"]),
        ("[[section]]\nkey = 'a'\ntitle = 'A'\ntext = '$cloth'", &["line 1: section[0]: ", "$cloth"]),
        ("[[section]]\nkey = 'a'\ntitle = 'A'\nvisibility = 'summary'", &["section[0]: ", "summary"]),
        ("[parameters]\ncloth = 'coat'", &["line 2: parameters.cloth: "]),
        (
            "[[section]]\nkey='a'\ntitle='A'\n[[section.section]]\nkey='b'\ntitle='B'\ntools=['x']",
            &["line 7: section[0].section[0].tools[0]: "],
        ),
        ("[output]\nfile = 'none.json'", &["line 2: output.file: ", "none.json"]),
        ("[output.schema]\ntype = 'objekt'", &["output.schema: "]),
        ("base_url = 'https://me:pass@example.org'", &["line 1: base_url: ", "environment"]),
        ("name = 'Not A Name'", &["line 1: name: "]),
        ("name = 'runtime'", &["line 1: name: "]),
        ("model = 'scripted:none.toml'", &["none.toml"]),
    ];
    for (text, expected) in cases {
        let error = AgentDefinition::from_toml(text).unwrap_err().to_string();
        for words in *expected {
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}

#[test]
fn paths_are_relative_to_the_file_and_errors_name_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("script.toml", "[[reply]]\ntext = '{\"done\": true}'\n");
    write("schema.json", r#"{"type": "object", "properties": {"done": {"type": "boolean"}}}"#);
    write(
        "agent.toml",
        "model = 'scripted:script.toml'\n[output]\nfile = 'schema.json'\n[workspace]\npath = 'files'\n",
    );
    let path = directory.path().join("agent.toml");
    let definition = AgentDefinition::read(&path).unwrap();
    assert_eq!(definition.script.as_ref().unwrap().replies.len(), 1);
    assert_eq!(definition.output.as_ref().unwrap().schema.as_ref().unwrap()["type"], "object");
    assert_eq!(definition.workspace.path.as_deref(), Some(&*directory.path().join("files")));

    write("agent.toml", "model = 'openai:m'\nmax_turn = 3\n");
    let error = AgentDefinition::read(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:2: max_turn: ", path.display())), "{error}");
    let missing = AgentDefinition::read(directory.path().join("none.toml")).unwrap_err();
    assert!(matches!(missing, AgentFileError::Unreadable { .. }));
}

#[test]
fn a_key_is_needed_except_for_models_on_this_machine() {
    let build = |text: &str| {
        let options = BuildOptions { key: Box::new(|_| None), transport: None };
        AgentDefinition::from_toml(text).unwrap().build_with(options)
    };
    let missing = build("model = 'gemini:m'").unwrap_err();
    assert!(missing.to_string().contains("GEMINI_API_KEY or GOOGLE_API_KEY"), "{missing}");
    assert!(build("model = 'openai:m'\nbase_url = 'http://example.org'").is_err());
    assert!(build("model = 'openai:m'\nbase_url = 'http://localhost:9'").is_ok());
    assert!(build("tools = 'none'").unwrap_err().to_string().contains("PROVIDER:MODEL"));
}

#[test]
fn whether_files_are_used_follows_from_the_tools() {
    let uses = |text: &str| AgentDefinition::from_toml(text).unwrap().uses_files().unwrap();
    assert!(uses(""));
    assert!(uses("tools = []\n[[section]]\nkey = 'a'\ntitle = 'A'\ntools = ['grep']"));
    assert!(!uses("tools = []"));
    assert_eq!(ToolChoice::of_list(" grep, shell "), ToolChoice::Named(vec!["grep".into(), "shell".into()]));
}

#[tokio::test]
async fn sections_are_opened_and_answers_are_data() {
    let text = r#"
model = "scripted:memory"
tools = []
script = { replies = [
    { calls = [{ name = "open_sections", arguments = { section_keys = ["plan"], reason = "to plan" } }] },
    { calls = [{ name = "read_plan" }] },
    { text = '{"done": true}' },
] }

[[section]]
key = "plan"
title = "Plan"
text = "Plan first."
summary = "How to plan."
visibility = "summary"
tools = ["read_plan"]

[output]
schema = { type = "object", properties = { done = { type = "boolean" } }, required = ["done"] }
"#;
    let built = AgentDefinition::from_toml(text).unwrap().build().unwrap();
    let evaluator: Evaluator = Evaluator::of(built.agent.clone());
    let runtime = Runtime::in_memory();
    let session = evaluator.create_session(&runtime, SessionOptions::default()).await.unwrap();
    let prompt = built.prompt.clone().asking("Mend it.");
    let ended = evaluator.evaluate(&prompt, &session, false).await.unwrap();
    let DriveOutcome::Completed(answered) = ended else { panic!("{ended}") };
    assert_eq!(answered.output, Some(json!({"done": true})));
}

#[test]
fn a_file_that_never_ends_is_refused() {
    use std::error::Error as _;
    let error = AgentDefinition::read("/dev/zero").unwrap_err();
    assert!(error.source().unwrap().to_string().contains("larger than 1 MiB"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.toml");
    std::fs::write(&path, "model = 'scripted:/dev/zero'").unwrap();
    assert!(AgentDefinition::read(&path).unwrap_err().to_string().contains("larger than 16 MiB"));
    std::fs::write(&path, "model = 'openai:m'\n[output]\nfile = '/dev/zero'").unwrap();
    let error = AgentDefinition::read(&path).unwrap_err().to_string();
    assert!(error.contains("output.file") && error.contains("larger than 64 MiB"), "{error}");
}
