//! The beginning of a conversation, rendered and encoded once for all requests that repeat it.
//!
//! Conversations grow at their ends, so each request repeats the one before it. What is *settled* is a prefix of the messages
//! that ends before a turn and leaves no call open: nothing after it can change how it is rendered. Everything that a later
//! request would find is checked, and where the messages are not those of before, or depend on each other across the prefix,
//! the whole conversation is rendered again. So a request has the same bytes with a prefix and without one.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::digest::{Digest, DigestStream};
use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::TurnNumbers;
use backstitch_core::ports::{MediaBytes, RequestBody};
use backstitch_core::session::Items;
use serde_json::Value;

use crate::provider::ModelTarget;
use crate::request::{
    MediaMode, OpenCalls, RefusedPart, RenderError, RenderState, RequestInput, Thread,
    UnsupportedMediaPolicy, UsedObject,
};
use crate::wire::render_thread;

/// A prefix of a conversation, rendered for one target.
pub(crate) struct SettledPrefix {
    target: ModelTarget,
    form: MessageForm,
    /// The messages that begin with the prefix.
    shown: Items<InnerMessage>,
    /// The length of the prefix.
    count: usize,
    numbers: TurnNumbers,
    /// The largest number of a turn.
    last: u64,
    /// The calls, all of which have results.
    called: HashSet<CallId>,
    rendering: RenderState,
    /// The encoded messages, each followed by a comma.
    encoded: EncodedText,
    digested: Option<DigestedStart>,
}

/// The options that determine the form of messages.
#[derive(PartialEq)]
struct MessageForm {
    open_calls: OpenCalls,
    media: MediaMode,
    unsupported: UnsupportedMediaPolicy,
    without_labels: bool,
    refused_media: bool,
}

/// A text that grows at its end, in pieces of at least [`PIECE`] bytes and an open one.
#[derive(Default)]
struct EncodedText {
    pieces: Vec<Arc<str>>,
    open: String,
}

/// The digest of the beginning of a body: the text before the encoded messages, and so many bytes of these.
struct DigestedStart {
    before: String,
    bytes: usize,
    stream: DigestStream,
}

/// The least size of a closed piece in bytes. Only the open piece is copied into each request.
const PIECE: usize = 64 * 1024;

impl EncodedText {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.open.is_empty()
    }

    fn push(&mut self, text: &str) {
        self.open.push_str(text);
        if self.open.len() >= PIECE {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
    }

    /// The text in pieces.
    fn pieces(&self) -> impl Iterator<Item = Arc<str>> {
        self.pieces.iter().cloned().chain([self.open.as_str().into()])
    }

    /// The text after so many bytes.
    fn after(&self, mut bytes: usize) -> impl Iterator<Item = &str> {
        let pieces = self.pieces.iter().map(AsRef::as_ref).chain([self.open.as_str()]);
        pieces.map(move |piece| {
            let known = bytes.min(piece.len());
            bytes -= known;
            &piece[known..]
        })
    }
}

/// The number of messages before the first that is rendered as a message: a system message has a place of its own.
fn beginning(shown: &Items<InnerMessage>) -> usize {
    usize::from(shown.get(0).is_some_and(|message| message.role() == Role::System))
}

impl MessageForm {
    fn of(input: &RequestInput<'_>) -> Self {
        let options = input.options;
        Self {
            open_calls: options.open_calls,
            media: options.media,
            unsupported: options.unsupported,
            without_labels: options.without_labels,
            refused_media: options.refused.contains(&RefusedPart::Media),
        }
    }
}

impl SettledPrefix {
    fn new(input: &RequestInput<'_>, shown: &Items<InnerMessage>) -> Self {
        Self {
            target: input.target.clone(),
            form: MessageForm::of(input),
            shown: shown.clone(),
            count: beginning(shown),
            numbers: TurnNumbers::default(),
            last: 0,
            called: HashSet::new(),
            rendering: RenderState::default(),
            encoded: EncodedText::default(),
            digested: None,
        }
    }

    /// Settles what it can of a conversation, from the prefix of an earlier request if that is one of this one too. Also
    /// renders the rest.
    pub(crate) fn render(
        known: Option<Self>,
        input: &RequestInput<'_>,
        shown: &Items<InnerMessage>,
        media: &MediaBytes,
    ) -> Result<(Self, RenderState), RenderError> {
        let continued = known.filter(|known| known.serves(input, shown, media)).and_then(|known| {
            let end = known.end(shown)?;
            Some((known, end))
        });
        let (mut settled, end) = continued.unwrap_or_else(|| {
            let new = Self::new(input, shown);
            let end = new.end(shown).unwrap_or(new.count);
            (new, end)
        });
        settled.grow(input, shown, end)?;
        let mut rendering = settled.rendering.clone();
        let rest = (end..shown.len()).filter_map(|place| shown.get(place));
        render_thread(&Thread::after(&mut settled.numbers.clone(), rest), input, &mut rendering)?;
        Ok((settled, rendering))
    }

