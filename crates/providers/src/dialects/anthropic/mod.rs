//! Anthropic Messages.
//!
//! All results of a turn stand first in the user message behind it. Thoughts are signed and go back as they came. The raw
//! payload of an answer is its `content`.

mod request;
mod response;
mod stream;

pub(crate) use request::render;
pub(crate) use response::parse;
pub(crate) use stream::MessagesStream;
