//! Models in agent files: switching between providers, options of requests, named providers and keys.

use std::sync::{Arc, Mutex};

use backstitch::agent_file::{
    AgentDefinition, AgentFileError, BuildOptions, ModelName, NAMED_PROVIDERS, ProviderDefinition,
    ProviderFormat,
};
use backstitch::message::{MediaPart, Modality};
use backstitch::ports::BoxFuture;
use backstitch::providers::{HttpRequest, HttpResponse, Provider, ThinkingBudget, Transport, TransportError};
use backstitch::{Mission, Runtime, SessionOptions};

/// A transport that keeps the requests and reaches no server.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<HttpRequest>>>);

impl Transport for Kept {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.0.lock().unwrap().push(request);
        Box::pin(async { Err(TransportError::broken("there is no server")) })
    }
}

fn model(provider: &str) -> ModelName {
    format!("{provider}:needle-1").parse().unwrap()
}

/// The only request of an agent with these keys in its environment.
fn request_of(definition: &AgentDefinition, keys: &[&str]) -> Result<HttpRequest, AgentFileError> {
    let kept = Kept::default();
    let key = |name: &str| keys.contains(&name).then(|| format!("the key of {name}"));
    let options = BuildOptions { key: Box::new(key), transport: Some(Arc::new(kept.clone())) };
    let agent = definition.build_with(options)?.agent;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let driver = Runtime::in_memory().create(agent, SessionOptions::default()).await.unwrap();
        driver.start("Sew.").await.unwrap_err();
    });
    let request = kept.0.lock().unwrap().remove(0);
    Ok(request)
}

fn body(request: &HttpRequest) -> serde_json::Value {
    serde_json::from_str(&request.body.text()).unwrap()
}

#[test]
fn a_session_continues_with_any_other_provider_with_and_without_thinking() {
    let keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];
    let options = ["", "thinking = 1500\n", "thinking = 'adaptive'\neffort = 'high'\n", "effort = 'max'\n"];
    for from in Provider::ALL {
        for to in Provider::ALL {
            for option in options {
                let text = format!(
                    "model = '{from}:needle-1'\ntools = []\n[retry]\nretries = 0\n[request]\n{option}"
                );
                // Not every provider has every option.
                let Ok(mut definition) = AgentDefinition::from_toml(&text) else { continue };
                let dropped = definition.switch_model(model(to.as_str())).unwrap();
                let names: Vec<_> = dropped.iter().map(|refused| refused.option).collect();
                let what = format!("{from} to {to} with {option:?}: {names:?}");
                let takes_budgets = matches!(to, Provider::Anthropic | Provider::Gemini);
                assert_eq!(names.contains(&"thinking"), option.contains("1500") && !takes_budgets, "{what}");
                assert!(from != to || names.is_empty(), "{what}: nothing changes");
                // It can be built, and from its recorded form too.
                let recorded = AgentDefinition::from_recorded(&definition.to_recorded()).unwrap();
                assert_eq!(recorded, definition, "{what}");
                let sent = body(&request_of(&recorded, &keys).unwrap());
                assert!(sent.is_object(), "{what}");
            }
        }
    }
}

#[test]
fn a_file_that_names_a_provider_is_refused_if_that_cannot_honour_an_option() {
    for (options, key) in [
        ("model = 'openai:m'\n[request]\nthinking = 1500", "request.thinking"),
        ("model = 'openai:m'\n[request]\neffort = 'banana'", "request.effort"),
        ("model = 'openai-chat:m'\n[request]\neffort = 'banana'", "request.effort"),
        ("model = 'anthropic:m'\n[request]\neffort = 'banana'", "request.effort"),
        ("model = 'gemini:m'\n[request]\neffort = 'banana'", "request.effort"),
        ("model = 'openai:m'\n[request]\nseed = 7", "request.seed"),
        ("model = 'anthropic:m'\n[request]\nverbosity = 'low'", "request.verbosity"),
        ("model = 'gemini:m'\n[request]\nparallel_tool_calls = false", "request.parallel_tool_calls"),
        ("model = 'openai-chat:m'\n[request]\ntemperature = 3", "request.temperature"),
        ("model = 'openai-chat:m'\n[request]\nbody = { messages = [] }", "request.body"),
    ] {
        let error = AgentDefinition::from_toml(options).unwrap_err().to_string();
        assert!(error.contains(key), "{options}: {error}");
    }
}

