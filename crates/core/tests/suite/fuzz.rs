//! The decoders on seeded mutations of real encodings. The targets in `fuzz/` run the same checks without an
//! end.

mod decoders;

use backstitch_core::journal::{CallVerdict, PauseReason, Position};
use backstitch_core::message::RoleHint;
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::session::{CaptureOptions, StoredOp};
use backstitch_core::slices::{Plan, StepStatus, Visibility, VisibilityOverrides, WorkspaceDigest};
use serde_json::json;

use crate::journals::{Tally, Trace, Writer, parts, result};
use crate::record_codec::fixtures;
use crate::samples::{Deed, Line, note, one_of_each, session, session_id};

/// Number of mutations for each decoder.
const INPUTS: u32 = 50_000;

/// Tokens that are frequent in JSON, or not allowed in it.
const TOKENS: [&str; 29] = [
    "null",
    "true",
    "0",
    "1",
    "2",
    "-1",
    "4294967296",
    "18446744073709551615",
    "1e400",
    "0.1",
    "\"\"",
    "\"state\"",
    "\"log\"",
    "\"cache\"",
    "\"journal\"",
    "\"note\"",
    "\"plan\"",
    "[]",
    "{}",
    "[[[[[[[[]]]]]]]]",
    "{\"a\":{}}",
    ",",
    ":",
    "\"version\":2,",
    "\"item_versions\":[1,2],",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"1970-01-01T00:00:00Z\"",
    "{\"$serde_json::private::RawValue\":\"[1]\"}",
];

/// Runs a decoder on its corpus and on mutations of it. Returns the number of accepted inputs.
fn run(seed: u64, corpus: &[String], decoder: fn(&[u8]) -> bool) -> u32 {
    for text in corpus {
        assert!(decoder(text.as_bytes()), "a real encoding was refused: {text}");
    }
    let mut rng = Seed::new(seed).rng();
    (0..INPUTS).map(|_| u32::from(decoder(&mutated(corpus, &mut rng)))).sum()
}

fn mutated(corpus: &[String], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = pick(corpus, rng).clone().into_bytes();
    for _ in 0..1 + rng.below(6) / 4 {
        match rng.below(10) {
            0 => flip_a_bit(&mut bytes, rng),
            1 => bytes.truncate(place(&bytes, rng)),
            2 => splice(&mut bytes, pick(corpus, rng).as_bytes(), rng),
            3 => repeat_a_piece(&mut bytes, rng),
            4 | 5 => swap_tokens(&mut bytes, rng),
            6 => replace_a_token(&mut bytes, rng),
            _ => change_a_digit_or_letter(&mut bytes, rng),
        }
    }
    bytes
}

fn pick<'a, T>(list: &'a [T], rng: &mut Rng) -> &'a T {
    &list[rng.below(list.len() as u64) as usize]
}

fn place(bytes: &[u8], rng: &mut Rng) -> usize {
    rng.below(bytes.len() as u64 + 1) as usize
}

fn flip_a_bit(bytes: &mut [u8], rng: &mut Rng) {
    let position = place(bytes, rng);
    if let Some(byte) = bytes.get_mut(position) {
        *byte ^= 1 << rng.below(8);
    }
}

fn splice(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = place(bytes, rng);
    bytes.truncate(at);
    bytes.extend(&other[place(other, rng)..]);
}

fn repeat_a_piece(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let (one, other) = (place(bytes, rng), place(bytes, rng));
    let piece = bytes[one.min(other)..one.max(other)].to_vec();
    let at = place(bytes, rng);
    bytes.splice(at..at, piece);
}

/// Returns the ranges of the tokens of a JSON text: strings, numbers and words.
fn tokens(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut tokens = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let start = position;
        match bytes[position] {
            b'"' => {
                position += 1;
                while position < bytes.len() && bytes[position] != b'"' {
                    position += if bytes[position] == b'\\' { 2 } else { 1 };
                }
                position = (position + 1).min(bytes.len());
                tokens.push(start..position);
            }
            byte if byte.is_ascii_alphanumeric() => {
                while bytes.get(position).is_some_and(u8::is_ascii_alphanumeric) {
                    position += 1;
                }
                tokens.push(start..position);
            }
            _ => position += 1,
        }
    }
    tokens
}

fn swap_tokens(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let tokens = tokens(bytes);
    if tokens.is_empty() {
        return;
    }
    let (one, other) = (pick(&tokens, rng).clone(), pick(&tokens, rng).clone());
    let (first, second) = if one.start <= other.start { (one, other) } else { (other, one) };
    let (early, late) = (bytes[first.clone()].to_vec(), bytes[second.clone()].to_vec());
    if first != second {
        bytes.splice(second, early);
        bytes.splice(first, late);
    }
}

fn replace_a_token(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let tokens = tokens(bytes);
    let range = if tokens.is_empty() { 0..0 } else { pick(&tokens, rng).clone() };
    bytes.splice(range, pick(&TOKENS, rng).bytes());
}

fn change_a_digit_or_letter(bytes: &mut [u8], rng: &mut Rng) {
    let start = place(bytes, rng);
    if let Some(byte) = bytes[start..].iter_mut().find(|byte| byte.is_ascii_alphanumeric()) {
        *byte = *pick(b"0123456789abcdefz", rng);
    }
}

