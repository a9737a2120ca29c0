//! The guard of Codex, with a shell script that answers as its app-server does.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use super::stand_in::StandIn;
use crate::stage::{Stage, ended, text_of};

/// Answers the requests of the guard from files beside it, and notes everything else that it is started with.
const PROGRAM: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ "$1" != app-server ]; then printf '%s\n' "$*" >> "$here/ran"; exit 0; fi
if [ -e "$here/hook" ]; then trap 'sh "$here/hook"' EXIT; fi
while IFS= read -r line; do
    printf '%s\n' "$line" >> "$here/asked"
    id=${line#*\"id\":}; id=${id%%,*}
    case "$line" in
        *'"method":"initialize"'*) echo "{\"id\":$id,\"result\":{}}" ;;
        *'"hooks/list"'*) echo "{\"id\":$id,\"result\":$(cat "$here/hooks")}" ;;
        *'"thread/read"'*) echo "{\"id\":$id,\"result\":{\"thread\":{\"turns\":$(cat "$here/turns")}}}" ;;
        *'"thread/fork"'*) echo "{\"id\":$id,\"result\":{\"thread\":{\"id\":\"forked\"}}}" ;;
    esac
done
"#;

/// A stage with a Codex in its `PATH`, and a home for its settings.
fn stage() -> Stage {
    let stage = Stage::new();
    let (programs, home) = (stage.path("programs"), stage.path("home"));
    fs::create_dir(&programs).unwrap();
    fs::create_dir(&home).unwrap();
    fs::write(programs.join("codex"), PROGRAM).unwrap();
    fs::set_permissions(programs.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", text_of(&programs));
    let stage = stage.with_variable("PATH", &path).with_variable("CODEX_HOME", &text_of(&home));
    answer_hooks(&stage, "trusted");
    stage
}

/// Sets what Codex says about the hooks.
fn answer_hooks(stage: &Stage, trust: &str) {
    let hook = |event: &str, number: u32| {
        json!({"key": format!("/p/hooks.json:{event}:0:0"), "command": "backstitch guard hook codex", "trustStatus": trust,
            "currentHash": format!("sha256:{number}"), "enabled": true})
    };
    let other = json!({"key": "/p/hooks.json:stop:1:0", "command": "mine", "trustStatus": trust, "currentHash": "sha256:9"});
    let answer = json!({"data": [{"hooks": [hook("pre_tool_use", 1), hook("stop", 2), other]}]});
    fs::write(stage.path("programs/hooks"), answer.to_string()).unwrap();
}

fn asked(stage: &Stage) -> String {
    fs::read_to_string(stage.path("programs/asked")).unwrap_or_default()
}

#[test]
fn install_trusts_the_hooks_and_uninstall_leaves_no_trace() {
    let stage = stage();
    let config = stage.path("home/config.toml");
    let own = "# mine\nmodel = \"m\"   # kept\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n";
    fs::write(&config, own).unwrap();
    let printed = stage.run(&["guard", "install", "codex"]).worked();
    assert!(printed.contains("Codex trusts them") && printed.contains("trusts the project"), "{printed}");
    let text = fs::read_to_string(&config).unwrap();
    let lines = "[hooks.state.\"/p/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
    assert!(text.starts_with(own) && text.contains(lines) && text.contains("sha256:2"), "{text}");
    assert!(!text.contains("sha256:9"), "hooks of others stay untrusted: {text}");
    // The hashes of another command replace them.
    assert_eq!(stage.json(&["guard", "install", "codex", "--strict"])["trusted"], true);
    assert_eq!(fs::read_to_string(&config).unwrap(), text);

    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("Codex trusts these hooks"), "{status}");
    answer_hooks(&stage, "modified");
    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("skips 2 hooks") && status.contains("guard install codex"), "{status}");
    fs::write(stage.path("programs/hooks"), r#"{"data":[]}"#).unwrap();
    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("only if it trusts the project"), "{status}");
    fs::remove_file(stage.path("programs/codex")).unwrap();
    let status = stage.json(&["guard", "status"]);
    let codex = status["hooks"].as_array().unwrap().iter().find(|hook| hook["program"] == "codex").unwrap();
    assert_eq!(codex["trusted"], Value::Null);

    let printed = stage.run(&["guard", "uninstall", "codex"]).worked();
    assert!(printed.contains("hashes are removed"), "{printed}");
    assert_eq!(fs::read_to_string(&config).unwrap(), own);
}

