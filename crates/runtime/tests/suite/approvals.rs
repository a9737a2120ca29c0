//! Approval rules, the calls that wait, and commands that a real shell reads as one.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::approval::{
    ApprovalRule, ApprovalRules, ApprovalVerdict, CommandPart, CommandWords, ParsedCommand, Redirection,
};
use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Decision, Effect, PauseReason, RecordBody};
use backstitch_core::mode::AgentMode;
use backstitch_core::ports::CommandNeeds;
use backstitch_core::tool::{CommandLimit, Tool, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    Agent, DriveOutcome, PointSpec, Runtime, SessionOptions, SubAgent, WaitingCall, call_arguments, describe,
};
use backstitch_store::MemoryStore;
use proptest::prelude::*;
use serde_json::json;

use crate::tailor::{keep, killed_inside, reply, scripted, with_approval, with_keep};

/// A tool that counts its runs, and needs approval.
fn shell(ran: &Arc<AtomicUsize>) -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct ShellCommand {
        command: String,
    }
    let ran = ran.clone();
    let builder = Tool::builder("shell", "Runs a command.").unwrap().effect(Effect::External);
    with_approval(builder.workspace(WorkspaceUse::None).handler(move |_, command: ShellCommand| {
        ran.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ToolResult::ok(format!("ran {}", command.command))) }
    }))
}

fn runs(command: &str) -> (&'static str, serde_json::Value) {
    ("shell", json!({"command": command}))
}

fn rule(verdict: ApprovalVerdict, scope: &str) -> ApprovalRule {
    ApprovalRule::new(verdict, scope.parse().unwrap())
}

pub(crate) fn runtime() -> Runtime {
    Runtime::new(Arc::new(MemoryStore::new()))
}

#[tokio::test]
async fn only_an_answer_can_be_accepted() {
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = scripted(vec![reply("", &[runs("ls")]), reply("done", &[])]).tools([shell(&ran)]);
    let runtime = runtime();
    let run = runtime.start(&agent, "Look around.").await.unwrap();
    let DriveOutcome::Paused { call: Some(call), .. } = run.outcome().await.unwrap() else { panic!() };
    let session = run.session();
    for decision in [Decision::Accept, Decision::Retry] {
        let one = runtime.decide(session, Some(call), decision.clone(), None).await.unwrap_err();
        let several = runtime.decide_calls(session, &[call], decision, None).await.unwrap_err();
        assert_eq!([one.code(), several.code()], [ErrorCode::DecisionRefused; 2]);
    }
    assert_eq!(runtime.waiting_calls(session).await.unwrap().len(), 1, "it still waits");
    let allowed = runtime.allow_calls(session, &[call], None).await.unwrap();
    assert_eq!(allowed.decided.len(), 1);
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let rules = runtime.state(session).await.unwrap().all::<ApprovalRule>().unwrap();
    assert_eq!(rules.iter().map(|rule| rule.scope.to_string()).collect::<Vec<_>>(), ["shell"]);
}

/// How a rule comes to be between an interruption and the resumption.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NewRule {
    DenyOfAgent,
    DenyOfSession,
    AskOfAgent,
    ToolNeedsApproval,
}

