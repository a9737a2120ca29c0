//! Gemini.
//!
//! A turn with calls is followed at once by a turn with as many responses. Thoughts are signed on the part that they led to,
//! and go back on that part. The raw payload of an answer is its list of parts.

mod request;
mod response;
mod stream;

pub(crate) use request::render;
pub(crate) use response::parse;
pub(crate) use stream::GeminiStream;
