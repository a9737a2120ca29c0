//! Redaction of records and of inbox items.
//!
//! All matches are replaced at once, and the result has to decode. If it does not, the replacements are tried one by one, and those
//! that break the record are left out: there the value is a part of an id, a time or a word with a fixed meaning.
//!
//! Logs and summaries hold texts that were cut, possibly inside of the value. The beginning that such a text ends with is replaced too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::document::{Document, Token, TokenKind, spliced};
use super::fields::{FREE, NAMES};
use super::{MARKER, PLAIN_MARKER, SensitiveValue};
use crate::digest::Digest;
use crate::journal::{InnerMessage, Position, Record, RecordBody};
use crate::object::{Object, ObjectId, ObjectRef};
use crate::session::{Items, Slice};

/// How often a text is gone through. Each round but the first replaces whole tokens, so two are nearly always enough.
const ROUNDS: usize = 4;

/// Stands for a place that is not a token: separators and the words of JSON.
const NO_TOKEN: usize = usize::MAX;

/// Redacted copies of objects, by the id of the original. A record that names an original is made to name its copy.
pub type ObjectCopies = HashMap<ObjectId, ObjectCopy>;

/// A redacted copy of an object, as records name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectCopy {
    /// Id and length of the copy.
    pub reference: ObjectRef,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl From<&Object> for ObjectCopy {
    fn from(copy: &Object) -> Self {
        Self { reference: copy.to_ref(), digest: Digest::of(copy.bytes()) }
    }
}

/// A text without the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedText {
    /// The new text.
    pub text: String,
    /// How many strings, names and numbers were replaced, and payloads dropped.
    pub replacements: u64,
    /// How many of them hold the value still, because they give the text its structure.
    pub kept: u64,
}

/// Redacts a stored record. Returns `None` if it neither holds the value nor names an object with a copy.
pub fn redact_record(
    position: Position,
    text: &str,
    value: &SensitiveValue,
    copies: &ObjectCopies,
) -> Option<RedactedText> {
    let may_be_cut = ["…", "...", r#""summary""#].iter().any(|sign| text.contains(sign));
    if copies.is_empty() && !may_be_cut && !value.is_in(text.as_bytes()) {
        return None;
    }
    let reads = |text: &str| Record::decode(position, text).is_ok_and(|record| still_loads(&record.body));
    let body = Record::decode(position, text).ok()?.body;
    if matches!(body, RecordBody::Redacted(_)) {
        return None;
    }
    let is_created = matches!(body, RecordBody::SessionCreated(_));
    let free = |path: &[&str]| match path {
        // The slices of a new session, or the state of a resource.
        ["data", "state"] => !is_created,
        [_, .., "data"] => true,
        ["data", "op", "append" | "replace"] | ["data", "op", "patch", "append"] => true,
        [_, .., last] => FREE.contains(last),
        _ => false,
    };
    let mut redaction =
        TextRedaction { value, free: &free, reads: &reads, kept: BTreeSet::new(), replacements: 0 };
    let renamed = redaction.refer_to_copies(text, copies);
    let current = renamed.as_deref().unwrap_or(text);
    let redacted = redaction.run(current);
    let current = redacted.as_deref().unwrap_or(current);
    let without_beginnings = redaction.replace_beginnings(current);
    redaction.finish(text, without_beginnings.or(redacted).or(renamed))
}

/// Redacts the data of an inbox item. Returns `None` if it does not hold the value.
pub fn redact_inbox_data(text: &str, value: &SensitiveValue) -> Option<RedactedText> {
    let reads = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let free = |path: &[&str]| path.last().is_some_and(|last| FREE.contains(last));
    let mut redaction =
        TextRedaction { value, free: &free, reads: &reads, kept: BTreeSet::new(), replacements: 0 };
    let redacted = redaction.run(text);
    redaction.finish(text, redacted)
}

/// Returns whether the conversation that a session starts from can still be read. Its messages are free-form data of the record.
fn still_loads(body: &RecordBody) -> bool {
    let RecordBody::SessionCreated(created) = body else { return true };
    created.state.iter().filter(|slice| slice.name == InnerMessage::NAME).all(|slice| {
        let items = slice.clone().into_cell().map(|cell| cell.items());
        items.is_ok_and(|items: Result<Items<InnerMessage>, _>| items.is_ok())
    })
}

pub(super) struct TextRedaction<'a> {
    pub(super) value: &'a SensitiveValue,
    pub(super) free: &'a dyn Fn(&[&str]) -> bool,
    /// Returns whether a text is still what it was, apart from the value.
    pub(super) reads: &'a dyn Fn(&str) -> bool,
    /// Tokens that must stay, by number.
    pub(super) kept: BTreeSet<usize>,
    pub(super) replacements: u64,
}