    /// Whether the prefix is one of this conversation, in the same form. Bytes of media may have been removed since then.
    fn serves(&self, input: &RequestInput<'_>, shown: &Items<InnerMessage>, media: &MediaBytes) -> bool {
        let has_media = |object: &UsedObject| media.contains_key(&object.id) == object.has_bytes;
        self.target == *input.target
            && self.form == MessageForm::of(input)
            && self.shown.begin_alike(shown, self.count)
            && self.rendering.objects().all(has_media)
    }

    /// The end of the longest prefix of a conversation that is settled. `None` if the messages after this prefix are not
    /// independent of it.
    fn end(&self, shown: &Items<InnerMessage>) -> Option<usize> {
        let mut numbers = self.numbers.clone();
        let rest = (self.count..shown.len()).filter_map(|place| shown.get(place));
        let rest: Vec<_> = rest.map(|message| (numbers.number(message), message)).collect();
        // A place is independent of what is before it if a turn begins there, all numbers before it are smaller, none after
        // it is, and all calls before it have results before it.
        let mut begins = Vec::with_capacity(rest.len());
        let (mut largest, mut called, mut open) = (self.last, HashSet::new(), HashSet::new());
        for (number, message) in &rest {
            begins.push(message.role() == Role::Assistant && *number > largest && open.is_empty());
            largest = largest.max(*number);
            if let Some(call) = message.message.option_call() {
                let id = call.invocation_id;
                (!self.called.contains(&id) && called.insert(id) && open.insert(id)).then_some(())?;
            }
            if let Some(result) = message.message.option_result() {
                open.remove(&result.invocation_id).then_some(())?;
            }
        }
        let mut least = u64::MAX;
        let mut independent: Vec<usize> = Vec::new();
        for (place, (number, _)) in rest.iter().enumerate().rev() {
            least = least.min(*number);
            independent.extend((begins[place] && least == *number).then_some(place));
        }
        let follows = rest.is_empty() || independent.last() == Some(&0) || self.count == beginning(shown);
        follows.then(|| self.count + independent.first().copied().unwrap_or(0))
    }

    /// Renders the messages up to an end, and encodes those that later ones cannot change.
    fn grow(
        &mut self,
        input: &RequestInput<'_>,
        shown: &Items<InnerMessage>,
        end: usize,
    ) -> Result<(), RenderError> {
        let more: Vec<_> = (self.count..end).filter_map(|place| shown.get(place)).collect();
        let mut numbers = self.numbers.clone();
        for message in &more {
            self.last = self.last.max(numbers.number(message));
            self.called.extend(message.message.option_call().map(|call| call.invocation_id));
        }
        render_thread(&Thread::after(&mut self.numbers, more), input, &mut self.rendering)?;
        self.encoded.push(&self.rendering.encode_settled());
        (self.shown, self.count) = (shown.clone(), end);
        Ok(())
    }

    /// Encodes a body whose list of messages lacks the encoded ones, which belong behind the first `head` messages.
    pub(crate) fn encode(&mut self, body: &Value, list: &str, head: usize) -> (RequestBody, Digest) {
        let fields = body.as_object().filter(|_| !self.encoded.is_empty());
        let place = fields.and_then(|fields| fields.keys().position(|name| name == list));
        let (Some(fields), Some(place)) = (fields, place) else {
            let text = body.to_string();
            let digest = Digest::of(text.as_bytes());
            return (text.into(), digest);
        };
        let (mut before, mut after) = (String::from("{"), String::new());
        for (index, (name, value)) in fields.iter().enumerate() {
            let text = if index <= place { &mut before } else { &mut after };
            if index > 0 {
                text.push(',');
            }
            text.push_str(&Value::from(name.as_str()).to_string());
            text.push(':');
            let messages =
                value.as_array().filter(|_| index == place).map(|messages| messages.split_at(head));
            let Some((first, last)) = messages else {
                text.push_str(&value.to_string());
                continue;
            };
            before.push('[');
            for message in first {
                before.push_str(&message.to_string());
                before.push(',');
            }
            let last: Vec<String> = last.iter().map(Value::to_string).collect();
            after.push_str(&last.join(","));
            after.push(']');
        }
        after.push('}');
        let digest = self.digest(&before, &after);
        let pieces = [before.into()].into_iter().chain(self.encoded.pieces()).chain([after.into()]);
        (RequestBody::new(pieces), digest)
    }

    /// The digest of the encoded messages between two texts.
    fn digest(&mut self, before: &str, after: &str) -> Digest {
        let known = self.digested.take().filter(|known| known.before == before);
        let mut known = known.unwrap_or_else(|| {
            let mut stream = DigestStream::default();
            stream.push(before.as_bytes());
            DigestedStart { before: before.to_owned(), bytes: 0, stream }
        });
        for text in self.encoded.after(known.bytes) {
            known.stream.push(text.as_bytes());
            known.bytes += text.len();
        }
        let mut whole = known.stream.clone();
        self.digested = Some(known);
        whole.push(after.as_bytes());
        whole.digest()
    }
}
