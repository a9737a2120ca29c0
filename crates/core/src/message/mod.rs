//! Messages of policies, options and people.
//!
//! A [`Message`] names its [`policy`](Message::policy) and has exactly one of three kinds: [`Parts`] (text
//! and media), an [`OptionCall`] or an [`OptionResult`]. It is independent of providers; adapters convert
//! messages to a provider's format, and back. Messages are built with a [`MessageBuilder`], results with an
//! [`OptionResultBuilder`].
//!
//! Messages are plain JSON with a `kind` that distinguishes variants. Guarantees of encoding and decoding:
//!
//! - an encoded message can be decoded, and is then equal;
//! - unknown fields survive, on messages, payloads and parts alike ([`crate::extra`]);
//! - an unknown kind, modality or role is an error, never a guess;
//! - any input results in a message or an error, never in a panic;
//! - messages contain no media bytes and no credentials of media addresses.

mod arguments;
mod builder;
mod content;
mod error;
pub(crate) mod large;
mod media_type;
mod media_url;
mod option;
mod part;
mod policy;
mod result_builder;
mod role;
mod tagged;

pub use arguments::Arguments;
pub use builder::{Anchor, MessageBuilder};
pub use content::{Content, Message, MessageKind, Parts};
pub use error::MessageError;
pub use large::{Large, LargeContent};
pub use media_type::MediaType;
pub use media_url::MediaUrl;
pub use option::{OptionCall, OptionResult};
pub use part::{MediaPart, Modality, Part, PartKind, TextPart};
pub use policy::PolicyName;
pub use result_builder::{OptionResultBuilder, Retry};
pub use role::RoleHint;
