//! Windows and prices that servers tell about their models.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use backstitch::agent_file::{AgentDefinition, BuildOptions};
use backstitch::ports::BoxFuture;
use backstitch::prelude::*;
use backstitch::providers::{HttpRequest, HttpResponse, Transport, TransportError};
use backstitch::{Price, SessionOptions};
use serde_json::{Value, json};

/// The answer to one request.
enum Reply {
    Json(Value),
    /// A status, further lines of the head, and a body.
    Plain(&'static str, String, &'static str),
    /// Bytes until the client has enough.
    Endless,
    /// Nothing, and the connection stays open.
    Silence,
    /// The end of the connection.
    Hangup,
}

fn missing() -> Reply {
    Reply::Plain("404 Not Found", String::new(), r#"{"error": "not found"}"#)
}

/// A server on loopback.
struct Server {
    /// Its base URL.
    url: String,
    /// The requests: method and path, the head, and the body.
    seen: Arc<Mutex<Vec<(String, String, String)>>>,
}

impl Server {
    /// Answers each request by its method, its path and its body.
    fn new(answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<(String, String, String)>>> = Arc::default();
        let (log, answer) = (seen.clone(), Arc::new(answer));
        // The threads end with the test.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                std::thread::spawn(move || {
                    let (head, body) = read_request(&mut stream)?;
                    let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
                    log.lock().unwrap().push((line.clone(), head, body.clone()));
                    write_reply(&mut stream, answer(&line, &body))
                });
            }
        });
        Self { url, seen }
    }

    /// Answers one question, and no other.
    fn answering(line: &'static str, answer: Value) -> Self {
        Self::new(move |asked, _| if asked == line { Reply::Json(answer.clone()) } else { missing() })
    }

    /// The methods and paths so far.
    fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(line, _, _)| line.clone()).collect()
    }

    /// An agent whose provider is this server, with further lines before and in the definition of the provider.
    fn agent(&self, more: &str, of_provider: &str) -> AgentDefinition {
        let text = format!(
            "model = 'home:m'\ntools = 'none'\n{more}\n\
             [[provider]]\nname = 'home'\nbase_url = '{}'\nkey = 'HOME_KEY'\n\
             headers = {{ X-Team = 'tailors' }}\n{of_provider}\n",
            self.url
        );
        AgentDefinition::from_toml(&text).unwrap()
    }

    /// The agent after its server was asked.
    async fn asked(&self) -> AgentDefinition {
        let mut agent = self.agent("", "");
        agent.fill_served_models(&options()).await;
        agent
    }
}

fn options() -> BuildOptions<'static> {
    let key = |name: &str| (name == "HOME_KEY").then(|| "sk-home".to_owned());
    BuildOptions { key: Box::new(key), transport: None }
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}

fn write_reply(stream: &mut TcpStream, reply: Reply) -> Option<()> {
    let (status, lines, body) = match reply {
        Reply::Json(value) => ("200 OK", String::new(), value.to_string()),
        Reply::Plain(status, lines, body) => (status, lines, body.to_owned()),
        Reply::Endless => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"data\": [")
                .ok()?;
            loop {
                stream.write_all(&[b'0', b','].repeat(32 * 1024)).ok()?;
            }
        }
        Reply::Silence => {
            // Ends when the client gives up.
            let _ = stream.read(&mut [0; 1]);
            return None;
        }
        Reply::Hangup => return None,
    };
    let head = format!("HTTP/1.1 {status}\r\n{lines}content-type: application/json\r\nconnection: close\r\n");
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).ok()
}

const PRICING: &str =
    r#"{"prompt": "0.00000125", "completion": "0.00001", "input_cache_read": "0.000000125"}"#;

/// A list as OpenRouter returns it.
fn priced_list() -> Value {
    let pricing: Value = serde_json::from_str(PRICING).unwrap();
    json!({"data": [{"id": "m", "context_length": 40_960, "pricing": pricing}]})
}

