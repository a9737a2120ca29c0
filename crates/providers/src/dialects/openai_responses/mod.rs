//! OpenAI Responses, used without state on the other side.
//!
//! The input is a flat list of items. Reasoning travels encrypted, always together with the item that it led to. The raw
//! payload of an answer is its list of output items.

mod request;
mod response;
mod stream;

pub(crate) use request::render;
pub(crate) use response::parse;
pub(crate) use stream::ResponsesStream;
