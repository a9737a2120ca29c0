//! Recall of content that requests left out.

use backstitch_core::message::OptionResult;
use backstitch_repl::recall::{RecallError, RecallExcerpt, Reference, Window, from_transcript, from_turns};
use serde_json::json;

use crate::support::{Agent, call_id};
use crate::transcripts::Writer;

#[test]
fn a_turn_or_a_call_of_a_lisp_agent() {
    let agent = Agent::after(&["(println \"seen\") (tool/search {:query \"q\" :limit 1})", "(nth [] 1)"]);
    let history = agent.history();
    let whole = from_turns(&history, Reference::Turn(1), Window::default()).unwrap();
    assert_eq!(
        whole.text,
        format!(
            "Turn 1\n\n{}\n\nCall {} of search\n{{\"limit\":1,\"query\":\"q\"}}\n[{{\"id\":1,\"title\":\"A\"}}]\n\n\
             Output:\nseen\n\nResult: [{{\"id\":1,\"title\":\"A\"}}]",
            agent.turns[0].answer,
            call_id(1)
        )
    );
    assert_eq!((whole.from, whole.total, whole.next), (0, whole.text.chars().count(), None));
    let call = from_turns(&history, Reference::CallId(call_id(1)), Window::default()).unwrap();
    assert!(whole.text.contains(&call.text));
    let failed = from_turns(&history, Reference::Turn(2), Window::default()).unwrap();
    assert!(failed.text.contains("\n\nError: "), "{}", failed.text);
    let error = from_turns(&history, Reference::Turn(9), Window::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no turn 9; there are turns 1 to 2");
    let error = from_turns(&Agent::new().history(), Reference::Turn(1), Window::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no turn 1; there are no turns yet");
}

#[test]
fn the_turns_of_followed_evaluations_have_numbers_of_their_own() {
    let mut first = Writer::new();
    let call = first.answer("Looking.", 1)[0];
    first.result(1, call, OptionResult::new(call, "look", json!("found")));
    let mut second = first.next();
    second.answer("Done.", 0);
    let messages = first.conversation(&second);
    let read = |reference| from_transcript(&messages, reference, Window::default());
    let lines = "Turn 0: Be briefer.\nTurn 1: Looking.; calls: look\nTurn 2: Do more.\nTurn 3: Done.";
    assert_eq!(read(Reference::Overview).unwrap().text, lines);
    assert_eq!(read(Reference::Turn(0)).unwrap().text, "System:\nBe briefer.\n\nUser:\nDo it.");
    assert_eq!(read(Reference::Turn(2)).unwrap().text, "User:\nDo more.");
    assert_eq!(read(Reference::Turn(3)).unwrap().text, "Assistant:\nDone.");
    assert!(read(Reference::Turn(1)).unwrap().text.ends_with("found"));
    assert!(read(Reference::CallId(call)).unwrap().text.ends_with("found"));
    assert_eq!(read(Reference::Turn(4)), Err(RecallError::NoTurn { turn: 4, first: Some(0), last: Some(3) }));
}

#[test]
fn a_call_or_an_answer_of_a_transcript() {
    let mut writer = Writer::new();
    let call = writer.answer("Looking.", 1)[0];
    writer.result(1, call, OptionResult::new(call, "look", json!("äöü and more")));
    let read = |reference, window| from_transcript(&writer.messages, reference, window);
    let whole = read(Reference::CallId(call), Window::default()).unwrap();
    assert_eq!(
        whole.text,
        format!("Call {call} of look\n{{\"n\":1}}\n\nResult of call {call}\näöü and more")
    );
    let answer = read(Reference::Turn(1), Window::default()).unwrap();
    assert_eq!(answer.text, format!("Assistant:\nLooking.\n\n{}", whole.text));
    assert!(
        read(Reference::Turn(0), Window::default())
            .unwrap()
            .text
            .starts_with("System:\nBe brief.\n\nUser:\n")
    );
    assert!(matches!(
        read(Reference::CallId(call_id(7)), Window::default()),
        Err(RecallError::NoCall { .. })
    ));
    assert_eq!(
        read(Reference::Turn(7), Window::default()),
        Err(RecallError::NoTurn { turn: 7, first: Some(0), last: Some(1) })
    );
}

#[test]
fn all_turns_have_a_line_each() {
    let program = "(println 1)\n(println 2)\n(tool/ping) (mapv #(tool/search % 1) [\"a\" \"b\"])";
    let agent = Agent::after(&[program, "(nth [] 1)"]);
    let overview = from_turns(&agent.history(), Reference::Overview, Window::default()).unwrap();
    let lines: Vec<&str> = overview.text.lines().collect();
    assert_eq!(
        lines[0],
        "Turn 1: (println 1) (println 2) (tool/ping) (mapv #(tool/search % 1) [\"a\" \"b\"]); 2 prints; \
         calls: ping, search (2 times)"
    );
    assert!(lines[1].starts_with("Turn 2: failed: ") && lines.len() == 2, "{lines:?}");

    let mut writer = Writer::new();
    writer.answer(&"Looking. ".repeat(20), 2);
    let overview = from_transcript(&writer.messages, Reference::Overview, Window::default()).unwrap();
    let looking = "Looking. ".repeat(9);
    let expected = format!("Turn 0: Be brief.\nTurn 1: {}...; calls: look (2 times)", &looking[..80]);
    assert_eq!(overview.text, expected);
}

#[test]
fn what_is_firewalled_in_calls_of_programs_is_not_shown() {
    let mut writer = Writer::new();
    let [said, made] = writer.answer("Looking.", 2)[..] else { panic!("two calls") };
    writer.made_by_program(made);
    let told = json!({"id": 1, "_token": "secret", "rows": [{"_key": 2, "n": 3}]});
    for call in [said, made] {
        writer.result(1, call, OptionResult::new(call, "look", told.clone()));
    }
    let read = |call| from_transcript(&writer.messages, Reference::CallId(call), Window::default()).unwrap();
    assert!(read(said).text.contains("secret"), "models that call tools see what they answer");
    let text = read(made).text;
    assert!(text.ends_with("{\"id\":1,\"rows\":[{\"n\":3}]}"), "{text}");
}

#[test]
fn windows_follow_each_other_and_end() {
    let mut writer = Writer::new();
    writer.answer("äöü€𝄞 and so on", 0);
    let read =
        |from, limit| from_transcript(&writer.messages, Reference::Turn(1), Window { from, limit }).unwrap();
    let mut text = String::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let part = read(from, 4);
        text.push_str(&part.text);
        next = part.next;
    }
    assert_eq!(text, "Assistant:\näöü€𝄞 and so on");
    let total = text.chars().count();
    assert_eq!(read(total + 5, 4), RecallExcerpt { text: String::new(), from: total, total, next: None });
    assert_eq!(read(0, 0).next, None);
}
