//! Configurations of strategies.

use std::sync::Arc;

use backstitch_core::journal::Role;
use backstitch_lisp::Truncation;
use backstitch_repl::compression::{
    CoalescedOptions, Compression, ConfigurationError, DisplayOptions, Errors, FenceMode, FullOptions,
    History, NoCompression, Registry, RenderContext, RenderedHistory, RenderedMessage, Samples,
    SingleUserCoalesced, Statistics, ToolResults, Trim, TrimOptions,
};
use backstitch_repl::{LispAgent, LispOptions};
use serde_json::{Value as Json, json};

use crate::support::{Agent, bare, only};

type Strategies = Registry<dyn Compression>;

fn normalized(given: Json) -> Result<Json, ConfigurationError> {
    Strategies::standard().normalize(&given).map(|strategy| strategy.configuration())
}

#[track_caller]
fn means(given: Json, strategy: &dyn Compression) {
    assert_eq!(normalized(given).unwrap(), strategy.configuration());
}

fn limit(println_limit: usize) -> SingleUserCoalesced {
    let display = DisplayOptions { println_limit, ..DisplayOptions::default() };
    SingleUserCoalesced::new(CoalescedOptions { display, ..CoalescedOptions::default() })
}

#[test]
fn true_is_the_default_strategy_and_false_is_none() {
    means(json!(true), &SingleUserCoalesced::default());
    means(json!(false), &NoCompression::default());
    means(json!(null), &NoCompression::default());
    for nothing_said in [LispOptions::default(), LispAgent::new().options] {
        assert_eq!(nothing_said.compression.configuration(), NoCompression::default().configuration());
    }
}

#[test]
fn a_strategy_is_named_with_or_without_options() {
    means(json!("single_user_coalesced"), &SingleUserCoalesced::default());
    means(json!("SingleUserCoalesced"), &SingleUserCoalesced::default());
    means(json!(["SingleUserCoalesced", {"println_limit": 10}]), &limit(10));
    means(json!({"strategy": "single_user_coalesced", "println_limit": 10}), &limit(10));
    means(json!({"println_limit": 10}), &limit(10));
    means(json!({}), &SingleUserCoalesced::default());
    means(json!(["trim"]), &Trim::default());
    let options = TrimOptions { turns: 3, tokens: Some(9_000), ..TrimOptions::default() };
    means(json!({"strategy": "Trim", "turns": 3, "tokens": 9000}), &Trim::new(options));
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    assert_eq!(
        normalized(json!(true)).unwrap(),
        json!({
            "strategy": "single_user_coalesced",
            "errors": "until_recovered",
            "samples": "unless_printed",
            "println_limit": 15,
            "println_characters": 2000,
            "tool_call_limit": 20,
            "tool_results": "when_silent",
            "sample_items": 3,
            "sample_characters": 80,
            "argument_items": 3,
            "argument_characters": 60,
            "doc_characters": 200,
            "user_budget": 8000,
            "fence": "auto",
            "note_dropped": true,
            "fields": true,
            "turn_notes": true,
        })
    );
}

#[test]
fn every_option_can_be_set_and_comes_back() {
    let display = DisplayOptions {
        println_limit: 1,
        println_characters: 2,
        tool_call_limit: 3,
        tool_results: ToolResults::Never,
        sample_items: 4,
        sample_characters: 5,
        argument_items: 6,
        argument_characters: 7,
        doc_characters: 8,
        user_budget: 9,
        fence: FenceMode::Always,
        note_dropped: false,
        fields: false,
        turn_notes: false,
    };
    let options =
        CoalescedOptions { errors: Errors::Keep, samples: Samples::Always, display: display.clone() };
    let strategy = SingleUserCoalesced::new(options);
    means(strategy.configuration(), &strategy);
    assert_eq!(strategy.sample(), Truncation { items: 4, characters: 5, fields: false });
    means(json!({"strategy": "none", "fence": true}), &{
        let display = DisplayOptions { fence: FenceMode::Always, ..DisplayOptions::default() };
        NoCompression::new(FullOptions { display })
    });
    means(json!({"strategy": "none", "fence": false}), &{
        let display = DisplayOptions { fence: FenceMode::Never, ..DisplayOptions::default() };
        NoCompression::new(FullOptions { display })
    });
}

