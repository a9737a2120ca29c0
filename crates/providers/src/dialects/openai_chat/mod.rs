//! OpenAI Chat Completions, and every server that is compatible with it.
//!
//! Each call is answered by a `tool` message right after the message that made it. Results are text; media of results is shown
//! in a user message behind them. The raw payload of an answer is its `message`.

mod request;
mod response;
mod stream;

pub(crate) use request::render;
pub(crate) use response::parse;
pub(crate) use stream::ChatStream;
