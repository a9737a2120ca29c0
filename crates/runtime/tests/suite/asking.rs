//! The requests that policies receive: messages, bytes of media, and a channel for deltas of the answer.

use std::sync::{Arc, Mutex};

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::journal::{Effect, Finish, RecordBody};
use backstitch_core::message::{Arguments, MediaPart, Modality, PolicyName};
use backstitch_core::ports::{
    BoxFuture, Delta, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo,
};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_repl::transcript::{
    RenderedTranscript, TranscriptCompression, TranscriptHistory, TranscriptStatistics,
};
use backstitch_runtime::{
    Agent, FunctionPolicy, LiveKind, Mission, Runtime, SessionOptions, SubAgent, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::{Map, Value, json};

/// An agent that decides by this function, and the requests that it received.
fn listening(
    decide: impl Fn(&PolicyRequest) -> PolicyAnswer + Send + Sync + 'static,
) -> (Agent, Arc<Mutex<Vec<PolicyRequest>>>) {
    let asked: Arc<Mutex<Vec<PolicyRequest>>> = Arc::default();
    let heard = asked.clone();
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question: PolicyRequest| {
        let answer = decide(&question);
        heard.lock().unwrap().push(question);
        async move { Ok(answer) }
    });
    (Agent::new("tests/tailor").policy(Arc::new(policy)).instructions("You sew."), asked)
}

#[tokio::test]
async fn media_of_missions_and_tools_reaches_the_policy_as_bytes() {
    let (agent, asked) = listening(|question| match question.turn {
        1 => PolicyAnswer::text("looking").call("draw", Arguments::from_object(serde_json::Map::new())),
        _ => PolicyAnswer::text("seen"),
    });
    let draw = Tool::builder("draw", "Draws.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    let draw = draw.handler(|_, (): ()| async {
        let (media, object) = MediaPart::held(Modality::Image, b"drawn".as_slice());
        Ok(ToolResult::ok("drawn").with_media((media.with_mime("image/png"), object)))
    });
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = agent.tools(Tools::new([draw]).unwrap());
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let mission = Mission::from("look").with_media(MediaPart::held(Modality::Image, b"given".as_slice()));
    driver.start(mission).await.unwrap().answer().unwrap();
    let held = |question: &PolicyRequest| {
        let mut held: Vec<_> = question.media.values().map(|bytes| bytes.to_vec()).collect();
        held.sort();
        held
    };
    {
        let asked = asked.lock().unwrap();
        assert_eq!(held(&asked[0]), [b"given".to_vec()]);
        assert_eq!(held(&asked[1]), [b"drawn".to_vec(), b"given".to_vec()]);
    }
    // Another process has nothing but the store.
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    driver.start("and now?").await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(held(&asked[2]), held(&asked[1]), "a follow-up shows the conversation, and its media");
    assert_eq!(asked[2].transcript.all().len(), asked[1].transcript.all().len() + 3);
}

/// An agent that answers with an image at first, and then with a text.
fn painter() -> (Agent, Arc<Mutex<Vec<PolicyRequest>>>) {
    listening(|question| match question.transcript.answers() {
        0 => PolicyAnswer::default().with_media(MediaPart::held(Modality::Image, b"drawn".as_slice())),
        _ => PolicyAnswer::text("seen"),
    })
}

fn bytes_of(question: &PolicyRequest) -> Vec<Vec<u8>> {
    question.media.values().map(|bytes| bytes.to_vec()).collect()
}

#[tokio::test]
async fn media_of_answers_is_stored_and_shown_again() {
    let (agent, asked) = painter();
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let answer = driver.start("draw").await.unwrap().answer().unwrap();
    let [media] = &answer.media[..] else { panic!("{:?}", answer.media) };
    assert_eq!(answer.text, media.in_words(), "an answer of media alone has a name");
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    // Another process has nothing but the store.
    assert_eq!(runtime.media(media).await.unwrap().as_deref(), Some(&b"drawn"[..]));
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    let answer = driver.start("and now?").await.unwrap().answer().unwrap();
    assert_eq!((answer.text.as_str(), answer.media.len()), ("seen", 0));
    let elsewhere = MediaPart::new(Modality::Image, "https://example.org/a.png".parse().unwrap());
    assert_eq!(runtime.media(&elsewhere).await.unwrap(), None);
    assert_eq!(bytes_of(&asked.lock().unwrap()[1]), [b"drawn"]);
}

#[tokio::test]
async fn media_of_a_sub_agent_reaches_its_caller() {
    let painter = SubAgent::new("painter", "Draws.", painter().0).unwrap();
    let (agent, asked) = listening(|question| match question.turn {
        1 => {
            let mission = Map::from_iter([("mission".to_owned(), json!("draw"))]);
            PolicyAnswer::default().call("painter", Arguments::from_object(mission))
        }
        _ => PolicyAnswer::text("seen"),
    });
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent.tools([painter]), SessionOptions::default()).await.unwrap();
    driver.start("have it drawn").await.unwrap().answer().unwrap();
    assert_eq!(bytes_of(&asked.lock().unwrap()[1]), [b"drawn"]);
}

