//! Events do not depend on how the bytes are split.

use backstitch_providers::{SseDecoder, SseEvent};
use proptest::prelude::*;

fn decoded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
    let (mut decoder, mut events) = (SseDecoder::new(), Vec::new());
    for piece in pieces {
        decoder.feed(piece, &mut events).unwrap();
    }
    events
}

fn event(name: &str, data: &str) -> SseEvent {
    SseEvent { name: name.into(), data: data.into() }
}

const STREAM: &str = "\u{feff}: hello\r\nevent: one\r\ndata: {\"a\":\r\ndata:  \"naïve 🧵\"}\r\n\r\n\
    id: 7\nretry: 10\ndata:x\n\nevent: lost\n\ndata\n\nevent: cr\rdata: y\r\rdata: never ended\n";

#[test]
fn every_split_gives_the_same_events() {
    let expected =
        vec![event("one", "{\"a\":\n \"naïve 🧵\"}"), event("", "x"), event("", ""), event("cr", "y")];
    let bytes = STREAM.as_bytes();
    assert_eq!(decoded([bytes]), expected);
    assert_eq!(decoded(bytes.chunks(1)), expected);
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(decoded(pieces), expected, "cut at {first} and {second}");
        }
    }
}

#[test]
fn lines_without_an_event_are_kept_for_the_caller() {
    let (mut decoder, mut events) = (SseDecoder::new(), Vec::new());
    decoder.feed(b"data: x\n\n{\n\"error\": {\"code\": 500}\n}", &mut events).unwrap();
    assert_eq!(events, [event("", "x")]);
    let stray = decoder.into_stray();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&stray).unwrap()["error"]["code"], 500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_in_any_pieces_give_the_same_events(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), Just(b'a'), Just(b't'), Just(b' '), any::<u8>()],
            0..200,
        ),
        size in 1usize..20,
    ) {
        prop_assert_eq!(decoded([bytes.as_slice()]), decoded(bytes.chunks(size)));
    }
}