/// What becomes of a token.
#[derive(Default)]
struct TokenEdit {
    /// Ranges between the quotes.
    ranges: Vec<Range<usize>>,
    /// Whether all of it is replaced.
    whole: bool,
}

impl TextRedaction<'_> {
    fn finish(self, text: &str, redacted: Option<String>) -> Option<RedactedText> {
        let (replacements, kept) = (self.replacements, self.kept.len() as u64);
        match redacted {
            Some(redacted) => Some(RedactedText { text: redacted, replacements, kept }),
            None if kept > 0 => Some(RedactedText { text: text.to_owned(), replacements: 0, kept }),
            None => None,
        }
    }

    /// The text without the value, as far as it may be changed; `None` if nothing was changed.
    pub(super) fn run(&mut self, text: &str) -> Option<String> {
        let mut redacted: Option<String> = None;
        for round in 0..ROUNDS {
            let current = redacted.as_deref().unwrap_or(text);
            if !self.value.is_in(current.as_bytes()) {
                break;
            }
            let document = Document::read(current, self.free)?;
            let edits = self.plan(&document, round > 0);
            let Some(next) = self.apply(&document, edits) else { break };
            redacted = Some(next);
        }
        let last = redacted.as_deref().unwrap_or(text);
        if self.kept.is_empty() && self.value.is_in(last.as_bytes()) {
            self.kept.insert(NO_TOKEN);
        }
        redacted
    }

    fn plan(&mut self, document: &Document<'_>, whole: bool) -> BTreeMap<usize, TokenEdit> {
        let mut edits: BTreeMap<usize, TokenEdit> = BTreeMap::new();
        for range in self.value.finder().ranges(document.text.as_bytes()) {
            let overlapping = document.overlapping(&range);
            let within = overlapping.clone().find(|number| {
                let inside = document.tokens[*number].inside();
                inside.start <= range.start && range.end <= inside.end
            });
            let chosen = match within {
                Some(number) => Some(number),
                // The value is made of several tokens: one of them has to go.
                None => overlapping
                    .clone()
                    .filter(|number| self.may_change(*number, &document.tokens[*number]))
                    .min_by_key(|number| document.tokens[*number].kind.reluctance()),
            };
            match chosen.filter(|number| self.may_change(*number, &document.tokens[*number])) {
                Some(number) => {
                    let edit = edits.entry(number).or_default();
                    edit.whole |= whole || within.is_none();
                    edit.ranges.push(range);
                }
                None => drop(self.kept.insert(within.or(overlapping.clone().next()).unwrap_or(NO_TOKEN))),
            }
        }
        edits
    }

    fn may_change(&self, number: usize, token: &Token) -> bool {
        let may = match token.kind {
            TokenKind::Name | TokenKind::Number => token.is_free,
            TokenKind::Text => token.is_free || !NAMES.contains(&token.field.as_str()),
        };
        may && !self.kept.contains(&number)
    }

    /// Replaces tokens: all at once, or as many as the text bears.
    fn apply(&mut self, document: &Document<'_>, edits: BTreeMap<usize, TokenEdit>) -> Option<String> {
        if edits.is_empty() {
            return None;
        }
        let mut chosen: BTreeMap<usize, String> = BTreeMap::new();
        for (number, edit) in &edits {
            chosen.insert(*number, edit.token(document, *number, MARKER));
        }
        let all = with_tokens(document, &chosen);
        if (self.reads)(&all) {
            self.replacements += chosen.len() as u64;
            return Some(all);
        }
        chosen.clear();
        for (number, edit) in &edits {
            let fits = [MARKER, PLAIN_MARKER].into_iter().any(|marker| {
                chosen.insert(*number, edit.token(document, *number, marker));
                (self.reads)(&with_tokens(document, &chosen))
            });
            if !fits {
                chosen.remove(number);
                self.kept.insert(*number);
            }
        }
        self.replacements += chosen.len() as u64;
        (!chosen.is_empty()).then(|| with_tokens(document, &chosen))
    }

    /// The text without beginnings of the value at the ends of texts that were cut; `None` if there are none.
    fn replace_beginnings(&mut self, text: &str) -> Option<String> {
        let document = Document::read(text, self.free)?;
        let mut chosen: BTreeMap<usize, String> = BTreeMap::new();
        for (number, token) in document.tokens.iter().enumerate() {
            if token.kind != TokenKind::Text || !self.may_change(number, token) {
                continue;
            }
            let Some(mut string) = document.string(token) else { continue };
            if let Some(range) = self.value.finder().beginning_in(&string, token.field == "summary") {
                string.replace_range(range, MARKER);
                chosen.insert(number, serde_json::Value::from(string).to_string());
            }
        }
        let replaced = with_tokens(&document, &chosen);
        if chosen.is_empty() || !(self.reads)(&replaced) {
            return None;
        }
        self.replacements += chosen.len() as u64;
        Some(replaced)
    }

    /// Makes a record name the copies of objects instead of the originals. Payloads of providers have no copies: they are dropped,
    /// since a signature in one of them would be wrong.
    fn refer_to_copies(&mut self, text: &str, copies: &ObjectCopies) -> Option<String> {
        let document = Document::read(text, self.free)?;
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for token in document.tokens.iter().filter(|token| token.kind == TokenKind::Text) {
            if self.is_payload(&document, token) {
                edits.push((token.range.clone(), dropped(&document, token.container)));
                continue;
            }
            let Some(string) = document.string(token) else { continue };
            let (prefix, id) = match string.strip_prefix("blob:") {
                Some(id) => ("blob:", id),
                None => ("", string.as_str()),
            };
            let Some(copy) = id.parse().ok().and_then(|id: ObjectId| copies.get(&id)) else { continue };
            let container = &document.containers[token.container];
            if token.field == "object" && container.field == "payload_object" {
                let around = container.parent.unwrap_or_default();
                edits.push((container.range.clone(), dropped(&document, around)));
                continue;
            }
            edits.push((token.range.clone(), format!("\"{prefix}{}\"", copy.reference.object)));
            let beside =
                [("length", copy.reference.length.to_string()), ("digest", format!("\"{}\"", copy.digest))];
            for (field, new) in beside {
                let number = document.field_of(token.container, field);
                edits.extend(number.map(|number| (document.tokens[number].range.clone(), new)));
            }
        }
        if edits.is_empty() {
            return None;
        }
        edits.sort_by_key(|(range, _)| range.start);
        edits.dedup_by_key(|(range, _)| range.start);
        let renamed = spliced(text, &edits);
        (self.reads)(&renamed).then(|| {
            self.replacements += edits.len() as u64;
            renamed
        })
    }

    /// Returns whether a token is the payload of a provider, and holds the value.
    fn is_payload(&self, document: &Document<'_>, token: &Token) -> bool {
        token.field == "payload"
            && document.containers[token.container].field == "provider"
            && self.value.is_in(document.text[token.range.clone()].as_bytes())
    }
}