#[test]
fn an_engine_takes_no_settings_of_requests() {
    for (setting, key) in [
        ("[[fallback]]\non = ['overload']\nmodel = 'openai:m'", "fallback"),
        ("max_repeats = 3", "max_repeats"),
        ("[request]\neffort = 'high'", "request"),
        ("[retry]\nretries = 1", "retry"),
    ] {
        let error = AgentDefinition::from_toml(&format!("engine = 'claude-code'\n{setting}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(key) && error.contains("does not apply"), "{setting}: {error}");
    }
}

#[test]
fn options_of_requests_are_sent() {
    let text = "model = 'openai-chat:m'\nbase_url = 'http://127.0.0.1:1/v1'\ntools = ['read_file']\n[retry]\nretries = 0\n[request]\n\
                temperature = 0.5\ntop_p = 0.9\nseed = 7\nstop = ['END']\ntool_choice = 'required'\n\
                parallel_tool_calls = false\nverbosity = 'low'\nbody = { top_k = 40 }\n";
    let sent = body(&request_of(&AgentDefinition::from_toml(text).unwrap(), &[]).unwrap());
    assert_eq!((&sent["temperature"], &sent["top_p"], &sent["seed"]), (&0.5.into(), &0.9.into(), &7.into()));
    assert_eq!((&sent["stop"][0], &sent["tool_choice"]), (&"END".into(), &"required".into()));
    assert_eq!((&sent["parallel_tool_calls"], &sent["verbosity"]), (&false.into(), &"low".into()));
    assert_eq!(sent["top_k"], 40);
}

#[test]
fn named_providers_have_their_own_address_and_key() {
    for named in &NAMED_PROVIDERS {
        let text = format!("model = '{}:some/model'\ntools = []\n[retry]\nretries = 0", named.name);
        let definition = AgentDefinition::from_toml(&text).unwrap();
        // The key of OpenAI is not for them.
        let keys: Vec<_> =
            ["OPENAI_API_KEY"].into_iter().chain(named.key_variables.iter().copied()).collect();
        let request = request_of(&definition, &keys).unwrap();
        assert_eq!(request.url, format!("{}/chat/completions", named.base_url));
        assert_eq!(body(&request)["model"], "some/model");
        assert_eq!(request.secret.is_some(), !named.key_variables.is_empty(), "{}", named.name);
        match request_of(&definition, &["OPENAI_API_KEY"]) {
            Ok(request) => assert!(named.key_variables.is_empty() && request.secret.is_none()),
            Err(error) => assert!(error.to_string().contains(named.key_variables[0]), "{error}"),
        }
    }
}

#[test]
fn a_price_of_a_named_provider_counts() {
    let text =
        "model = 'deepseek:m'\n[budget]\nmoney = 1.0\n[prices.'deepseek:m']\ninput = 0.5\noutput = 2.0";
    let key = |_: &str| Some("a key of deepseek".to_owned());
    let options = BuildOptions { key: Box::new(key), transport: Some(Arc::new(Kept::default())) };
    let agent = AgentDefinition::from_toml(text).unwrap().build_with(options).unwrap().agent;
    // Requests are recorded by the name of the provider, which prices are found by.
    assert_eq!(agent.policy.model().unwrap().provider, "deepseek");
    assert_eq!(agent.prices.0["deepseek:m"].input, 500_000);
}

#[test]
fn a_model_in_the_own_network_needs_no_key() {
    let at = |url: &str| {
        AgentDefinition::from_toml(&format!("model = 'openai-chat:m'\nbase_url = '{url}'")).unwrap()
    };
    let build = |url: &str| {
        let options = BuildOptions { key: Box::new(|_| None), transport: Some(Arc::new(Kept::default())) };
        at(url).build_with(options).map(|_| ())
    };
    build("http://192.168.1.20:8080/v1").unwrap();
    build("http://gpu-box:8080/v1").unwrap();
    assert!(matches!(build("https://example.org/v1"), Err(AgentFileError::MissingKey { .. })));
}

#[test]
fn a_definition_keeps_what_it_is_recorded_with() {
    let plain = AgentDefinition::from_toml("model = 'openai:m'").unwrap().to_recorded();
    assert_eq!(plain.get("request"), None, "defaults are not recorded: {plain}");
    let set =
        AgentDefinition::from_toml("model = 'openai:m'\n[request]\nsummary = false\neffort = 'low'").unwrap();
    assert_eq!(set.to_recorded()["request"]["summary"], false);
    assert_eq!(set.request.thinking, ThinkingBudget::Default);
}

/// A definition with a provider of its own.
fn own_provider(format: &str, more: &str) -> AgentDefinition {
    let text = format!(
        "model = 'work:m'\ntools = []\n[retry]\nretries = 0\n{more}\n[[provider]]\nname = 'work'\n\
         base_url = 'https://llm.example.com'\nkey = 'WORK_KEY'\nformat = '{format}'\n\
         headers = {{ X-Team = 'tailors', X-Gate = 'Bearer ${{GATE}}' }}\n"
    );
    AgentDefinition::from_toml(&text).unwrap()
}

fn header(request: &HttpRequest, name: &str) -> Option<String> {
    let found = request.custom.iter().find(|header| header.name() == name);
    found.map(|header| header.expose_value().to_owned())
}

#[test]
fn an_own_provider_speaks_each_format() {
    for (format, path) in [
        ("openai-chat", "/chat/completions"),
        ("openai-responses", "/responses"),
        ("anthropic", "/v1/messages"),
        ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse"),
    ] {
        let definition = own_provider(format, "");
        let recorded = AgentDefinition::from_recorded(&definition.to_recorded()).unwrap();
        assert_eq!(recorded, definition);
        let request = request_of(&recorded, &["WORK_KEY", "GATE", "OPENAI_API_KEY"]).unwrap();
        assert_eq!(request.url, format!("https://llm.example.com{path}"));
        assert_eq!(header(&request, "x-team").unwrap(), "tailors");
        assert_eq!(header(&request, "x-gate").unwrap(), "Bearer the key of GATE");
        assert!(request.secret.is_some() && !format!("{request:?}").contains("the key of"), "{request:?}");
        let missing = request_of(&definition, &["GATE", "OPENAI_API_KEY"]).unwrap_err().to_string();
        assert!(missing.contains("work needs a key: set WORK_KEY"), "{missing}");
        let missing = request_of(&definition, &["WORK_KEY"]).unwrap_err().to_string();
        assert!(missing.contains("GATE is not set"), "{missing}");
    }
}

#[test]
fn headers_of_an_agent_replace_those_of_its_provider_and_stay_with_it() {
    let more = "[request]\nheaders = { X-Team = 'cutters', Authorization = 'Bearer ${TOKEN}' }";
    let mut definition = own_provider("openai-chat", more);
    // A gateway that authorises by a header of its own needs no key.
    let request = request_of(&definition, &["GATE", "TOKEN"]).unwrap();
    assert!(request.secret.is_none());
    let teams: Vec<_> = request.custom.iter().filter(|header| header.name() == "x-team").collect();
    assert_eq!(teams.last().unwrap().expose_value(), "cutters");
    let dropped = definition.switch_model(model("anthropic")).unwrap();
    assert!(dropped.iter().any(|refused| refused.option == "headers"));
    assert!(request_of(&definition, &["ANTHROPIC_API_KEY"]).unwrap().custom.is_empty());
}

#[test]
fn a_built_in_provider_is_replaced_on_purpose_only() {
    let text = |replace: &str| {
        format!(
            "model = 'ollama:m'\ntools = []\n[retry]\nretries = 0\n[[provider]]\nname = 'ollama'\n\
             base_url = 'http://gpu-box:11434/v1'\n{replace}"
        )
    };
    let error = AgentDefinition::from_toml(&text("")).unwrap_err().to_string();
    assert!(error.contains("built in") && error.contains("replace = true"), "{error}");
    let definition = AgentDefinition::from_toml(&text("replace = true")).unwrap();
    let request = request_of(&definition, &[]).unwrap();
    assert_eq!(request.url, "http://gpu-box:11434/v1/chat/completions");
}

#[test]
fn an_own_provider_is_a_value_in_rust() {
    let mut work = ProviderDefinition::new("work", "http://127.0.0.1:1/v1");
    work.format = ProviderFormat::Anthropic;
    work.headers.insert("X-Team".to_owned(), "tailors".to_owned());
    let identity = work.model("large").unwrap().model().unwrap();
    assert_eq!((identity.provider.as_str(), identity.model.as_str()), ("work", "large"));
    assert!(ProviderDefinition::new("openai", "http://127.0.0.1:1").model("m").is_err());
    assert!(work.with_key("sk-a-key-itself").model("m").is_err());
}

#[tokio::test]
async fn media_that_a_provider_does_not_take_is_refused_or_described() {
    for (setting, kind, sent) in [("", "unsupported_media", 0), ("describe_media = true", "network", 1)] {
        let file = format!(
            "model = 'anthropic:needle-1'\ntools = 'none'\n[retry]\nretries = 0\n[request]\n{setting}\n"
        );
        let kept = Kept::default();
        let key = |_: &str| Some("sk-hunter2".to_owned());
        let options = BuildOptions { key: Box::new(key), transport: Some(Arc::new(kept.clone())) };
        let built = AgentDefinition::from_toml(&file).unwrap().build_with(options).unwrap();
        let driver = Runtime::in_memory().create(built.agent, SessionOptions::default()).await.unwrap();
        let film = MediaPart::new(Modality::Video, "https://example.org/film.mp4".parse().unwrap());
        let error = driver.start(Mission::new(vec![film.into()])).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{setting}: {error}");
        let requests = kept.0.lock().unwrap();
        assert_eq!(requests.len(), sent, "{setting}");
        let is_described =
            |request: &HttpRequest| request.body.text().contains("[video at https://example.org/film.mp4]");
        assert!(requests.iter().all(is_described), "{setting}");
    }
}