fn snapshots() -> Vec<String> {
    let mut session = session();
    let empty = session.snapshot();
    session.set_tag("project", "seam \"\u{1F9F5}\"\n");
    session.add_child(session_id(9));
    let mut plan = Plan::new("mend", ["find the tear", "sew"]).unwrap();
    plan.set_step(1, StepStatus::Done).unwrap();
    session.append(plan).unwrap();
    let mut overrides = VisibilityOverrides::default();
    overrides.set("workspace.files", Visibility::Full);
    session.append(overrides).unwrap();
    session.append(WorkspaceDigest::new("files", "few", "a\nb")).unwrap();
    session.append(Line(1)).unwrap();
    session.append(note(1, "one")).unwrap();
    session.seed((0..5).map(Deed)).unwrap();
    let house = session.fork(session_id(2)).snapshot_with(CaptureOptions::include_all().tag("why", "fuzz"));
    let versions = one_of_each().snapshot().to_json().unwrap().replace(
        r#""items":[1]"#,
        r#""items":[1,{"deep":[[[[[{"a":-1.5e-7}]]]]]},null],"item_versions":[1,7,2],"of_tomorrow":{"a":[]}"#,
    );
    let mut texts: Vec<_> =
        [empty, one_of_each().snapshot(), house].iter().map(|snapshot| snapshot.to_json().unwrap()).collect();
    texts.push(versions);
    texts
}

#[test]
fn the_snapshot_decoder_keeps_its_promises() {
    let accepted = run(1, &snapshots(), decoders::snapshot_decoder);
    assert!(accepted > INPUTS / 10, "only {accepted} inputs came past the decoder, so little was checked");
}

#[test]
fn the_record_decoder_keeps_its_promises() {
    let corpus: Vec<_> = fixtures().into_iter().map(|(_, text)| text).collect();
    let accepted = run(2, &corpus, decoders::record_decoder);
    assert!(accepted > INPUTS / 20, "only {accepted} inputs came past the decoder, so little was checked");
}

fn conversations() -> Vec<String> {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    writer.say(evaluation, parts(RoleHint::User, "hello"));
    let calls = writer.answer(evaluation, "let me see", &[r#"{ "q": 1 }"#, "[]"]);
    writer.say(evaluation, result(calls[0], json!("found")));
    writer.say(evaluation, parts(RoleHint::User, "well?"));
    let conversation = writer.view().transcript().unwrap().conversation(evaluation).unwrap();
    // One that holds the messages it was made from, and one of another program, with only the plain fields.
    let mut plain = conversation.clone();
    let turns = plain.turns.iter_mut().flat_map(|turn| {
        turn.user_messages.iter_mut().chain([&mut turn.assistant_message]).chain(&mut turn.tool_messages)
    });
    for message in plain.system_message.iter_mut().chain(turns).chain(&mut plain.unanswered) {
        message.inner.clear();
    }
    let plain = serde_json::to_string(&plain).unwrap();
    let foreign = plain.replace(&calls[0].to_string(), "call_abc123");
    vec![serde_json::to_string(&conversation).unwrap(), plain, foreign]
}

#[test]
fn the_conversation_decoder_keeps_its_promises() {
    let accepted = run(3, &conversations(), decoders::conversation_decoder);
    assert!(accepted > INPUTS / 20, "only {accepted} inputs came past the decoder, so little was checked");
}

/// Views as bytes, without the header, which names the version of the program and so lets no mutation pass.
fn view_snapshots() -> Vec<Vec<u8>> {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::User, "hello"));
    let calls = writer.answer(evaluation, "let me see", &[r#"{ "q": 1 }"#, "[]"]);
    writer.start_call(evaluation, calls[0]);
    writer.finish_call(evaluation, calls[0], CallVerdict::Succeeded);
    writer.request(evaluation, None);
    writer.change::<Trace>(StoredOp::Append(json!(1)));
    writer.change::<Tally>(StoredOp::Extend(vec![json!(1), json!(2)]));
    let early = writer.view();
    writer.rewind(Position::new(4));
    writer.pause(PauseReason::Asked, None);
    let views = [early, writer.view(), Writer::new(2).view()];
    views.iter().map(|view| view.encode_snapshot().unwrap().split_off(40)).collect()
}

#[test]
fn the_decoder_of_view_snapshots_keeps_its_promises() {
    let corpus = view_snapshots();
    for bytes in &corpus {
        assert!(decoders::view_snapshot_decoder(bytes), "a real snapshot was refused");
    }
    let mut rng = Seed::new(4).rng();
    let mut accepted = 0;
    for _ in 0..INPUTS / 5 {
        let mut bytes = pick(&corpus, &mut rng).clone();
        for _ in 0..1 + rng.below(3) {
            match rng.below(12) {
                0 => bytes.truncate(place(&bytes, &mut rng)),
                1 => splice(&mut bytes, pick(&corpus, &mut rng).as_slice(), &mut rng),
                2 => repeat_a_piece(&mut bytes, &mut rng),
                3 | 4 => change_a_digit_or_letter(&mut bytes, &mut rng),
                5 => {
                    let at = place(&bytes, &mut rng);
                    let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
                    bytes.splice(at..at, long[rng.below(10) as usize..].iter().copied());
                }
                _ => flip_a_bit(&mut bytes, &mut rng),
            }
        }
        accepted += u32::from(decoders::view_snapshot_decoder(&bytes));
    }
    assert!(accepted > INPUTS / 100, "only {accepted} inputs came past the decoder, so little was checked");
}

#[test]
fn mutations_are_the_same_in_each_run() {
    let corpus = snapshots();
    let some = |seed| {
        let mut rng = Seed::new(seed).rng();
        (0..50).map(|_| mutated(&corpus, &mut rng)).collect::<Vec<_>>()
    };
    assert_eq!(some(1), some(1));
    assert_ne!(some(1), some(2));
}