/// What stands in the place of a payload that was dropped.
fn dropped(document: &Document<'_>, sidecar: usize) -> String {
    match document.has_field(sidecar, "payload_redacted") {
        true => "null".to_owned(),
        false => "null,\"payload_redacted\":true".to_owned(),
    }
}

impl TokenKind {
    /// Which of several tokens is replaced: rather a text than a number, and rather a number than a name.
    fn reluctance(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Number => 1,
            Self::Name => 2,
        }
    }
}

impl TokenEdit {
    /// The new token.
    fn token(&self, document: &Document<'_>, number: usize, marker: &str) -> String {
        let token = &document.tokens[number];
        if token.kind == TokenKind::Number {
            return "0".to_owned();
        }
        if self.whole {
            return format!("\"{marker}\"");
        }
        let start = token.range.start;
        let within = |range: &Range<usize>| (range.start - start..range.end - start, marker.to_owned());
        let edits: Vec<_> = self.ranges.iter().map(within).collect();
        spliced(&document.text[token.range.clone()], &edits)
    }
}

fn with_tokens(document: &Document<'_>, tokens: &BTreeMap<usize, String>) -> String {
    let edit = |(number, new): (&usize, &String)| (document.tokens[*number].range.clone(), new.clone());
    let edits: Vec<_> = tokens.iter().map(edit).collect();
    spliced(document.text, &edits)
}
