//! Scripts: their replies and failures, and that a new process continues with the reply that was not
//! recorded.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::digest::Digest;
use backstitch_core::journal::{Effect, Role};
use backstitch_core::message::{MediaPart, MediaUrl, Modality, PolicyName, RoleHint};
use backstitch_core::ports::{Delta, Deltas, Finish, Policy, PolicyAnswer, PolicyError, PolicyRequest};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::validate::validate;
use backstitch_providers::{
    ErrorKind, Provider, RequestOptions, Script, ScriptError, ScriptFormat, ScriptedCall, ScriptedFailure,
    ScriptedPolicy, ScriptedReply,
};
use backstitch_runtime::{Agent, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::support::Talk;

const RICH: &str = r#"
[[reply]]
text = "I look at both."
reasoning = "Two places."
finish_reason = "tool_calls"
delay_ms = 1
word_ms = 1
usage = { input_tokens = 10, output_tokens = 4 }
media = [{ modality = "image", url = "https://example.org/a.png", prompt_hint = "the cloth" }]

[[reply.call]]
name = "look"
id = "call_1"
arguments = { place = "left" }

[[reply.call]]
name = "look"
arguments_text = '{"place": '

[[reply]]
text = "Done."

[[reply.fail]]
kind = "rate_limited"
times = 2
retry_after_ms = 1500

[[reply.fail]]
kind = "cut_stream"
said = "Do"
"#;

fn policy(script: Script) -> ScriptedPolicy {
    ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), script)
}

fn rich() -> ScriptedPolicy {
    policy(Script::parse(RICH, ScriptFormat::Toml, "rich.toml").unwrap())
}

fn ask(policy: &ScriptedPolicy, question: PolicyRequest) -> Result<PolicyAnswer, PolicyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let described = policy.describe(&question);
    runtime.block_on(policy.decide(question, described))
}

fn listened(mut question: PolicyRequest) -> (PolicyRequest, Arc<Mutex<Vec<Delta>>>) {
    let heard: Arc<Mutex<Vec<Delta>>> = Arc::default();
    let told = heard.clone();
    question.deltas = Deltas::new(move |delta| told.lock().unwrap().push(delta));
    (question, heard)
}

#[test]
fn a_reply_says_what_a_model_could_have_said() {
    let (question, heard) = listened(Talk::new().user("Look").question());
    let answer = ask(&rich(), question).unwrap();
    assert_eq!(answer.parts.len(), 2);
    assert_eq!(answer.parts[1].as_media().unwrap().prompt_hint.as_deref(), Some("the cloth"));
    let [first, second] = answer.calls.as_slice() else { panic!("two calls") };
    assert_eq!(first.provider_call_id.as_deref(), Some("call_1"));
    assert_eq!(first.arguments.object(), json!({"place": "left"}).as_object());
    assert!(!second.arguments.is_parsable());
    let sidecar = answer.provider.unwrap();
    assert_eq!((sidecar.provider.as_str(), sidecar.model.as_str()), ("scripted", "tailor"));
    assert_eq!(sidecar.finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!(answer.finish, Finish::Calls);
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (10, 4));
    let heard = heard.lock().unwrap();
    assert_eq!(heard[0], Delta::Reasoning("Two ".into()));
    assert_eq!(heard.last(), Some(&Delta::Text("both.".into())));
}

#[test]
fn a_reply_ends_for_the_reason_that_any_provider_has_a_word_for() {
    let given = |reason: &str, arguments: &str| {
        let call = ScriptedCall {
            name: "look".into(),
            arguments_text: Some(arguments.into()),
            ..ScriptedCall::default()
        };
        let reply =
            ScriptedReply { finish_reason: Some(reason.into()), ..ScriptedReply::text("x").call(call) };
        let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies: vec![reply] });
        let answer = ask(&policy, Talk::new().question()).unwrap();
        (answer.finish, answer.calls[0].cut_off)
    };
    for word in ["length", "max_tokens", "max_output_tokens", "MAX_TOKENS"] {
        assert_eq!(given(word, "{}"), (Finish::Length, false));
        assert_eq!(given(word, "{\"a\":"), (Finish::Length, true));
        assert_eq!(given(word, ""), (Finish::Length, true));
    }
    assert_eq!(given("content_filter", "{}"), (Finish::Filter, false));
    assert_eq!(given("pause_turn", "{}"), (Finish::Pause, false));
    assert_eq!(given("end_turn", "{"), (Finish::Calls, false));
    assert_eq!(given("brand_new", "{}"), (Finish::Other("brand_new".into()), false));
}

