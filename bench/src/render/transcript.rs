//! Rendering of a long conversation with calls, by a strategy that leaves most of it out.

use std::hint::black_box;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{
    Arguments, Content, Message, OptionCall, OptionResult, Part, PolicyName, RoleHint,
};
use backstitch_repl::transcript::{TranscriptCompression, TranscriptHistory, Trim};
use backstitch_testkit::sample;
use serde_json::json;

use super::{EFFORT, TURNS};
use crate::measure::time;
use crate::report::Report;

pub(super) fn run(report: &mut Report) {
    let strategy = Trim::default();
    for answers in TURNS {
        let history = history(answers);
        let rendered = strategy.render(&history);
        let timing = time(EFFORT, || strategy.render(black_box(&history)));
        let params = json!({
            "strategy": "trim", "answers": answers,
            "messages": rendered.messages.len(), "of_messages": history.len(),
        });
        report.time("render.transcript", params, &timing);
        let next = answer(answers as u64 + 1, history.len() as u64);
        let timing = time(EFFORT, || {
            let mut history = history.clone();
            history.extend(next.iter().cloned());
            history
        });
        report.time("render.transcript_push", json!({"answers": answers}), &timing);
    }
}

fn history(answers: usize) -> TranscriptHistory {
    let words = |role: RoleHint, text: &str, sequence| {
        let mut message = Message::new(policy("prompt"), Content::Parts(vec![Part::text(text)].into()));
        message.role_hint_for_llm = Some(role);
        inner(message, 0, sequence)
    };
    let opening = [words(RoleHint::System, "You sew.", 0), words(RoleHint::User, "Mend the coat.", 1)];
    let answered = (0..answers as u64).flat_map(|number| answer(number + 1, 2 + number * 3));
    opening.into_iter().chain(answered).collect()
}

/// Text, a call and its result.
fn answer(turn: u64, sequence: u64) -> [Arc<InnerMessage>; 3] {
    let call: CallId = format!("01900000-0000-7000-8000-{turn:012x}").parse().expect("invariant: an id");
    let arguments = Arguments::try_from(json!({"seam": turn})).expect("invariant: an object");
    let result = OptionResult::new(call, "stitch", json!({"seam": turn, "text": "It holds. ".repeat(20)}));
    let contents = [
        (policy("model"), Content::Parts(vec![Part::text("I look for the next seam.")].into())),
        (policy("model"), Content::OptionCall(OptionCall::new(call, "stitch", arguments))),
        (policy("stitch"), Content::OptionResult(result)),
    ];
    let mut place = sequence;
    contents.map(|(policy, content)| {
        place += 1;
        inner(Message::new(policy, content), turn, place - 1)
    })
}

fn policy(name: &str) -> PolicyName {
    PolicyName::new(name).expect("invariant: a name")
}

fn inner(message: Message, turn: u64, sequence: u64) -> Arc<InnerMessage> {
    let evaluation = "01900000-0000-7000-8002-000000000001".parse().expect("invariant: an id");
    let inner = InnerMessage::new(evaluation, message, &sample::ids(sequence));
    Arc::new(inner.of_prompt("bench", "render").at(sequence, turn))
}