#[test]
fn without_trust_the_person_is_told_what_to_do() {
    let stage = stage();
    let printed = stage.run(&["guard", "install", "codex", "--no-trust"]).worked();
    assert!(printed.contains("/hooks") && !stage.path("home/config.toml").exists(), "{printed}");
    // Settings that cannot be edited are left alone, and so are those of a Codex that cannot be asked.
    fs::write(stage.path("home/config.toml"), "hooks = 1\n").unwrap();
    let printed = stage.run(&["guard", "install", "codex"]).worked();
    assert!(printed.contains("unknown form") && printed.contains("/hooks"), "{printed}");
    assert_eq!(fs::read_to_string(stage.path("home/config.toml")).unwrap(), "hooks = 1\n");
    for (program, words) in [
        ("#!/bin/sh\nprintf 'hi\\033[2J\\n'; cat > /dev/null\n", "not a JSON object"),
        ("#!/bin/sh\nexit 1\n", "ended before"),
    ] {
        fs::write(stage.path("programs/codex"), program).unwrap();
        let printed = stage.run(&["guard", "install", "codex"]).worked();
        assert!(printed.contains("not trusted yet") && printed.contains(words), "{printed}");
        assert!(!printed.contains('\u{1b}'), "{printed:?}");
    }
    fs::remove_file(stage.path("programs/codex")).unwrap();
    let printed = stage.run(&["guard", "install", "codex"]).worked();
    assert!(printed.contains("cannot be started"), "{printed}");
}

#[test]
fn hooks_are_added_where_the_person_has_them() {
    let stage = stage();
    let config = stage.path("home/config.toml");
    let own = "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = 'mine' # kept\n";
    fs::write(&config, own).unwrap();
    let installed = stage.json(&["guard", "install", "codex", "--user"]);
    assert_eq!((&installed["settings"], &installed["trusted"]), (&json!(config), &json!(true)));
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("[[hooks.Interrupt]]") && text.contains("command = 'mine' # kept"), "{text}");
    assert!(!stage.path("home/hooks.json").exists());
    let status = stage.run(&["guard", "status"]).worked();
    assert!(status.contains("Codex is guarded in all projects"), "{status}");
    stage.run(&["guard", "uninstall", "codex", "--user"]).worked();
    assert_eq!(fs::read_to_string(&config).unwrap(), own);
}

/// A conversation of Codex.
struct Conversation<'a> {
    stage: &'a Stage,
    id: &'a str,
}