#[tokio::test]
async fn deltas_of_an_answer_are_published_with_session_and_turn() {
    let (agent, _) = listening(|question| {
        question.deltas.emit(Delta::Text("do".into()));
        question.deltas.emit(Delta::Text("ne".into()));
        PolicyAnswer::text("done")
    });
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let mut told = Vec::new();
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let mut events = driver.events();
    driver.start("sew").await.unwrap();
    while let Some(event) = events.ready().await.unwrap() {
        told.extend(event.live().cloned());
    }
    let texts = told.iter().map(|event| match &event.kind {
        LiveKind::Text { turn: 1, text, .. } => text.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["do", "ne"]);
    assert!(told.iter().all(|event| event.session == driver.session().id()));
}

/// Shows only the last message.
#[derive(Debug)]
struct Last;

impl TranscriptCompression for Last {
    fn name(&self) -> &'static str {
        "last"
    }

    fn configuration(&self) -> Value {
        json!("last")
    }

    fn renderer(&self) -> String {
        "last/1".to_owned()
    }

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        let messages = history.messages().next_back().cloned().into_iter().collect();
        RenderedTranscript { messages, statistics: TranscriptStatistics::default() }
    }
}

/// A policy whose requests depart from the transcript.
struct Departing;

impl Policy for Departing {
    fn name(&self) -> &PolicyName {
        static NAME: std::sync::LazyLock<PolicyName> =
            std::sync::LazyLock::new(|| PolicyName::new("departing").unwrap());
        &NAME
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        let body = question.shown.iter().map(|message| message.content()).collect::<Vec<_>>().join("\n");
        RequestInfo {
            renderer: question.renderer.clone(),
            departures: vec!["a hat is left out".into()],
            body: Some(body.into()),
            ..RequestInfo::default()
        }
    }

    fn decide(
        &self,
        _: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move { Ok(PolicyAnswer::text(format!("I saw: {}", described.body.unwrap()))) })
    }
}

#[tokio::test]
async fn what_is_shown_is_what_the_agent_renders_and_departures_are_recorded() {
    let agent = Agent::new("tests/departing").policy(Arc::new(Departing)).instructions("You sew.");
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent.compression(Arc::new(Last)), SessionOptions::default()).await.unwrap();
    let answered = driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "I saw: sew");
    let mut notes = Vec::new();
    for record in runtime.records(driver.session().id()).await.unwrap() {
        match record.body {
            RecordBody::RequestStarted(request) => assert_eq!(request.renderer.as_deref(), Some("last/1")),
            RecordBody::Note(note) => notes.push(note),
            _ => {}
        }
    }
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].data.inline().unwrap()["departures"], json!(["a hat is left out"]));
}

#[tokio::test]
async fn an_answer_that_claims_to_have_cost_all_there_is_is_recorded_and_spends_the_budget() {
    let most = Amounts { input_tokens: u64::MAX, millis: u64::MAX, ..Amounts::ZERO };
    let (agent, _) = listening(move |_| PolicyAnswer { usage: most, ..PolicyAnswer::text("done") });
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = agent.budget(Limits { calls: Some(5), ..Limits::default() });
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap().answer().unwrap();
    let spent = runtime.view(driver.session().id()).await.unwrap().ledger().committed();
    assert_eq!((spent.input_tokens, spent.millis), (u64::MAX, u64::MAX));
}

#[tokio::test]
async fn a_call_that_the_token_limit_cut_off_does_not_run_and_the_policy_sees_why() {
    let (agent, asked) = listening(|question| match question.turn {
        1 => {
            let mut answer = PolicyAnswer { finish: Finish::Length, ..PolicyAnswer::text("sewing") };
            answer = answer.call("sew", Arguments::none()).call("sew", Arguments::none());
            answer.calls[1].cut_off = true;
            answer
        }
        _ => PolicyAnswer::text("sewn"),
    });
    let runs: Arc<Mutex<u32>> = Arc::default();
    let counted = runs.clone();
    let sew = Tool::builder("sew", "Sews.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    let sew = sew.handler(move |_, (): ()| {
        *counted.lock().unwrap() += 1;
        async { Ok(ToolResult::ok("sewn")) }
    });
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = agent.tools(Tools::new([sew]).unwrap());
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(*runs.lock().unwrap(), 1);
    let asked = asked.lock().unwrap();
    let results = asked[1].shown.iter().filter_map(|message| message.message.option_result());
    let results: Vec<_> = results.map(|result| result.error_message.clone().unwrap_or_default()).collect();
    // Results are in the order in which they were recorded.
    let refused = results.iter().filter(|told| told.contains("token limit")).count();
    assert_eq!((results.len(), refused), (2, 1), "{results:?}");
}

#[tokio::test]
async fn why_an_answer_ended_is_recorded_with_it_and_an_unknown_reason_is_noted() {
    let (agent, _) = listening(|question| match question.turn {
        1 => PolicyAnswer { finish: Finish::Other("brand_new".into()), ..PolicyAnswer::text("one") },
        _ => PolicyAnswer::text("two"),
    });
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap();
    let (mut finishes, mut notes) = (Vec::new(), Vec::new());
    for record in runtime.records(driver.session().id()).await.unwrap() {
        match record.body {
            RecordBody::MessageAppended(message) => {
                finishes.extend(message.provider.as_ref().and_then(|of| of.finish.clone()))
            }
            RecordBody::Note(note) => notes.push(note),
            _ => {}
        }
    }
    assert_eq!(finishes, [Finish::Other("brand_new".into())]);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].text.contains("brand_new"), "{}", notes[0].text);
}