#[test]
fn a_reply_fails_as_often_as_it_says_and_is_then_given() {
    let policy = rich();
    let talk = Talk::new().user("Look").answer(ask(&policy, Talk::new().question()).unwrap());
    let question = talk.question();
    for _ in 0..2 {
        let error = ask(&policy, question.clone()).unwrap_err();
        assert_eq!((error.kind.as_str(), error.retryable), ("rate_limited", true));
        assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    }
    let (heard_question, heard) = listened(question.clone());
    let error = ask(&policy, heard_question).unwrap_err();
    assert_eq!((error.kind.as_str(), error.retryable), ("cut_stream", true));
    assert_eq!(*heard.lock().unwrap(), [Delta::Text("Do".into())]);
    assert_eq!(ask(&policy, question).unwrap().parts.len(), 1);
}

#[test]
fn which_reply_is_next_follows_from_the_question() {
    let mut talk = Talk::new().user("Look");
    let script = Script {
        replies: vec![ScriptedReply::text("one"), ScriptedReply::text("two"), ScriptedReply::text("three")],
    };
    for word in ["one", "two", "three"] {
        // Each policy is new, and is asked twice.
        for _ in 0..2 {
            let answer = ask(&policy(script.clone()), talk.question()).unwrap();
            assert_eq!(answer, PolicyAnswer::text(word));
        }
        talk = talk.answer(PolicyAnswer::text(word)).user("Next");
    }
    let error = ask(&policy(script), talk.question()).unwrap_err();
    assert_eq!((error.kind.as_str(), error.retryable), ("script_ended", false));
}

#[test]
fn every_kind_of_error_can_be_scripted() {
    for kind in ErrorKind::ALL {
        let text =
            format!("{{\"replies\": [{{\"fail\": [{{\"kind\": \"{kind}\", \"message\": \"so\"}}]}}]}}");
        let script = Script::parse(&text, ScriptFormat::Json, "errors.json").unwrap();
        assert_eq!(script.replies[0].failures[0].kind, kind);
        let policy = policy(script);
        // A reply without content fails every time.
        for _ in 0..3 {
            let error = ask(&policy, Talk::new().question()).unwrap_err();
            assert_eq!((error.kind.as_str(), error.retryable), (kind.as_str(), kind.is_retryable()));
            assert_eq!(error.message, "so");
        }
    }
}

#[test]
fn requests_can_be_made_as_if_they_were_sent() {
    let video = MediaPart::new(Modality::Video, MediaUrl::new("https://example.org/sewing.mp4").unwrap());
    let script = Script { replies: vec![ScriptedReply::text("Done.")] };
    for provider in Provider::ALL {
        let policy = policy(script.clone()).rendered_for(provider, RequestOptions::default());
        let question = Talk::new().system("Be brief.").user("Look").question();
        let described = policy.describe(&question);
        assert_eq!((described.provider.as_str(), described.model.as_str()), ("scripted", "tailor"));
        let body = described.body.unwrap().text();
        assert_eq!(described.digest, Some(Digest::of(body.as_bytes())));
        validate(provider, &serde_json::from_str(&body).unwrap()).unwrap();
        assert_eq!(ask(&policy, question).unwrap(), PolicyAnswer::text("Done."));
        let question = Talk::new().say(RoleHint::User, vec![video.clone().into()]).question();
        match ask(&policy, question) {
            Ok(_) => assert_eq!(provider, Provider::Gemini),
            Err(error) => assert_eq!(error.kind, "unsupported_media"),
        }
    }
}

#[test]
fn scripts_are_written_as_they_are_read() {
    let script = Script::parse(RICH, ScriptFormat::Toml, "rich.toml").unwrap();
    let text = serde_json::to_string(&script).unwrap();
    assert_eq!(Script::parse(&text, ScriptFormat::Json, "rich.json").unwrap(), script);
    let failing = ScriptedReply::text("x").fail(ScriptedFailure::new(ErrorKind::Network).times(3));
    assert_eq!(
        serde_json::from_value::<ScriptedReply>(serde_json::to_value(&failing).unwrap()).unwrap(),
        failing
    );
}