impl Conversation<'_> {
    fn rollout(&self) -> PathBuf {
        self.stage.path(&format!("rollout-{}.jsonl", self.id))
    }

    #[track_caller]
    fn report(&self, name: &str, turn: &str, more: Value) {
        assert_eq!(self.answer(name, turn, more), "");
    }

    /// Reports an event, and returns what the hook prints for the program.
    #[track_caller]
    fn answer(&self, name: &str, turn: &str, more: Value) -> String {
        let mut event = json!({"session_id": self.id, "transcript_path": self.rollout(), "cwd": self.stage.path("files"),
            "hook_event_name": name, "turn_id": turn, "model": "m"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut command = self.stage.command(&["guard", "hook", "codex"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        ended(child).worked()
    }

    /// Adds a record to the rollout.
    fn record(&self, record: &Value) {
        let mut rollout = fs::File::options().create(true).append(true).open(self.rollout()).unwrap();
        writeln!(rollout, "not JSON\n{record}").unwrap();
    }

    fn prompt(&self, turn: &str) {
        self.report("UserPromptSubmit", turn, json!({"prompt": format!("prompt of {turn}")}));
    }

    fn stop(&self, turn: &str) {
        self.report("Stop", turn, json!({"last_assistant_message": format!("answer of {turn}")}));
    }

    /// Makes a call that writes a file. Only the rollout has its exit code.
    fn call(&self, turn: &str, call: &str, code: i32) {
        let more = json!({"tool_use_id": call, "tool_name": "Bash", "tool_input": {"command": "x"}});
        self.report("PreToolUse", turn, more.clone());
        fs::write(self.stage.path("files").join(call), call).unwrap();
        let status = if code == 0 { "completed" } else { "failed" };
        let item = json!({"type": "CommandExecution", "id": call, "exit_code": code, "status": status, "aggregated_output": "no rule\n"});
        self.record(&json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}));
        let mut more = more;
        more["tool_response"] = json!("no rule\n");
        self.report("PostToolUse", turn, more);
    }
}

#[test]
fn a_command_that_failed_is_shown_as_failed() {
    let stage = stage();
    let conversation = Conversation { stage: &stage, id: "thread" };
    conversation.prompt("t1");
    conversation.call("t1", "good", 0);
    conversation.call("t1", "bad", 3);
    // A call that Codex refuses has no report of its end, only an output for the model.
    let refused =
        json!({"tool_use_id": "refused", "tool_name": "Bash", "tool_input": {"command": "rm -f x"}});
    conversation.report("PreToolUse", "t1", refused);
    let output = "exec_command failed: rm -f style commands are not permitted";
    conversation.record(&json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": "refused", "output": output}}));
    conversation.record(&json!({"type": "turn_context", "payload": {"turn_id": "t1", "model": "seam-1"}}));
    let usage = json!({"input_tokens": 50, "cached_input_tokens": 5, "output_tokens": 9});
    conversation
        .record(&json!({"type": "token_usage_record", "payload": {"response_id": "r1", "usage": usage}}));
    conversation.call("t1", "last", 0);
    conversation.stop("t1");
    let log = stage.run(&["log", &stage.session()]).worked_quietly();
    assert!(
        log.contains("failed: Exit code 3 no rule") && log.contains("failed: exec_command failed"),
        "{log}"
    );
    assert_eq!(log.matches("failed: ").count(), 2 + 1, "{log}");
    let stats = stage.json(&["stats"]).to_string();
    assert!(stats.contains("seam-1") && stats.contains("50"), "{stats}");
}

#[test]
fn a_rewind_forks_the_conversation_before_the_turn() {
    let stage = stage();
    let conversation = Conversation { stage: &stage, id: "thread" };
    fs::write(stage.path("programs/turns"), r#"[{"id":"t1"},{"id":"t2"}]"#).unwrap();
    for turn in ["t1", "t2"] {
        conversation.prompt(turn);
        conversation.call(turn, &format!("{turn}-a"), 0);
        conversation.call(turn, &format!("{turn}-b"), 0);
        conversation.stop(turn);
    }
    let (session, program) = (stage.session(), StandIn::new(&stage, "thread"));
    let point = format!("before:{}", program.call("t2-b"));
    let printed = stage.run(&["rewind", &session, &point]).worked_quietly();
    assert!(printed.contains("guard continue ") && printed.contains("inside of a turn"), "{printed}");
    assert!(!asked(&stage).contains("thread/fork"), "nobody has continued: {}", asked(&stage));
    assert!(!stage.path("files/t2-b").exists() && stage.path("files/t2-a").exists());
    let printed = stage.run(&["guard", "continue", &session, "--print"]).worked_quietly();
    assert_eq!(printed, "codex resume forked\n");
    assert!(asked(&stage).contains(r#"{"threadId":"thread","beforeTurnId":"t2"}"#), "{}", asked(&stage));
    // Back at the end, the whole conversation continues.
    stage.run(&["undo", &session]).worked_quietly();
    let printed = stage.run(&["guard", "continue", &session, "--print"]).worked_quietly();
    assert_eq!(printed, "codex resume thread\n");
    assert_eq!(asked(&stage).matches("thread/fork").count(), 1, "{}", asked(&stage));
    // Between two turns nothing is lost, and a prompt is passed on without a terminal.
    let point = format!("before:{}", program.call("t2-a"));
    stage.run(&["rewind", &session, &point]).worked_quietly();
    fs::remove_file(stage.path("programs/asked")).unwrap();
    let after = format!("after:{}", program.call("t1-b"));
    stage.run(&["rewind", &session, &after, "--continue=-x now"]).worked_quietly();
    assert!(asked(&stage).contains(r#""beforeTurnId":"t1""#), "{}", asked(&stage));
    let ran = fs::read_to_string(stage.path("programs/ran")).unwrap();
    assert_eq!(ran, "exec resume forked --skip-git-repo-check -- -x now\n");
    // The conversation that it begins is recorded in the same session.
    let forked = Conversation { stage: &stage, id: "forked" };
    forked.prompt("t3");
    forked.stop("t3");
    assert_eq!(stage.session(), session);
    assert!(stage.run(&["log", &session]).worked_quietly().contains("prompt of t3"));
}

#[test]
fn hooks_of_a_codex_that_the_guard_starts_itself_record_nothing() {
    let stage = stage();
    let conversation = Conversation { stage: &stage, id: "thread" };
    fs::write(stage.path("programs/turns"), r#"[{"id":"t1"}]"#).unwrap();
    conversation.prompt("t1");
    conversation.call("t1", "a", 0);
    conversation.call("t1", "b", 0);
    conversation.stop("t1");
    let (session, program) = (stage.session(), StandIn::new(&stage, "thread"));
    // At its end the app-server reports to the hooks, as the real one does.
    let event = json!({"session_id": "thread", "cwd": stage.path("files"), "hook_event_name": "SessionEnd", "reason": "other"});
    fs::write(stage.path("event"), event.to_string()).unwrap();
    let hook = stage.command(&["guard", "hook", "codex"]);
    let words: Vec<String> = std::iter::once(hook.get_program())
        .chain(hook.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let (event, done) = (text_of(&stage.path("event")), text_of(&stage.path("hooked")));
    fs::write(stage.path("programs/hook"), format!("{} < {event}; echo $? > {done}\n", words.join(" ")))
        .unwrap();
    let point = format!("before:{}", program.call("b"));
    stage.run(&["rewind", &session, &point, "--continue=now"]).worked_quietly();
    assert_eq!(fs::read_to_string(stage.path("hooked")).unwrap(), "0\n", "the hook ran");
    let records = program.records();
    assert_eq!(program.gaps(), Vec::<String>::new());
    // The window of the old conversation still shows what was undone.
    let told = conversation.answer("UserPromptSubmit", "t2", json!({"prompt": "prompt of t2"}));
    assert!(told.contains("The person has rewound this session"), "{told}");
    assert_eq!(program.gaps(), Vec::<String>::new());
    let rewound = records.iter().rposition(|record| record["kind"] == "rewound").unwrap();
    let is_of_rewind = |record: &&Value| {
        record["kind"] == "workspace_observed" || record["data"]["topic"] == "files_restored"
    };
    let later: Vec<&Value> = records[rewound + 1..].iter().filter(|record| !is_of_rewind(record)).collect();
    assert!(later.is_empty(), "{later:?}");
}

#[test]
fn a_codex_that_cannot_fork_continues_the_whole_conversation() {
    let stage = stage();
    let conversation = Conversation { stage: &stage, id: "thread" };
    conversation.prompt("t1");
    conversation.call("t1", "a", 0);
    conversation.stop("t1");
    fs::remove_file(stage.path("programs/codex")).unwrap();
    let point = format!("before:{}", StandIn::new(&stage, "thread").call("a"));
    stage.run(&["rewind", &stage.session(), &point]).worked_quietly();
    let ran = stage.run(&["guard", "continue", &stage.session(), "--print"]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "codex resume thread\n"), "{}", ran.errors);
    assert!(
        ran.errors.contains("whole conversation") && ran.errors.contains("cannot be started"),
        "{}",
        ran.errors
    );
}