#[tokio::test]
async fn each_kind_of_server_tells_its_window() {
    let entry =
        |key: &str| json!({"object": "list", "data": [{"id": "x", key: 1_234}, {"id": "m", key: 40_960}]});
    let settings = json!({"default_generation_settings": {"n_ctx": 40_960}, "total_slots": 1});
    let shown = json!({"model_info": {"qwen3.context_length": 262_144}, "parameters": "num_ctx    40960"});
    let loaded = json!({"id": "m", "loaded_context_length": 40_960, "max_context_length": 131_072});
    for (line, answer) in [
        ("GET /v1/models", entry("context_length")),
        ("GET /v1/models", entry("max_model_len")),
        ("GET /v1/models", entry("context_window")),
        ("GET /v1/models", entry("max_context_length")),
        ("GET /props", settings),
        ("POST /api/show", shown),
        ("GET /api/v0/models", json!({"data": [loaded]})),
    ] {
        let server = Server::answering(line, answer);
        let agent = server.asked().await;
        assert_eq!(agent.window, Some(40_960), "{line}");
        assert!(agent.prices.is_empty(), "{line}");
        assert_eq!(server.lines().last().map(String::as_str), Some(line), "it asks no more than it needs");
        for (line, head, body) in server.seen.lock().unwrap().iter() {
            let head = head.to_lowercase();
            assert!(
                head.contains("authorization: bearer sk-home") && head.contains("x-team: tailors"),
                "{head}"
            );
            assert_eq!(body, if line.starts_with("POST") { r#"{"model":"m"}"# } else { "" });
        }
        // It is remembered while the process runs.
        let asked = server.lines().len();
        assert_eq!(server.asked().await.window, Some(40_960));
        assert_eq!(server.lines().len(), asked, "{line}");
    }
}

#[tokio::test]
async fn a_price_is_read_and_counts_and_the_session_needs_no_list_again() {
    let told = Arc::new(Mutex::new(true));
    let tells = told.clone();
    let server = Server::new(move |line, _| match line {
        "GET /v1/models" if *tells.lock().unwrap() => Reply::Json(priced_list()),
        "POST /v1/chat/completions" => Reply::Json(json!({
            "choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250},
        })),
        _ => missing(),
    });
    let mut agent = server.agent("[budget]\nmoney = 0.000001", "");
    let unknown = agent.build_with(options()).unwrap_err().to_string();
    assert!(unknown.contains("the price of home:m is unknown"), "{unknown}");
    let notes = agent.fill_served_models(&options()).await;
    assert_eq!(
        notes,
        [format!(
            "home:m has a window of 40960 tokens, and prices of 1.25 and 10 for a million tokens of input and output, says {}",
            server.url
        )]
    );
    let built = agent.build_with(options()).unwrap().agent;
    let price = Price { input: 1_250_000, cache_read: Some(125_000), cache_write: None, output: 10_000_000 };
    assert_eq!(built.prices.0["home:m"], price);
    assert_eq!(built.window, Some(40_960));

    // The budget ends before the first request.
    let runtime = Runtime::in_memory();
    let run = runtime.start(&built, "Mend").await.unwrap();
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Budget, .. }), "{ended:?}");
    assert_eq!(server.lines(), ["GET /v1/models"]);

    // Everything else follows from the recorded definition: the server no longer describes its model.
    *told.lock().unwrap() = false;
    let view = runtime.view(run.session()).await.unwrap();
    let recorded = AgentDefinition::from_recorded(&view.created().agent).unwrap();
    assert_eq!(recorded, agent);
    let again = recorded.build_with(options()).unwrap().agent;
    assert_eq!((again.window, &again.prices), (built.window, &built.prices));
    let more = Limits { money_micros: Some(100_000), ..Limits::default() };
    let more = ResumeOptions { budget: Some(more), ..ResumeOptions::default() };
    let run = runtime.resume_with(run.session(), &again, more, SessionOptions::default()).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
    let spent = runtime.view(run.session()).await.unwrap().ledger().charged();
    assert_eq!(spent.money_micros, 250 + 500);
    assert_eq!(server.lines(), ["GET /v1/models", "POST /v1/chat/completions"]);
}

#[tokio::test]
async fn what_a_definition_sets_is_not_replaced_and_nothing_is_asked_for_it() {
    let server = Server::answering("GET /v1/models", priced_list());
    let own = "window = 7_000\n[prices.'home:m']\ninput = 1\noutput = 2";
    for (more, of_provider) in [(own, ""), ("discover = false", ""), ("", "discover = false")] {
        let mut agent = server.agent(more, of_provider);
        let before = agent.clone();
        assert!(agent.fill_served_models(&options()).await.is_empty());
        assert_eq!(agent, before);
    }
    assert!(server.lines().is_empty());
    // Only the price is missing, so only lists are asked.
    let mut agent = server.agent("window = 7_000", "");
    agent.fill_served_models(&options()).await;
    assert_eq!((agent.window, agent.prices.len()), (Some(7_000), 1));
    assert_eq!(server.lines(), ["GET /v1/models"]);
}

