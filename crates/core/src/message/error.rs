//! Errors of messages.
//!
//! Each error states what was refused and what to do instead. None of them quotes a media URL, since a
//! refused URL may contain a password.

use std::convert::Infallible;
use std::str::Utf8Error;

use super::{MessageKind, PolicyName};
use crate::id::CallId;
use crate::object::{InvalidObjectId, ObjectId};
use crate::storable::NotStorable;

/// A message, or a part of one, is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// A policy has no name.
    #[error("a policy's name is empty; give it one")]
    EmptyPolicyName,
    /// A policy's name is too long.
    #[error("a policy's name has {bytes} bytes; it may have {limit}")]
    LongPolicyName {
        /// Length of the name.
        bytes: usize,
        /// Largest length allowed.
        limit: usize,
    },
    /// A policy's name holds a control character.
    #[error("a policy's name holds the control character {character:?}; leave it out")]
    IllegalPolicyName {
        /// The character.
        character: char,
    },
    /// The name is reserved for the runtime.
    #[error("the policy name `{name}` is reserved for the runtime; choose another")]
    ReservedPolicyName {
        /// The name.
        name: PolicyName,
    },

    /// A media URL does not parse.
    #[error("a media URL does not parse; give an absolute http, https or blob URL")]
    MalformedMediaUrl {
        /// Error of the parser.
        #[source]
        source: url::ParseError,
    },
    /// Parsers may disagree about a media URL.
    #[error("a media URL {problem}; write it as `https://host/path`, percent-encoded")]
    IllegalMediaUrl {
        /// The problem, as the end of a sentence.
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
        "a media URL holds credentials, which must not reach the journal; remove the user name and password"
    )]
    MediaUrlWithCredentials,
    /// A `blob:` URL names no object.
    #[error("a blob URL names no object; it is `blob:` and an object id")]
    InvalidBlobUrl {
        /// Error of the id.
        #[source]
        source: InvalidObjectId,
    },

    /// Content is given both inline and as an object.
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
        /// Type of the arguments.
        found: &'static str,
    },
    /// A value would change in storage.
    #[error("`{field}` cannot be stored: {problem}")]
    NotStorable {
        /// The field.
        field: &'static str,
        /// Reason for the refusal.
        problem: NotStorable,
    },

    /// The policy of a message is not set.
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
        /// Kind of the message.
        kind: MessageKind,
    },
    /// A result names another call than its own.
    #[error("the result answers call {expected}, not {given}; build it with the call that it answers")]
    MismatchedInvocation {
        /// Id of the call.
        expected: CallId,
        /// Id in the result.
        given: CallId,
    },
    /// A result names another option than its call.
    #[error(
        "the result answers a call of `{expected}`, not of `{given}`; build it with the call that it answers"
    )]
    MismatchedOption {
        /// Option of the call.
        expected: String,
        /// Option in the result.
        given: String,
    },

    /// An object with content of a message does not exist.
    #[error("object {object}, which holds `{field}`, is missing; restore it to the store")]
    MissingObject {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
    },
    /// The content of an object was removed by a redaction, and nothing can stand for it.
    #[error("object {object}, which held `{field}`, was redacted")]
    Redacted {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
    },
    /// The length of an object differs from that in the message.
    #[error("object {object}, which holds `{field}`, has {found} bytes instead of {expected}; it is damaged")]
    ObjectLength {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
        /// Length in the message.
        expected: u64,
        /// Length of the object.
        found: u64,
    },
    /// An object that should hold text does not.
    #[error("object {object}, which holds `{field}`, is not UTF-8 text; it is damaged")]
    ObjectNotText {
        /// The field.
        field: &'static str,
        /// The object.
        object: ObjectId,
        /// Position of the error.
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
        /// Position of the error.
        #[source]
        source: serde_json::Error,
    },
}

impl From<Infallible> for MessageError {
    /// Allows infallible conversions where a fallible one is expected.
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
