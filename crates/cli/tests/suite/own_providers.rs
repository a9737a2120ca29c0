//! Providers that users define: their addresses, keys and headers.

use serde_json::{Value, json};

use crate::model::{MODEL, Model, PROVIDERS, Said};
use crate::stage::{Stage, as_slices, text_of};

const WORK: &str = "sk-work-hunter2-0123456789";
const HOME: &str = "sk-home-hunter2-0123456789";
const GATE: &str = "gate-hunter2-0123456789";

/// Writes the settings of the user.
fn configured(stage: &Stage, text: &str) {
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    std::fs::write(stage.path("config/backstitch/config.toml"), text).unwrap();
}

fn with_keys() -> Stage {
    Stage::new().with_variable("WORK_KEY", WORK).with_variable("HOME_KEY", HOME).with_variable("GATE", GATE)
}

/// Settings with two providers of different formats, each with a key.
fn two_providers(work: &Model, home: &Model) -> String {
    format!(
        "model = 'work:{MODEL}'\n\
         [[provider]]\nname = 'work'\nbase_url = '{}'\nkey = 'WORK_KEY'\n\
         headers = {{ Helicone-Auth = 'Bearer ${{GATE}}', X-Team = 'tailors' }}\n\
         [[provider]]\nname = 'home'\nbase_url = '{}'\nkey = 'HOME_KEY'\nformat = 'anthropic'\n\
         [[provider]]\nname = 'unused'\nbase_url = 'https://unused.example.com'\nkey = 'UNUSED'\n",
        work.url, home.url
    )
}

/// The definition that the latest session was recorded with.
fn recorded(stage: &Stage) -> Value {
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    serde_json::from_str::<Value>(log.lines().next().unwrap()).unwrap()["data"]["agent"].clone()
}

fn is_clean(stage: &Stage) {
    let stored = stage.stored_bytes();
    assert!(!stored.windows(7).any(|bytes| bytes == b"hunter2"), "a secret is in the store");
}