#[tokio::test]
async fn the_providers_own_addresses_scripts_and_recordings_are_not_asked() {
    /// Reaches nobody, as a cassette.
    struct Recording;
    impl Transport for Recording {
        fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            panic!("nothing is sent")
        }
    }
    let server = Server::answering("GET /v1/models", priced_list());
    let mut agent = server.agent("", "");
    let options = BuildOptions { transport: Some(Arc::new(Recording)), ..options() };
    assert!(agent.fill_served_models(&options).await.is_empty());
    let mut own = AgentDefinition::from_toml("model = 'openai:unheard-of'").unwrap();
    let key = |_: &str| Some("sk".to_owned());
    let with_key = BuildOptions { key: Box::new(key), transport: Some(Arc::new(Recording)) };
    assert!(own.fill_served_models(&with_key).await.is_empty());
    assert!(server.lines().is_empty());
}

#[tokio::test]
async fn fallbacks_and_sub_agents_know_their_windows_too() {
    let server = Server::new(|line, _| match line {
        "GET /v1/models" => Reply::Json(json!({"data": [
            {"id": "m", "context_length": 40_960},
            {"id": "large", "context_length": 131_072},
            {"id": "small", "context_length": 8_192, "pricing": serde_json::from_str::<Value>(PRICING).unwrap()},
        ]})),
        _ => missing(),
    });
    let mut agent = server.agent(
        "[[fallback]]\non = ['length']\nmodel = 'home:large'\n\
         [[sub_agent]]\nname = 'helper'\ndescription = 'Looks.'\n\
         [sub_agent.agent]\nmodel = 'home:small'\ntools = 'none'\n",
        "",
    );
    assert_eq!(agent.fill_served_models(&options()).await.len(), 3);
    let helper = agent.sub_agents[0].agent.as_ref().unwrap();
    assert_eq!(
        (agent.window, agent.fallbacks[0].window, helper.window),
        (Some(40_960), Some(131_072), Some(8_192))
    );
    assert!(agent.prices.is_empty() && helper.prices.contains_key("home:small"));
    agent.build_with(options()).unwrap();
}

type Answer = Box<dyn Fn() -> Reply + Send + Sync>;

#[tokio::test]
async fn hostile_servers_tell_nothing_and_break_nothing() {
    let elsewhere = Server::answering("GET /v1/models", priced_list());
    let target = format!("location: {}/models\r\n", elsewhere.url);
    let entry = |window: Value| Reply::Json(json!({"data": [{"id": "m", "context_length": window}]}));
    let deep: &'static str = "[".repeat(100_000).leak();
    let answers: Vec<(&str, Answer)> = vec![
        ("window 0", Box::new(move || entry(json!(0)))),
        ("negative window", Box::new(move || entry(json!(-5)))),
        ("huge window", Box::new(move || entry(json!(u64::MAX)))),
        ("window in words", Box::new(move || entry(json!("plenty")))),
        ("endless", Box::new(|| Reply::Endless)),
        ("hangup", Box::new(|| Reply::Hangup)),
        ("silence", Box::new(|| Reply::Silence)),
        ("not JSON", Box::new(|| Reply::Plain("200 OK", String::new(), "<html>"))),
        ("deep JSON", Box::new(move || Reply::Plain("200 OK", String::new(), deep))),
        ("redirect", Box::new(move || Reply::Plain("307 Temporary Redirect", target.clone(), ""))),
        (
            "error",
            Box::new(|| {
                Reply::Plain("500 Oops", String::new(), r#"{"data": [{"id": "m", "context_length": 9999}]}"#)
            }),
        ),
        (
            "negative price",
            Box::new(|| {
                let pricing = json!({"prompt": "-1", "completion": "-1"});
                Reply::Json(json!({"data": [{"id": "m", "pricing": pricing}]}))
            }),
        ),
    ];
    for (what, answer) in answers {
        let server = Server::new(move |_, _| answer());
        let agent = server.asked().await;
        assert_eq!((agent.window, agent.prices.len()), (None, 0), "{what}");
        assert!(!server.lines().is_empty(), "{what}");
        agent.build_with(options()).unwrap();
    }
    assert!(elsewhere.lines().is_empty(), "the key is not sent to another server");
    // Nobody listens there.
    let mut gone = elsewhere.agent("", "");
    gone.providers[0].base_url = "http://127.0.0.1:1/v1".to_owned();
    assert!(gone.fill_served_models(&options()).await.is_empty());
}