#[test]
fn errors_name_file_line_and_key() {
    let cases = [
        (ScriptFormat::Toml, "[[reply]]\ntext = 3\n", Some(2), "reply[0].text"),
        (ScriptFormat::Toml, "[[reply]]\n\n[[reply.call]]\nnam = \"x\"\n", Some(4), "reply[0].call[0].nam"),
        (
            ScriptFormat::Toml,
            "[[reply]]\n[[reply.fail]]\nkind = \"tired\"\n",
            Some(3),
            "reply[0].fail[0].kind",
        ),
        (ScriptFormat::Toml, "[[reply]\n", Some(1), ""),
        (ScriptFormat::Json, "{\"replies\": [\n {\"text\": 3}]}", Some(2), "replies[0].text"),
        (ScriptFormat::Json, "{\"replies\": [\n {\"delay_ms\": -1}]}", Some(2), "replies[0].delay_ms"),
        (ScriptFormat::Json, "{\"replies\": []}\n}", Some(2), ""),
        (
            ScriptFormat::Json,
            "{\"replies\": [{\"calls\": [{\"name\": \"x\", \"arguments\": {\"a\": 1}, \"arguments_text\": \"{\"}]}]}",
            None,
            "replies[0].calls[0]",
        ),
    ];
    for (format, text, wanted_line, wanted_key) in cases {
        let error = Script::parse(text, format, "sew.script").unwrap_err();
        let shown = error.to_string();
        let ScriptError::Invalid { line, key, .. } = error else { panic!("{shown}") };
        assert_eq!((line, key.as_str()), (wanted_line, wanted_key), "{shown}");
        assert!(shown.starts_with("sew.script:"), "{shown}");
        assert!(!shown.contains('\n'), "{shown}");
    }
    let error = Script::load("there/is/none.toml").unwrap_err();
    assert!(error.to_string().contains("there/is/none.toml"), "{error}");
}

/// An agent with a tool `look`.
fn agent(script: Script) -> Agent {
    let look = Tool::builder("look", "Looks around.").unwrap();
    let look = look.effect(Effect::Pure).workspace(WorkspaceUse::None);
    let look = look.handler(|_, (): ()| async { Ok(ToolResult::ok("a seam")) });
    Agent::new("tests/tailor").policy(Arc::new(policy(script))).tools(Tools::new([look]).unwrap())
}

#[tokio::test]
async fn another_process_continues_with_the_reply_that_was_not_recorded() {
    let call = |id: &str, text: Option<&str>| ScriptedCall {
        id: Some(id.to_owned()),
        arguments_text: text.map(str::to_owned),
        ..ScriptedCall::new("look", serde_json::Map::new())
    };
    let again = |kind| ScriptedFailure {
        retry_after_ms: Some(0),
        said: Some("I l".into()),
        ..ScriptedFailure::new(kind)
    };
    let first =
        ScriptedReply::text("I look.").call(call("call_1", None)).call(call("call_2", Some("{\"torn\": ")));
    let first = first.fail(again(ErrorKind::CutStream).times(2)).fail(again(ErrorKind::Overloaded));
    let last = ScriptedReply::text("A seam.");
    let broken = last.clone().fail(ScriptedFailure::new(ErrorKind::Auth).times(9));

    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let script = Script { replies: vec![first.clone(), broken] };
    let driver = runtime.create(agent(script), SessionOptions::default()).await.unwrap();
    driver.start("What is there?").await.unwrap_err();
    let session = driver.session().id();
    driver.session().release().await.unwrap();

    // The first reply would fail more often than it is retried, and is not requested.
    let never = first.fail(ScriptedFailure::new(ErrorKind::Server).times(99));
    let script = Script { replies: vec![never, last] };
    let driver = runtime.open(session, agent(script), SessionOptions::default()).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "A seam.");
    let transcript = runtime.view(session).await.unwrap().transcript().unwrap();
    let said: Vec<_> = transcript.all().iter().map(|message| (message.role(), message.turn)).collect();
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    // The retried answer was recorded once, and both of its calls have their results.
    assert_eq!(said, [(user, 0), (model, 1), (model, 1), (model, 1), (tool, 1), (tool, 1), (model, 2)]);
}

#[test]
fn a_script_that_never_ends_is_refused() {
    let error = Script::load("/dev/zero").unwrap_err();
    assert!(matches!(error, ScriptError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("larger than 16 MiB"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    std::fs::write(&path, "seam").unwrap();
    assert_eq!(backstitch_providers::read_text(&path, 4).unwrap(), "seam");
    let error = backstitch_providers::read_text(&path, 3).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
    assert!(error.to_string().ends_with("larger than 3 bytes"), "{error}");
    std::fs::write(&path, b"\xff").unwrap();
    let error = backstitch_providers::read_text(&path, 4).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}
