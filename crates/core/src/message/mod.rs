//! Messages: what policies, options and people say to each other.
//!
//! A [`Message`] names its [`policy`](Message::policy) and is of exactly one of three kinds: [`Parts`] (text and media), an
//! [`OptionCall`] or an [`OptionResult`]. It knows nothing of any provider; adapters turn messages into what a provider
//! wants, and back. Messages are made with a [`MessageBuilder`], results with an [`OptionResultBuilder`].
//!
//! Messages are plain JSON with a `kind` that tells variants apart. Guarantees of reading and writing:
//!
//! - what is written can be read again, and is then equal;
//! - fields that this version does not know survive, on messages, payloads and parts alike ([`crate::extra`]);
//! - an unknown kind, modality or role is an error, never a guess;
//! - input of any form gives a message or an error, and no panic;
//! - no media bytes and no credentials of media addresses get in.

mod arguments;
mod builder;
mod content;
mod error;
pub(crate) mod large;
mod media_url;
mod option;
mod part;
mod policy;
mod result_builder;
mod role;
mod tagged;
mod word;

pub use arguments::Arguments;
pub use builder::{Anchor, MessageBuilder};
pub use content::{Content, Message, MessageKind, Parts};
pub use error::MessageError;
pub use large::{Large, LargeContent};
pub use media_url::MediaUrl;
pub use option::{OptionCall, OptionResult};
pub use part::{MediaPart, Modality, Part, PartKind, TextPart};
pub use policy::PolicyName;
pub use result_builder::{OptionResultBuilder, Retry};
pub use role::RoleHint;
