//! Every answer of a provider is parsed or refused with an error, and a conversation with the parsed answer
//! can be rendered for every provider.

use backstitch_core::ports::PolicyAnswer;
use backstitch_core::rng::{Rng, Seed};
use backstitch_providers::validate::validate;
use backstitch_providers::{
    ModelTarget, Provider, RequestOptions, SseDecoder, ThinkingBudget, Thread, UnsupportedMediaPolicy, parse,
    render, stream_reader,
};
use serde_json::{Value, json};

use super::media::{PAINTERS, PNG, drawn};
use super::support::{Talk, streamed_answer, target, tools, whole_answer};

/// The number of answers of each kind, for each provider. `BACKSTITCH_FUZZ_ANSWERS` overrides it.
fn answers() -> u32 {
    let configured = std::env::var("BACKSTITCH_FUZZ_ANSWERS").ok().and_then(|text| text.parse().ok());
    configured.unwrap_or(500)
}

struct Hostile(Rng);

impl Hostile {
    fn new(seed: u64) -> Self {
        Self(Seed::new(seed).rng())
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit.max(1) as u64) as usize
    }

    /// An unexpected value.
    fn strange(&mut self) -> Value {
        let strange = [
            json!(null),
            json!(true),
            json!(-1),
            json!(u64::MAX),
            json!(1e300),
            json!(""),
            json!("   "),
            json!("call_a"),
            json!("get weather!\u{0}\u{202e}"),
            json!("x".repeat(300)),
            json!("{\"city\": "),
            json!("[1]"),
            json!([]),
            json!({}),
            json!([[], {}, null]),
            json!({"type": "tool_use"}),
            json!({"type": "text", "text": 5}),
            json!({"functionCall": {}}),
        ];
        strange[self.below(strange.len())].clone()
    }

    /// Changes a random part of a value.
    fn change(&mut self, value: &mut Value) {
        let goes_deeper = self.below(6) > 0;
        match value {
            Value::Object(fields) if goes_deeper && !fields.is_empty() => {
                let key = fields.keys().nth(self.below(fields.len())).cloned().unwrap_or_default();
                match self.below(12) {
                    0 => drop(fields.remove(&key)),
                    1 => drop(fields.insert("news".into(), self.strange())),
                    _ => self.change(&mut fields[&key]),
                }
            }
            Value::Array(items) if goes_deeper && !items.is_empty() => {
                let index = self.below(items.len());
                match self.below(12) {
                    0 => drop(items.remove(index)),
                    1 => items.push(items[index].clone()),
                    2 => items.insert(index, self.strange()),
                    3 => items.reverse(),
                    _ => self.change(&mut items[index]),
                }
            }
            other => *other = self.strange(),
        }
    }

    /// Changes random bytes of a text.
    fn garble(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => drop(bytes.splice(at..at, *b"\n\n")),
                2 => drop(bytes.splice(at..at, *b"data: {}\n\n")),
                3 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                _ => {
                    let end = (at + self.below(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
        }
        bytes
    }
}

/// Asserts that a conversation with this answer renders for every provider, whichever calls have results.
fn can_continue(answer: PolicyAnswer, hostile: &mut Hostile, origin: Provider) {
    let open = answer.calls.len();
    let mut talk = Talk::new().system("Be brief.").user("How is the weather?").answer(answer);
    for _ in 0..hostile.below(open + 1) {
        talk = match hostile.below(2) {
            0 => talk.result(0, Ok(json!({"degrees": 12}))),
            _ => talk.result(0, Err("it broke")),
        };
    }
    if hostile.below(2) == 0 {
        talk = talk.user("And now?");
    }
    let messages = talk.messages();
    let thread = Thread::of(&messages);
    for provider in Provider::ALL {
        for thinking in [ThinkingBudget::Default, ThinkingBudget::Budget(2_000)] {
            let options = RequestOptions {
                thinking,
                unsupported: UnsupportedMediaPolicy::Describe,
                ..RequestOptions::default()
            };
            if options.check(provider).is_err() {
                continue;
            }
            let rendered = render(&thread, &tools(), &target(provider), &options).unwrap();
            if let Err(error) = validate(provider, &rendered.body) {
                panic!("an answer of {origin} makes {provider} refuse: {error}\n{:#}", rendered.body);
            }
        }
    }
}

#[test]
fn whole_answers_of_any_shape() {
    for (seed, provider) in Provider::ALL.into_iter().enumerate() {
        let mut hostile = Hostile::new(seed as u64);
        let mut read = 0;
        for _ in 0..answers() {
            let mut answer = whole_answer(provider);
            for _ in 0..=hostile.below(3) {
                hostile.change(&mut answer);
            }
            if let Ok(answer) = parse(&answer.to_string(), &target(provider)) {
                read += 1;
                can_continue(answer, &mut hostile, provider);
            }
        }
        assert!(read > answers() / 20, "{provider}: only {read} were answers at all");
    }
}

#[test]
fn answers_with_media_of_any_shape() {
    for (seed, provider) in PAINTERS.into_iter().enumerate() {
        let mut hostile = Hostile::new(100 + seed as u64);
        let mut read = 0;
        for _ in 0..answers() {
            let mut answer = drawn(provider, PNG);
            for _ in 0..=hostile.below(3) {
                hostile.change(&mut answer);
            }
            if let Ok(answer) = parse(&answer.to_string(), &target(provider)) {
                read += 1;
                can_continue(answer, &mut hostile, provider);
            }
        }
        assert!(read > answers() / 20, "{provider}: only {read} were answers at all");
    }
}

fn streamed(bytes: &[u8], target: &ModelTarget, size: usize) -> Option<PolicyAnswer> {
    let mut decoder = SseDecoder::new();
    let mut reader = stream_reader(target);
    let (mut events, mut deltas) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        decoder.feed(piece, &mut events).ok()?;
        for event in events.drain(..) {
            reader.feed(&event, &mut deltas).ok()?;
        }
    }
    reader.finish().ok()
}

#[test]
fn streams_of_any_shape() {
    for (seed, provider) in Provider::ALL.into_iter().enumerate() {
        let mut hostile = Hostile::new(100 + seed as u64);
        let stream = streamed_answer(provider);
        for round in 0..answers() {
            // Half of them are broken as text, half as data.
            let bytes = match round % 2 {
                0 => hostile.garble(&stream),
                _ => {
                    let picked = hostile.below(stream.lines().count());
                    let mut lines: Vec<String> = stream.lines().map(str::to_owned).collect();
                    if let Some(mut data) = lines[picked]
                        .strip_prefix("data: ")
                        .and_then(|data| serde_json::from_str::<Value>(data).ok())
                    {
                        hostile.change(&mut data);
                        lines[picked] = format!("data: {data}");
                    }
                    (lines.join("\n") + "\n\n").into_bytes()
                }
            };
            let size = 1 + hostile.below(200);
            if let Some(answer) = streamed(&bytes, &target(provider), size) {
                can_continue(answer, &mut hostile, provider);
            }
        }
    }
}