#[tokio::test]
async fn an_interrupted_call_is_judged_by_the_rules_of_today() {
    let rules =
        [NewRule::DenyOfAgent, NewRule::DenyOfSession, NewRule::AskOfAgent, NewRule::ToolNeedsApproval];
    for effect in [Effect::Workspace, Effect::Idempotent, Effect::External] {
        for new in rules {
            let what = format!("{effect:?}, {new:?}");
            let replies = || vec![reply("", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
            let (agent, ran) = with_keep(scripted(replies()), effect);
            let runtime = runtime();
            let session = killed_inside(&runtime, &agent, &ran, None).await;
            let agent = match new {
                NewRule::DenyOfAgent => {
                    agent.approval_rules([rule(ApprovalVerdict::Deny, "keep")].into_iter().collect())
                }
                NewRule::DenyOfSession => {
                    runtime.add_approval_rule(session, rule(ApprovalVerdict::Deny, "keep")).await.unwrap();
                    agent
                }
                NewRule::AskOfAgent => {
                    agent.approval_rules([rule(ApprovalVerdict::Ask, "keep")].into_iter().collect())
                }
                NewRule::ToolNeedsApproval => {
                    scripted(replies()).tools([with_approval(keep(effect, ran.clone()))])
                }
            };
            let mut ended = runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
            if let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call, .. } = ended {
                assert_eq!(effect, Effect::External, "{what}");
                runtime.decide(session, call, Decision::Retry, None).await.unwrap();
                ended = runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
            }
            assert_eq!(ran.load(Ordering::SeqCst), 1, "{what}: it did not run again");
            let told = results(&runtime, session).await;
            match new {
                NewRule::DenyOfAgent | NewRule::DenyOfSession => {
                    assert_eq!(ended.answer().unwrap().text, "done", "{what}");
                    assert!(told[0].contains("denies this call"), "{what}: {told:?}");
                }
                NewRule::AskOfAgent | NewRule::ToolNeedsApproval => {
                    let DriveOutcome::Paused { reason: PauseReason::Approval, call, .. } = ended else {
                        panic!("{what}: {ended:?}")
                    };
                    runtime.approve(session, call.unwrap()).await.unwrap();
                    let run = runtime.resume(session, &agent).await.unwrap();
                    assert_eq!(run.answer::<String>().await.unwrap(), "done", "{what}");
                    assert_eq!(ran.load(Ordering::SeqCst), 2, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_a_person_approved_runs_again_unless_a_rule_denies_it() {
    for denies in [false, true] {
        let ran = Arc::new(AtomicUsize::new(0));
        let replies = vec![reply("", &[("keep", json!({"text": "wait"}))]), reply("done", &[])];
        let mut agent = scripted(replies).tools([with_approval(keep(Effect::Workspace, ran.clone()))]);
        let runtime = runtime();
        let (session, ended) = run_to_rest(&runtime, &agent).await;
        let DriveOutcome::Paused { call: Some(call), .. } = ended else { panic!("{ended:?}") };
        runtime.approve(session, call).await.unwrap();
        killed_inside(&runtime, &agent, &ran, Some(session)).await;
        if denies {
            agent = agent.approval_rules([rule(ApprovalVerdict::Deny, "keep")].into_iter().collect());
        }
        let run = runtime.resume(session, &agent).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "done");
        assert_eq!(ran.load(Ordering::SeqCst), if denies { 1 } else { 2 });
    }
}

/// The results of all calls, as the model gets them.
pub(crate) async fn results(runtime: &Runtime, session: SessionId) -> Vec<String> {
    let view = runtime.view(session).await.unwrap();
    let transcript = view.transcript().unwrap();
    let results = transcript.all();
    let results = results.iter().filter(|message| message.message.option_result().is_some());
    results.map(|message| message.content().to_string()).collect()
}

pub(crate) async fn run_to_rest(runtime: &Runtime, agent: &Agent) -> (SessionId, DriveOutcome) {
    let run = runtime.start(agent, "sew").await.unwrap();
    (run.session(), run.outcome().await.unwrap())
}

#[tokio::test]
async fn rules_of_the_agent_replace_what_its_tools_declare() {
    let ran = Arc::new(AtomicUsize::new(0));
    let calls =
        [runs("git status"), runs("git status; git push"), runs("git $(git config x)"), runs("ls; git log")];
    let rules: ApprovalRules =
        [rule(ApprovalVerdict::Allow, "shell git"), rule(ApprovalVerdict::Deny, "shell git push")]
            .into_iter()
            .collect();
    let agent =
        scripted(vec![reply("", &calls), reply("done", &[])]).tools([shell(&ran)]).approval_rules(rules);
    let runtime = runtime();
    let (session, ended) = run_to_rest(&runtime, &agent).await;
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 1, "only the allowed command ran");
    let waiting = runtime.waiting_calls(session).await.unwrap();
    let commands: Vec<_> = waiting.iter().map(|call| call.arguments["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["git $(git config x)", "ls; git log"]);
    let told = results(&runtime, session).await;
    assert!(told.iter().any(|text| text.contains("deny `shell git push`")), "{told:?}");
}

#[tokio::test]
async fn a_rule_can_require_approval_for_a_tool_without() {
    let ran = Arc::new(AtomicUsize::new(0));
    let mut free = shell(&ran);
    Arc::make_mut(&mut free.spec).approval = backstitch_core::tool::Approval::NotNeeded;
    let rules = [rule(ApprovalVerdict::Ask, "shell rm")].into_iter().collect();
    let agent = scripted(vec![reply("", &[runs("rm a"), runs("ls"), runs("ls; rm a")]), reply("done", &[])])
        .tools([free])
        .approval_rules(rules);
    let runtime = runtime();
    let (session, _) = run_to_rest(&runtime, &agent).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(runtime.waiting_calls(session).await.unwrap().len(), 2, "also a command that may be `rm`");
}

#[tokio::test]
async fn a_rule_of_the_session_holds_after_a_resume_and_not_before_it() {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = vec![reply("", &[runs("git status")]), reply("", &[runs("git log")]), reply("done", &[])];
    let agent = scripted(replies).tools([shell(&ran)]);
    let runtime = runtime();
    let (session, _) = run_to_rest(&runtime, &agent).await;
    let cut = runtime.view(session).await.unwrap().head();
    let always = rule(ApprovalVerdict::Allow, "shell git").by(Some("ada".to_owned()));
    runtime.add_approval_rule(session, always.clone()).await.unwrap();
    // The same rule is recorded once.
    runtime.add_approval_rule(session, always).await.unwrap();
    let records = runtime.records(session).await.unwrap();
    let lines: Vec<_> = records.iter().filter_map(describe).filter(|line| line.contains("rule of")).collect();
    assert_eq!(lines, ["rule of ada for this session: allow `shell git`"]);

    // Another process knows the rule: the waiting call needs no decision, and the next one does not wait.
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().answer().unwrap().text, "done");
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    let records = runtime.records(session).await.unwrap();
    let by = records.iter().find_map(|record| match &record.body {
        RecordBody::Resolved(resolved) => resolved.by.clone(),
        _ => None,
    });
    assert_eq!(by.as_deref(), Some("rule allow `shell git`"));

    // A rewind to a point before the rule removes it, and undoing the rewind restores it.
    runtime.rewind(session, PointSpec::Position(cut)).await.unwrap();
    let run = runtime.resume(session, &agent).await.unwrap();
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
    runtime.undo(session).await.unwrap();
    assert_eq!(runtime.state(session).await.unwrap().all::<ApprovalRule>().unwrap().len(), 1);
}

#[tokio::test]
async fn calls_of_sub_agents_wait_in_their_own_sessions_and_inherit_rules() {
    let ran = Arc::new(AtomicUsize::new(0));
    let helper = scripted(vec![reply("", &[runs("git status"), runs("git log")]), reply("helped", &[])])
        .tools([shell(&ran)]);
    let helper = SubAgent::new("helper", "Helps.", helper).unwrap();
    let mission = json!({"mission": "help"});
    let calls = [("helper", mission.clone()), runs("ls")];
    let agent = scripted(vec![reply("", &calls), reply("", &[("helper", mission)]), reply("done", &[])]);
    let agent = agent.tools([helper.into(), shell(&ran)]);
    let runtime = runtime();
    let (session, _) = run_to_rest(&runtime, &agent).await;
    let waiting = runtime.waiting_calls(session).await.unwrap();
    let commands: Vec<_> = waiting.iter().map(|call| call.arguments["command"].as_str().unwrap()).collect();
    assert_eq!(commands.len(), 3, "{waiting:?}");
    assert!(commands.contains(&"git status") && commands.contains(&"git log") && commands.contains(&"ls"));
    for call in &waiting {
        assert_eq!(call.session != session, call.arguments["command"] != "ls", "{call:?}");
    }
    // The rule of the parent decides about the calls of the sub-agent, in this session and in the next one.
    runtime.add_approval_rule(session, rule(ApprovalVerdict::Allow, "shell git")).await.unwrap();
    let own = waiting.iter().find(|call| call.session == session).unwrap();
    runtime.approve(session, own.call).await.unwrap();
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().answer().unwrap().text, "done");
    assert_eq!(ran.load(Ordering::SeqCst), 5);
    assert_eq!(runtime.waiting_calls(session).await.unwrap(), []);
}

#[tokio::test]
async fn the_journal_has_what_was_asked_and_what_ran() {
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = scripted(vec![reply("", &[runs("rm -r .")]), reply("done", &[])]).tools([shell(&ran)]);
    let runtime = runtime();
    let (session, _) = run_to_rest(&runtime, &agent).await;
    let call = runtime.waiting_calls(session).await.unwrap()[0].call;
    let arguments = json!({"command": "ls"}).as_object().cloned().unwrap();
    let edit = backstitch_core::journal::Decision::Edit { arguments };
    runtime.decide(session, Some(call), edit, None).await.unwrap();
    runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap().answer().unwrap();
    assert_eq!(results(&runtime, session).await, ["ran ls"]);
    let view = runtime.view(session).await.unwrap();
    let found = call_arguments(&**runtime.store(), &view, call).await.unwrap();
    assert_eq!(found.asked, json!({"command": "rm -r ."}));
    assert_eq!(found.edited, Some(json!({"command": "ls"})));
}

#[tokio::test]
async fn a_session_that_exists_is_not_started_again() {
    let agent = scripted(vec![reply("done", &[])]);
    let runtime = runtime();
    let (session, _) = run_to_rest(&runtime, &agent).await;
    let options = SessionOptions { id: Some(session), ..SessionOptions::default() };
    let refused = runtime.start_with(&agent, "again", options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AlreadyExists, "{refused}");
    // Also while it is driven.
    let driver = runtime.open(session, agent.clone(), SessionOptions::default()).await.unwrap();
    let options = SessionOptions { id: Some(session), ..SessionOptions::default() };
    let refused = runtime.start_with(&agent, "again", options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AlreadyExists, "{refused}");
    driver.session().release().await.unwrap();
}

/// Pieces of commands, with everything that a shell may read as an operator.
fn command() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "stub",
        "a",
        "b",
        " ",
        "  ",
        "\t",
        "'",
        "\"",
        "''",
        "\"\"",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "\r",
        "$",
        "$(stub x)",
        "$(stub x > a)",
        "$(",
        "2>&1",
        "> a",
        ">>b",
        "< a",
        "/dev/null",
        "`stub x`",
        "${IFS}",
        "$IFS",
        "\\",
        "\\\n",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "<<",
        "*",
        "?",
        "[",
        "]",
        "~",
        "#",
        "!",
        "=",
        "A=b ",
        "-",
        "%",
        "é",
        "\u{a0}",
        "\u{2028}",
        "if ",
        "time ",
        "coproc ",
        "exec ",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| format!("stub {}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// Whatever is allowed by a prefix runs nothing else than its parts in a real shell, each with these words, and opens
    /// no other files than those of its redirections.
    #[test]
    fn a_shell_runs_the_parts_of_an_allowed_command_and_nothing_else(command in command()) {
        let scopes = ["shell stub", "read_file", "write_file"];
        let rules: ApprovalRules = scopes.map(|scope| rule(ApprovalVerdict::Allow, scope)).into_iter().collect();
        let arguments = json!({"command": command});
        let matched = rules.judge("shell", arguments.as_object().unwrap()).is_some();
        let parsed = ParsedCommand::parse(&command);
        let is_stub = |part: &CommandPart| part.program() == "stub";
        let is_inside = |file: &Redirection| !file.path.starts_with('/');
        let is_expected = |parsed: &ParsedCommand| {
            parsed.parts().iter().all(is_stub) && parsed.redirections().iter().all(is_inside)
        };
        prop_assert_eq!(matched, parsed.as_ref().is_some_and(is_expected));
        if let Some(parsed) = parsed.filter(|_| matched) {
            let (runs, files) = run_by_shell(&command);
            prop_assert!(runs.len() <= parsed.parts().len(), "{:?}", runs);
            for run in &runs {
                let words: Vec<&str> = run.iter().map(String::as_str).collect();
                let mut parts = parsed.parts().iter().map(|part| part.words().collect::<Vec<_>>());
                prop_assert!(parts.any(|part| fits(&part, &words)), "{:?}", run);
            }
            let is_named = |file: &String| {
                parsed.redirections().iter().any(|named| named.writes && named.path == *file)
            };
            prop_assert!(files.iter().all(is_named), "{:?}", files);
            // A plain command runs once, with exactly its words.
            if let Some(words) = CommandWords::parse(&command) {
                prop_assert_eq!(runs, vec![words.as_slice().to_vec()]);
            }
        }
    }
}

/// Whether words that were run are those of a part, in which `None` stands for any number of words.
fn fits(part: &[Option<&str>], words: &[&str]) -> bool {
    match (part.split_first(), words.split_first()) {
        (None, None) => true,
        (Some((None, rest)), _) => (0..=words.len()).any(|count| fits(rest, &words[count..])),
        (Some((Some(expected), rest)), Some((word, others))) => expected == word && fits(rest, others),
        _ => false,
    }
}

/// Runs a command with the real shell, and returns the words of each command that it ran, and the files that it made.
fn run_by_shell(command: &str) -> (Vec<Vec<String>>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let stub = place.path().join("stub");
    // With one write for each run, because the commands of a pipeline run at the same time.
    let script = format!("#!/bin/sh\nprintf '%s\\0' stub \"$@\" '\n' >> '{}'\n", log.display());
    std::fs::write(&stub, script).unwrap();
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env("PATH", place.path()).current_dir(place.path()).output().unwrap();
    let text = String::from_utf8(std::fs::read(&log).unwrap_or_default()).unwrap();
    let runs = text.split_terminator("\n\0");
    let runs = runs.map(|run| run.split_terminator('\0').map(str::to_owned).collect()).collect();
    let made = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let made = made.map(|name| name.into_string().unwrap()).filter(|name| name != "log" && name != "stub");
    (runs, made.collect())
}

#[tokio::test]
async fn a_decision_about_a_call_that_does_not_wait_is_refused() {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = vec![reply("", &[runs("ls")]), reply("done", &[])];
    let (runtime, agent) = (runtime(), scripted(replies).tools([shell(&ran)]));
    let run = runtime.start(&agent, "look").await.unwrap();
    run.outcome().await.unwrap();
    let (session, waiting) = (run.session(), runtime.waiting_calls(run.session()).await.unwrap());
    let refused = async |session: SessionId, call| {
        let approved = runtime.approve(session, call).await;
        let denied = runtime.deny(session, call, "no").await;
        [approved, denied].map(|decided| match decided {
            Err(error) => (error.code(), error.to_string()),
            Ok(()) => panic!("a decision about {call} was accepted"),
        })
    };
    // A call that nobody made: a typing error, for example.
    let unknown: CallId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    for (code, text) in refused(session, unknown).await {
        assert_eq!(code, ErrorCode::DecisionRefused);
        assert!(text.contains(&unknown.to_string()) && text.contains("no such call"), "{text}");
    }
    // A session that does not exist.
    let elsewhere = runtime.new_id().unwrap();
    for (code, _) in refused(elsewhere, waiting[0].call).await {
        assert_eq!(code, ErrorCode::SessionNotFound);
    }
    assert_eq!(runtime.store().inbox(session).await.unwrap(), [], "nothing waits in the inbox");

    // A call that has its result.
    runtime.approve(session, waiting[0].call).await.unwrap();
    runtime.resume(session, &agent).await.unwrap().answer::<String>().await.unwrap();
    for (code, text) in refused(session, waiting[0].call).await {
        assert_eq!(code, ErrorCode::DecisionRefused);
        assert!(text.contains("has its result already"), "{text}");
    }
}

#[tokio::test]
async fn a_run_is_decided_about_until_nothing_waits() {
    let ran = Arc::new(AtomicUsize::new(0));
    let helper = scripted(vec![reply("", &[runs("ls")]), reply("listed", &[])]).tools([shell(&ran)]);
    let helper = SubAgent::new("helper", "Lists.", helper).unwrap().into_tool();
    let asks = ("helper", json!({"mission": "list"}));
    let replies =
        vec![reply("", &[asks, runs("cat a"), runs("rm a")]), reply("", &[runs("ls")]), reply("done", &[])];
    let (runtime, agent) = (runtime(), scripted(replies).tools([helper, shell(&ran)]));

    // A call that is left to another person is all that waits in the end.
    let run = runtime.start(&agent, "clean").await.unwrap();
    let session = run.session();
    let mut seen = Vec::new();
    let outcome = run
        .deciding(&agent, async |call| {
            let command = call.arguments["command"].as_str().unwrap_or_default().to_owned();
            seen.push((call.session == session, command.clone()));
            (command != "rm a").then_some(Decision::Approve)
        })
        .await
        .unwrap();
    assert!(matches!(outcome, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{outcome:?}");
    let waiting = runtime.waiting_calls(session).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert!(
        seen.contains(&(false, "ls".to_owned())) && seen.contains(&(true, "cat a".to_owned())),
        "{seen:?}"
    );

    // A denial is a decision, too.
    let run = runtime.resume(session, &agent).await.unwrap();
    let decide = async |call: &WaitingCall| {
        let is_removal = call.arguments["command"] == "rm a";
        Some(if is_removal { Decision::Deny { reason: None } } else { Decision::Approve })
    };
    assert_eq!(run.deciding(&agent, decide).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(ran.load(Ordering::SeqCst), 3, "the removal did not run");
}

#[tokio::test]
async fn a_decision_that_does_not_fit_is_made_once() {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = vec![reply("", &[runs("ls")]), reply("done", &[])];
    let (runtime, agent) = (runtime(), scripted(replies).tools([shell(&ran)]));
    let run = runtime.start(&agent, "look").await.unwrap();
    let mut asked = 0;
    let decide = async |_: &WaitingCall| {
        asked += 1;
        // It ends the question, and does not answer it.
        Some(Decision::Continue)
    };
    let outcome = run.deciding(&agent, decide).await.unwrap();
    assert!(matches!(outcome, DriveOutcome::Paused { .. }), "{outcome:?}");
    assert_eq!((asked, ran.load(Ordering::SeqCst)), (1, 0));
}

/// Tools of each kind that a mode distinguishes, by name. None of them declares that it needs approval.
fn kinds(ran: &Arc<AtomicUsize>) -> Vec<Tool> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Rights {
        #[serde(default)]
        needs: Option<CommandNeeds>,
    }
    let tool = |name: &str, effect: Effect, commands: Option<CommandLimit>| {
        let ran = ran.clone();
        let builder = Tool::builder(name, "Does something.").unwrap().effect(effect).commands(commands);
        let builder =
            builder.workspace(if effect == Effect::Pure { WorkspaceUse::None } else { WorkspaceUse::Write });
        builder.rights_argument("needs").handler(move |_, rights: Rights| {
            ran.fetch_add(1, Ordering::SeqCst);
            async move { Ok(ToolResult::ok(format!("with {:?}", rights.needs))) }
        })
    };
    vec![
        tool("look", Effect::Pure, None),
        tool("inspect", Effect::Workspace, Some(CommandLimit::Nothing)),
        tool("build", Effect::Workspace, Some(CommandLimit::Workspace)),
        tool("write", Effect::Workspace, None),
        tool("send", Effect::External, None),
    ]
}

/// Makes one call in a mode. Returns whether it waits for a person, and the result that the model got otherwise.
async fn call_in(
    mode: impl Into<Option<AgentMode>>,
    call: (&str, serde_json::Value),
    rules: ApprovalRules,
) -> (bool, String) {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = vec![reply("", &[call]), reply("done", &[])];
    let agent = scripted(replies).tools(kinds(&ran)).mode(mode).approval_rules(rules);
    let runtime = runtime();
    let (session, ended) = run_to_rest(&runtime, &agent).await;
    let waits = matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. });
    let result = results(&runtime, session).await.pop().unwrap_or_default();
    let has_run = ran.load(Ordering::SeqCst) == 1;
    assert_eq!(has_run, !waits && !result.contains("was not run"), "{ended:?} {result}");
    (waits, result)
}

#[tokio::test]
async fn a_mode_runs_asks_and_refuses() {
    use AgentMode::{Ask, Auto, Full, Plan};
    let wide = json!({"needs": {"network": true}});
    let calls = [
        ("look", json!({})),
        ("inspect", json!({})),
        ("build", json!({})),
        ("write", json!({})),
        ("send", json!({})),
        ("build", wide.clone()),
        ("inspect", wide),
    ];
    // What happens to each of the calls: it runs, is asked about, or is refused.
    for (mode, expected) in [(Plan, "rrxxxxx"), (Ask, "raaaaaa"), (Auto, "rrrraaa"), (Full, "rrrrrrr")] {
        let mut found = String::new();
        for call in &calls {
            let (waits, result) = call_in(mode, call.clone(), ApprovalRules::default()).await;
            let is_refused = result.contains("in the mode plan");
            found.push(if waits {
                'a'
            } else if is_refused {
                'x'
            } else {
                'r'
            });
        }
        assert_eq!(found, expected, "{mode}");
    }
}

#[tokio::test]
async fn a_rule_allows_what_a_mode_asks_about_and_not_what_it_refuses() {
    let rules = || [rule(ApprovalVerdict::Allow, "send")].into_iter().collect::<ApprovalRules>();
    let (waits, _) = call_in(AgentMode::Auto, ("send", json!({})), rules()).await;
    assert!(!waits);
    let (waits, result) = call_in(AgentMode::Plan, ("send", json!({})), rules()).await;
    assert!(!waits && result.contains("was not run"), "{result}");
}

#[tokio::test]
async fn an_agent_with_commands_asks_before_what_leaves_the_sandbox_by_default() {
    let ran = Arc::new(AtomicUsize::new(0));
    let replies = || vec![reply("", &[("send", json!({}))]), reply("done", &[])];
    let default = scripted(replies()).tools(kinds(&ran));
    assert!(matches!(default.current_mode(), Some(AgentMode::Auto | AgentMode::Ask)));
    let (_, ended) = run_to_rest(&runtime(), &default).await;
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
    // An agent without commands asks what its tools declare, and so does one without a mode.
    let send = || kinds(&ran).pop().unwrap();
    for agent in [scripted(replies()).tools([send()]), scripted(replies()).tools(kinds(&ran)).mode(None)] {
        assert_eq!(agent.current_mode(), None);
        let (_, ended) = run_to_rest(&runtime(), &agent).await;
        assert_eq!(ended.answer().unwrap().text, "done");
    }
}

#[tokio::test]
async fn a_sub_agent_is_bound_by_the_mode_of_its_caller() {
    let ran = Arc::new(AtomicUsize::new(0));
    let inner = scripted(vec![reply("", &[("write", json!({}))]), reply("refused", &[])]);
    let inner = inner.tools(kinds(&ran)).mode(AgentMode::Full);
    let child = SubAgent::new("delegate", "Does it.", inner).unwrap();
    let outer = vec![reply("", &[("delegate", json!({"mission": "write"}))]), reply("done", &[])];
    let agent = scripted(outer).tools([child]).mode(AgentMode::Plan);
    let (_, ended) = run_to_rest(&runtime(), &agent).await;
    assert_eq!(ended.answer().unwrap().text, "done", "the call of the sub-agent itself is not refused");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}