#[test]
fn several_keys_work_side_by_side_and_in_sub_agents() {
    let stage = with_keys();
    let calls = Said::Call("I ask.", "helper", json!({"mission": "Look"}));
    let work = Model::new("openai-chat", [calls, Said::Text("Done."), Said::Text("Again.")]);
    let home = Model::new("anthropic", [Said::Text("Looked."), Said::Text("At home.")]);
    configured(&stage, &two_providers(&work, &home));
    let agent = stage.write(
        "agent.toml",
        &format!(
            "tools = 'none'\n[[sub_agent]]\nname = 'helper'\ndescription = 'Looks.'\n\
             [sub_agent.agent]\nmodel = 'home:{MODEL}'\ntools = 'none'\n"
        ),
    );
    let ran = stage.run(&["run", "Mend", "--agent", &agent]);
    let session = ran.errors.split_once("session ").unwrap().1[..36].to_owned();
    assert_eq!(ran.worked_quietly(), "Done.\n");
    for asked in work.asked() {
        let head = asked.head.to_lowercase();
        assert!(head.contains(&format!("authorization: bearer {WORK}")), "{head}");
        assert!(head.contains(&format!("helicone-auth: bearer {GATE}")), "{head}");
        assert!(head.contains("x-team: tailors") && !head.contains(HOME), "{head}");
    }
    for asked in home.asked() {
        let head = asked.head.to_lowercase();
        assert!(head.contains(&format!("x-api-key: {HOME}")), "{head}");
        assert!(!head.contains(WORK) && !head.contains(GATE), "{head}");
    }
    let names: Vec<_> = recorded(&stage)["provider"].as_array().unwrap().clone();
    let names: Vec<_> = names.iter().map(|provider| provider["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["work", "home"], "only what is used is recorded");
    let log = stage.run(&["log", "--all"]).worked_quietly();
    assert!(log.contains(&format!("request to work:{MODEL}")), "{log}");
    is_clean(&stage);

    // The session knows its providers.
    configured(&stage, "");
    assert_eq!(stage.run(&["ask", &session, "More"]).worked_quietly(), "Again.\n");
    let home_model = format!("home:{MODEL}");
    assert_eq!(stage.run(&["ask", &session, "More", "--model", &home_model]).worked_quietly(), "At home.\n");
}

#[test]
fn a_session_continues_with_a_provider_of_the_settings() {
    let stage = with_keys();
    let work = Model::new("openai-chat", [Said::Text("Done.")]);
    let home = Model::new("anthropic", [Said::Text("At home.")]);
    stage.run(&as_slices(&Stage::asking("openai-chat", &work, &[]))).worked_quietly();
    configured(&stage, &two_providers(&work, &home));
    let session = stage.session();
    let model = format!("home:{MODEL}");
    assert_eq!(stage.run(&["ask", &session, "More", "--model", &model]).worked_quietly(), "At home.\n");
    assert!(home.asked()[0].head.contains(HOME));
    let errors = stage.run(&["ask", &session, "More", "--model", "hom:x"]).called_wrongly();
    assert!(errors.contains("there is no provider \"hom\""), "{errors}");
}

#[test]
fn secrets_of_headers_are_hidden_from_commands_errors_and_answers() {
    let stage = with_keys();
    let look = Said::Call("I look.", "shell", json!({"command": "env | grep -c hunte[r]2; true"}));
    let echo = json!({"error": {"message": format!("no such team for {GATE} with {WORK}")}}).to_string();
    let work = Model::new("openai-chat", [look, Said::Refused("400 Bad Request", echo)]);
    let agent = stage.write(
        "agent.toml",
        &format!(
            "model = 'work:{MODEL}'\ntools = ['shell']\n[request]\nheaders = {{ X-Gate-Token = '${{GATE}}' }}\n\
             [[provider]]\nname = 'work'\nbase_url = '{}'\nkey = 'WORK_KEY'\n[retry]\nretries = 0\n",
            work.url
        ),
    );
    let ran = stage.run(&["run", "Mend", "--agent", &agent]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.errors.contains("no such team for [secret] with [secret]"), "{}", ran.errors);
    assert!(!ran.errors.contains("hunter2") && !ran.output.contains("hunter2"), "{}", ran.errors);
    let asked = work.asked();
    assert!(asked[0].head.contains(GATE) && asked[0].head.contains(WORK), "{}", asked[0].head);
    // HOME_KEY is a variable like any other here; those of the agent's provider are gone.
    let result = &asked[1].body;
    assert!(result.contains("\\\"stdout\\\":\\\"1\\\\n\\\""), "{result}");
    is_clean(&stage);
}

#[test]
fn a_project_cannot_replace_a_provider_of_the_user_and_is_trusted_first() {
    let stage = with_keys();
    let work = Model::new("openai-chat", [Said::Text("Done.")]);
    let other = Model::new("openai-chat", [Said::Text("Thanks.")]);
    configured(
        &stage,
        &format!("[[provider]]\nname = 'work'\nbase_url = '{}'\nkey = 'WORK_KEY'\n", work.url),
    );
    let project = format!(
        "model = 'work:{MODEL}'\n[[provider]]\nname = 'work'\nbase_url = '{}'\nkey = 'WORK_KEY'\n",
        other.url
    );
    std::fs::write(stage.path("files").join("backstitch.toml"), project).unwrap();
    let errors = stage.run(&["run", "Mend"]).called_wrongly();
    assert!(errors.contains("code: not_trusted"), "{errors}");
    assert_eq!(stage.run(&["run", "Mend", "--trust"]).worked_quietly(), "Done.\n");
    assert!(other.asked().is_empty());
}

#[test]
fn the_provider_of_an_imported_session_gets_no_key_before_it_is_chosen() {
    let other = with_keys();
    let work = Model::new("openai-chat", [Said::Text("Done."), Said::Text("Again.")]);
    let provider = format!("[[provider]]\nname = 'work'\nbase_url = '{}'\nkey = 'WORK_KEY'\n", work.url);
    configured(&other, &format!("model = 'work:{MODEL}'\n{provider}"));
    other.run(&["run", "Mend"]).worked_quietly();
    let session = other.session();
    let bundle = text_of(&other.path("it.bundle"));
    other.run(&["export", &session, "--bundle", &bundle]).worked_quietly();

    let stage = Stage::new().with_variable("WORK_KEY", "sk-of-another-user-0123");
    let directory = text_of(&stage.path("files"));
    stage.run(&["import", &bundle, "--workspace", &directory]).worked_quietly();
    let errors = stage.run(&["ask", &session, "More"]).called_wrongly();
    assert!(errors.contains("code: not_trusted") && errors.contains(&work.url), "{errors}");
    assert_eq!(work.asked().len(), 1);
}

#[test]
fn wrong_providers_are_named_with_their_line_and_secrets_are_not_repeated() {
    let stage = Stage::new();
    let base = "[[provider]]\nname = 'work'\nbase_url = 'https://llm.example.com'\n";
    for (text, line, message) in [
        ("[[provider]]\nname = 'openai'\nbase_url = 'https://a.example.com'\n".to_owned(), 2, "is built in"),
        (format!("{base}key = 'sk-hunter2'\n"), 4, "environment variable"),
        (format!("{base}headers = {{ x-api-key = 'hunter2' }}\n"), 4, "take it from the environment"),
        (format!("{base}headers = {{ Host = 'x' }}\n"), 4, "decides about this header"),
        (format!("{base}headers = {{ X-Team = '${{hunter2}}' }}\n"), 4, "${NAME}"),
        (format!("{base}{base}"), 5, "defined twice"),
        (format!("{base}format = 'soap'\n"), 4, "openai-chat"),
        ("[[provider]]\nname = 'a b'\nbase_url = 'https://a.example.com'\n".to_owned(), 2, "letters"),
        ("[[provider]]\nname = 'a'\nbase_url = 'https://a.example.com?key=x'\n".to_owned(), 3, "recorded"),
        (
            "model = 'wrk:m'\n[[provider]]\nname = 'work'\nbase_url = 'https://a.example.com'\n".to_owned(),
            1,
            "work",
        ),
    ] {
        configured(&stage, &text);
        let errors = stage.run(&["run", "Mend"]).called_wrongly();
        let place = format!("config.toml:{line}:");
        assert!(errors.contains(&place) && errors.contains(message), "{text}: {errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn addresses_come_from_the_variables_of_the_providers() {
    for (provider, key) in PROVIDERS {
        let variable = match provider {
            "openai" | "openai-chat" => "OPENAI_BASE_URL",
            "anthropic" => "ANTHROPIC_BASE_URL",
            _ => continue,
        };
        let model = Model::new(provider, [Said::Text("Done."), Said::Text("Again."), Said::Text("Own.")]);
        let stage = Stage::new().with_variable(key, WORK).with_variable(variable, &model.url);
        let name = format!("{provider}:{MODEL}");
        assert_eq!(stage.run(&["run", "Mend", "--model", &name]).worked_quietly(), "Done.\n");
        assert_eq!(recorded(&stage)["base_url"], json!(model.url));
        // The session keeps its address.
        let session = stage.session();
        let mut later = stage.command(&["ask", &session, "More"]);
        assert!(later.env_remove(variable).output().unwrap().status.success());
        assert_eq!(model.asked().len(), 2);
        // An address that is named wins.
        let nowhere = Stage::new().with_variable(key, WORK).with_variable(variable, "http://127.0.0.1:1");
        let started = Stage::asking(provider, &model, &[]);
        assert_eq!(nowhere.run(&as_slices(&started)).worked_quietly(), "Own.\n");
        let wrong = Stage::new().with_variable(key, WORK).with_variable(variable, "not a url");
        let errors = wrong.run(&["run", "Mend", "--model", &name]).called_wrongly();
        assert!(errors.contains(variable), "{errors}");
    }
}

#[test]
fn a_token_of_anthropic_is_sent_as_a_token() {
    let model = Model::new("anthropic", [Said::Text("Done.")]);
    let stage = Stage::new()
        .with_variable("ANTHROPIC_AUTH_TOKEN", WORK)
        .with_variable("ANTHROPIC_BASE_URL", &model.url);
    stage.run(&["run", "Mend", "--model", &format!("anthropic:{MODEL}")]).worked_quietly();
    let head = model.asked()[0].head.to_lowercase();
    assert!(head.contains(&format!("authorization: bearer {WORK}")) && !head.contains("x-api-key"), "{head}");
    is_clean(&stage);
}

#[test]
fn what_a_server_tells_about_its_model_is_recorded_and_not_asked_again() {
    let stage = with_keys();
    let pricing = json!({"prompt": "0.00000125", "completion": "0.00001"});
    let models = json!({"data": [{"id": MODEL, "context_length": 32_768, "pricing": pricing}]});
    let answers = [Said::Text("Done."), Said::Text("Again."), Said::Text("Unasked.")];
    let work = Model::listing("openai-chat", answers, &models);
    let settings = format!(
        "model = 'work:{MODEL}'\n[[provider]]\nname = 'work'\nbase_url = '{}'\nkey = 'WORK_KEY'\n",
        work.url
    );
    configured(&stage, &settings);
    // Without a price, a budget of money would be refused.
    let ran = stage.run(&["run", "Mend", "--budget", "money=1"]);
    let told =
        format!("work:{MODEL} has a window of 32768 tokens, and prices of 1.25 and 10 for a million tokens");
    assert!(ran.errors.contains(&told), "{}", ran.errors);
    assert_eq!(ran.worked_quietly(), "Done.\n");
    let asked = work.looked_up();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].head.contains(WORK), "{}", asked[0].head);
    let agent = recorded(&stage);
    assert_eq!(agent["window"], 32_768);
    assert_eq!(agent["prices"][format!("work:{MODEL}")], json!({"input": 1.25, "output": 10.0}));

    let session = stage.session();
    assert_eq!(stage.run(&["ask", &session, "More"]).worked_quietly(), "Again.\n");
    assert_eq!(work.looked_up().len(), 1, "a recorded session asks nothing");

    configured(&stage, &format!("discover = false\n{settings}"));
    assert_eq!(stage.run(&["run", "Mend"]).worked_quietly(), "Unasked.\n");
    assert_eq!(work.looked_up().len(), 1);
    is_clean(&stage);
}
