//! Models, their prices, and what sessions may spend.

use serde_json::{Value, json};

use crate::chat;
use crate::model::{MODEL, Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, last_line, scripted};

/// Writes the settings of the user.
fn settings(stage: &Stage, text: &str) {
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    stage.write("config/backstitch/config.toml", text);
}

/// A script with one answer that costs this.
fn costing(stage: &Stage, usage: Value) -> String {
    scripted(stage, &json!([{"text": "Done.", "usage": usage}]))
}

#[test]
fn requests_without_a_price_are_named_where_money_is() {
    let stage = Stage::new();
    let free = costing(&stage, json!({"input_tokens": 700, "output_tokens": 30}));
    let ended = last_line(&stage.run(&["run", "Sew", "--model", &free, "--json"]).worked_quietly());
    assert_eq!(
        (&ended["spent"]["money_micros"], &ended["spent"]["unpriced_requests"]),
        (&json!(0), &json!(1))
    );
    let stats = stage.run(&["stats"]).worked_quietly();
    assert!(stats.contains("cost not known: 1 request without a price"), "{stats}");

    let paid = costing(&stage, json!({"input_tokens": 500, "output_tokens": 20, "money_micros": 12_300}));
    let ended = last_line(&stage.run(&["run", "Sew", "--model", &paid, "--json"]).worked_quietly());
    assert_eq!(ended["spent"]["unpriced_requests"], 0);
    let stats = stage.run(&["stats"]).worked_quietly();
    assert!(stats.contains("cost 0.0123 and 1 request without a price"), "{stats}");
    let report = stage.json(&["stats"]);
    assert_eq!(report["total"]["unpriced_requests"], 1);

    let free = costing(&stage, json!({"input_tokens": 700, "output_tokens": 30}));
    let terminal = Pty::start(&stage, &["chat", "--model", &free], 120, 40);
    chat::enter(&terminal, "Sew", "Done.");
    chat::enter(&terminal, "/cost", "requests without a price");
    terminal.send("\u{4}");
    assert_eq!(terminal.finish().0, Some(0));
}

#[test]
fn a_day_has_a_budget_of_its_own() {
    let stage = Stage::new();
    settings(&stage, "[day_budget]\ntokens = 19000\n");
    let model = costing(&stage, json!({"input_tokens": 19_000, "output_tokens": 900}));
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    // The first session has used up the day, so the second one waits.
    let paused = stage.run(&["run", "Sew", "--model", &model]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    assert!(paused.errors.contains("tokens"), "{}", paused.errors);
    let again = stage.run(&["resume"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(stage.run(&["resume", "--budget", "tokens=90000"]).output, "Done.\n");
    // A larger budget of the day lets others start.
    settings(&stage, "[day_budget]\ntokens = 900000\n");
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    let wrong = stage.run(&["config", "set", "day_budget.calls", "3"]).called_wrongly();
    assert!(wrong.contains("a day has limits of tokens"), "{wrong}");
}

#[test]
fn models_that_are_known_and_those_of_servers_are_listed() {
    let list = json!({"data": [
        {"id": MODEL, "context_length": 32_768, "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
        {"id": "bare\u{1b}[31m"},
    ]});
    let model = Model::listing("openai-chat", [], &list);
    let stage = Stage::new().with_variable("LOOM_KEY", "silk-thread-7");
    let gone = "http://127.0.0.1:9";
    let text = format!(
        "[[provider]]\nname = 'loom'\nbase_url = '{}'\nkey = 'LOOM_KEY'\n[[provider]]\nname = 'gone'\nbase_url = '{gone}'\n\
         [prices.'loom:own']\ninput = 7\noutput = 9\n[windows]\n'loom:own' = 9000\n",
        model.url
    );
    settings(&stage, &text);
    let report = stage.json(&["models"]);
    assert_eq!(report["as_of"].as_str().unwrap().len(), "2025-01-01".len());
    assert!(report["known"].as_array().unwrap().len() > 10, "{report}");
    let own = &report["settings"][0];
    assert_eq!(
        (&own["model"], &own["window"], &own["price"]["input"]),
        (&json!("loom:own"), &json!(9000), &json!(7.0))
    );
    let [loom, gone] = &report["servers"].as_array().unwrap()[..] else { panic!("{report}") };
    let named = format!("loom:{MODEL}");
    assert_eq!(loom["models"][0]["model"], named);
    assert_eq!(
        (&loom["models"][0]["window"], &loom["models"][0]["price"]["output"]),
        (&json!(32_768), &json!(2.0))
    );
    assert!(gone["error"].as_str().unwrap().contains("cannot be reached"), "{gone}");
    assert!(model.looked_up().iter().all(|asked| asked.head.contains("silk-thread-7")));

    let shown = stage.run(&["models"]).worked_quietly();
    assert!(shown.contains("known models, prices in USD per million tokens, as of 20"), "{shown}");
    assert!(shown.contains(&named) && shown.contains("32,768") && shown.contains("not known"), "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains("silk-thread-7"), "{shown}");
    let one = stage.run(&["models", "anthropic", "--offline"]).worked_quietly();
    assert!(one.contains("anthropic:") && !one.contains("openai:") && !one.contains("loom"), "{one}");
    let unknown = stage.run(&["models", "lom"]).called_wrongly();
    assert!(unknown.contains("there is no provider \"lom\"") && unknown.contains("loom"), "{unknown}");
}

#[test]
fn effort_and_thinking_are_set_on_the_command_line() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "silk-thread-7");
    let answers = [Said::Text("One."), Said::Text("Two.")];
    let model = Model::new("openai", answers);
    let first = Stage::asking("openai", &model, &["--effort", "low"]);
    stage.run(&as_slices(&first)).worked_quietly();
    stage.run(&["ask", &stage.session(), "More?", "--effort", "high"]).worked_quietly();
    let efforts: Vec<Value> = model
        .asked()
        .iter()
        .map(|asked| {
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            body["reasoning"]["effort"].clone()
        })
        .collect();
    assert_eq!(efforts, [json!("low"), json!("high")]);
    let wrong = stage.run(&["run", "Sew", "--model", "openai:a", "--thinking", "much"]).called_wrongly();
    assert!(wrong.contains("default, adaptive or a number of tokens"), "{wrong}");
    // A wrong address is an error of usage.
    let wrong = stage.run(&["run", "Sew", "--model", "openai:a", "--base-url", "127.0.0.1:80", "--json"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(!wrong.output.contains("agent_file") && !wrong.errors.contains("agent_file"), "{wrong:?}");
}

#[test]
fn the_model_and_its_effort_change_in_a_conversation() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "silk-thread-7");
    let model = Model::new("openai", [Said::Text("One."), Said::Text("Two.")]);
    let name = format!("openai:{MODEL}");
    let terminal = Pty::start(&stage, &["chat", "--model", &name, "--base-url", &model.url], 120, 40);
    chat::enter(&terminal, "First", "One.");
    chat::enter(&terminal, &format!("/model {name} high"), "effort high");
    chat::enter(&terminal, "Second", "Two.");
    chat::enter(&terminal, "/model", "with the effort high");
    terminal.send("\u{4}");
    assert_eq!(terminal.finish().0, Some(0));
    let body: Value = serde_json::from_str(&model.asked()[1].body).unwrap();
    assert_eq!(body["reasoning"]["effort"], "high");
}
