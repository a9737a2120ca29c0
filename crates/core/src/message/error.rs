//! What can be wrong with a message.
//!
//! Each error says what was refused and what to do instead. None of them quotes a media URL, since a URL that is refused may
//! be refused for the password in it.

use std::convert::Infallible;
use std::str::Utf8Error;

use super::{MessageKind, PolicyName};
use crate::id::CallId;
use crate::object::{InvalidObjectId, ObjectId};
use crate::storable::NotStorable;

/// A message, or a piece of one, cannot be as it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// A policy has no name.
    #[error("a policy's name is empty; give it one")]
    EmptyPolicyName,
    /// A policy's name is too long.
    #[error("a policy's name has {bytes} bytes; it may have {limit}")]
    LongPolicyName {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// A policy's name holds a character that cannot be shown.
    #[error("a policy's name holds the control character {character:?}; leave it out")]
    IllegalPolicyName {
        /// The character.
        character: char,
    },
    /// The name is one that the runtime speaks under.
    #[error("the policy name `{name}` is reserved for the runtime; choose another")]
    ReservedPolicyName {
        /// The name.
        name: PolicyName,
    },
    /// A word is not in its closed set.
    #[error("unknown {what} {text:?}; it is one of {}", known.join(", "))]
    UnknownWord {
        /// What the word would have named.
        what: &'static str,
        /// The word, cut to 64 characters.
        text: String,
        /// The words that are known.
        known: &'static [&'static str],
    },

    /// A media URL is none that can be followed.
    #[error("a media URL does not parse; give an absolute http, https or blob URL")]
    MalformedMediaUrl {
        /// What the parser says.
        #[source]
        source: url::ParseError,
    },
    /// A media URL is written in a way that not everybody reads alike.
    #[error("a media URL {problem}; write it as `https://host/path`, percent-encoded")]
    IllegalMediaUrl {
        /// What is wrong, as the end of a sentence.
        problem: &'static str,
    },
    /// A media URL has a scheme that is not supported.
    #[error(
        "a media URL has the scheme `{scheme}`; only http, https and blob are followed (store bytes as an object)"
    )]
    UnsupportedMediaUrl {
        /// The scheme.
        scheme: String,
    },
    /// A media URL holds a user name or a password.
    #[error(
        "a media URL holds credentials, which must not reach the journal; remove what stands before the `@`"
    )]
    MediaUrlWithCredentials,
    /// A `blob:` URL names no object.
    #[error("a blob URL names no object; it is `blob:` and an object id")]
    InvalidBlobUrl {
        /// What is wrong with the id.
        #[source]
        source: InvalidObjectId,
    },

    /// Content is there both inside of the message and as an object.
    #[error("both `{inline}` and `{object}` are given; give one of them")]
    Ambiguous {
        /// The field that holds content.
        inline: &'static str,
        /// The field that refers to an object.
        object: &'static str,
    },
    /// A field is missing.
    #[error("`{field}` is missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// Arguments are JSON, but not an object.
    #[error("arguments must be a JSON object, not {found}; name each argument")]
    ArgumentsNotObject {
        /// What they are.
        found: &'static str,
    },
    /// A value would not come back from the journal.
    #[error("`{field}` cannot be stored: {problem}")]
    NotStorable {
        /// The field.
        field: &'static str,
        /// Why.
        problem: NotStorable,
    },

    /// A builder does not know who speaks.
    #[error(
        "no policy is known for this message; call `policy` or `person` first, or anchor to a message of a policy"
    )]
    NoPolicy,
    /// A builder has no parts.
    #[error("there are no parts to make a message of; add text or media first")]
    NoParts,
    /// A builder has neither parts nor calls.
    #[error("there is nothing to make messages of; add text, media or an option call first")]
    NoContent,
    /// A builder has no call yet.
    #[error("there is no option call yet; add one first")]
    NoOptionCall,
    /// Only a call can be answered.
    #[error("only an option_call has a result; this message is of kind {kind}")]
    NotAnOptionCall {
        /// What it is.
        kind: MessageKind,
    },
    /// A result names another call than the one that it answers.
    #[error("the result answers call {expected}, not {given}; build it with the call that it answers")]
    MismatchedInvocation {
        /// The id of the call.
        expected: CallId,
        /// The id that was given.
        given: CallId,
    },
    /// A result names another option than the one that was called.
    #[error(
        "the result answers a call of `{expected}`, not of `{given}`; build it with the call that it answers"
    )]
    MismatchedOption {
        /// The option that was called.
        expected: String,
        /// The option that was given.
        given: String,
    },

    /// An object that holds content of a message is not there.
    #[error("object {object}, which holds `{field}`, is not there; restore it to the store")]
    MissingObject {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
    },
    /// An object has another length than the message says.
    #[error("object {object}, which holds `{field}`, has {found} bytes instead of {expected}; it is damaged")]
    ObjectLength {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
        /// The length that the message says.
        expected: u64,
        /// The length that the object has.
        found: u64,
    },
    /// An object that should hold text does not.
    #[error("object {object}, which holds `{field}`, is not UTF-8 text; it is damaged")]
    ObjectNotText {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
        /// What is wrong.
        #[source]
        source: Utf8Error,
    },
    /// An object that should hold JSON does not.
    #[error("object {object}, which holds `{field}`, is not JSON; it is damaged")]
    ObjectNotJson {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

impl From<Infallible> for MessageError {
    /// Lets a conversion that cannot fail stand where one that can is wanted.
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