#[test]
fn what_is_not_known_is_an_error_that_names_what_is() {
    let error = normalized(json!("zip")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no compression strategy \"zip\"; there are single_user_coalesced, trim, none"
    );
    assert!(
        matches!(error, ConfigurationError::UnknownStrategy { name, known } if name == "zip" && known.len() == 3)
    );

    let error = normalized(json!({"strategy": "trim", "println_limt": 1})).unwrap_err();
    assert!(error.to_string().starts_with(
        "the compression strategy trim has no option \"println_limt\"; it has turns, tokens, println_limit,"
    ));
    assert!(
        matches!(error, ConfigurationError::UnknownOption { known, .. } if !known.contains(&"println_limt".into()))
    );

    let whole = "expected a whole number from 0 on";
    for (option, given, what) in [
        ("println_limit", json!(-1), whole),
        ("println_limit", json!("many"), whole),
        ("errors", json!("some"), "expected one of `keep`, `last`, `until_recovered`"),
        ("tool_results", json!(true), "expected string or map"),
        ("fence", json!("high"), "a fence is auto, always, never, true or false"),
        ("sample_items", json!(1.5), whole),
    ] {
        let error =
            normalized(json!({"strategy": "single_user_coalesced", (option): given.clone()})).unwrap_err();
        let expected = format!(
            "the option {option} of the compression strategy single_user_coalesced cannot be {given}: {what}"
        );
        assert_eq!(error.to_string(), expected);
    }
    for given in [json!(1), json!(["trim", 1]), json!([]), json!({"strategy": 1}), json!(["trim", {}, 1])] {
        let error = normalized(given).unwrap_err();
        assert!(matches!(error, ConfigurationError::NotAConfiguration { .. }), "{error}");
    }
}

#[test]
fn a_sub_agent_has_its_own_strategy_or_its_parents() {
    let strategies = Strategies::standard();
    let parent: Arc<dyn Compression> = Arc::new(limit(3));
    let child = |own: Option<Json>| strategies.inherit(&parent, own.as_ref()).unwrap().configuration();
    assert_eq!(child(None), parent.configuration());
    assert_eq!(child(Some(json!("trim"))), Trim::default().configuration());
    assert_eq!(child(Some(json!(false))), NoCompression::default().configuration());
}

#[test]
fn an_agent_with_a_single_turn_compresses_nothing() {
    let strategies = Strategies::standard();
    assert_eq!(strategies.normalize_for(&json!(true), 1).unwrap().name(), "none");
    assert_eq!(strategies.normalize_for(&json!(true), 2).unwrap().name(), "single_user_coalesced");
    assert!(strategies.normalize_for(&json!("zip"), 1).is_err());
}

/// A third-party strategy, which uses only the public API.
#[derive(Debug)]
struct Brief {
    words: u64,
}

impl Compression for Brief {
    fn name(&self) -> &'static str {
        "brief"
    }

    fn configuration(&self) -> Json {
        json!({"strategy": "brief", "words": self.words})
    }

    fn renderer(&self) -> String {
        format!("brief/1 {}", self.words)
    }

    fn sample(&self) -> Truncation {
        Truncation::SAMPLE
    }

    fn render(&self, history: &History, scene: &RenderContext) -> RenderedHistory {
        let programs = history.turns().filter_map(|turn| turn.program.as_deref()).rev();
        let latest: Vec<&str> = programs.take(self.words as usize).collect();
        let text = format!("{} {} {}", scene.mission(), history.len(), latest.join(" "));
        let message = RenderedMessage { role: Role::User, text, stable: scene.mission().len() };
        let statistics =
            Statistics { strategy: self.name().into(), turns: history.len(), ..Statistics::default() };
        RenderedHistory { messages: vec![message], statistics }
    }
}

#[test]
fn strategies_can_be_added() {
    let strategies = Strategies::standard().with("brief", |given| {
        let words = given.get("words").and_then(Json::as_u64).unwrap_or(1);
        Ok(Arc::new(Brief { words }) as Arc<dyn Compression>)
    });
    assert_eq!(strategies.names().collect::<Vec<_>>(), ["single_user_coalesced", "trim", "none", "brief"]);
    let brief = strategies.normalize(&json!(["Brief", {"words": 2}])).unwrap();
    assert_eq!((brief.name(), brief.configuration()), ("brief", json!({"strategy": "brief", "words": 2})));
    let agent = Agent::after(&["1", "2", "3"]);
    assert_eq!(only(&brief.render_turns(&agent.turns, &bare())), "M 3 3 2");
    assert_eq!(only(&brief.render(&agent.history(), &bare())), "M 3 3 2");
}

#[test]
fn a_renderer_is_identified_by_name_version_and_options() {
    let default = SingleUserCoalesced::default().renderer();
    // Recorded requests name it, so it stays the same until the text changes.
    assert_eq!(default, "single_user_coalesced/4 5ad349fa7d84");
    assert_eq!(limit(15).renderer(), default);
    assert_ne!(limit(14).renderer(), default);
    assert!(Trim::default().renderer().starts_with("trim/3 "));
    assert!(NoCompression::default().renderer().starts_with("none/3 "));
}
