//! What a person gives to an agent besides the words of a message: files, images, listings of directories, and standard input.
//!
//! Everything is checked and limited before anything is sent. Texts stand between marks that they cannot end themselves, so
//! that a model can distinguish them from the message.

mod attach;
mod completion;
mod file;
mod found;
mod parts;
mod stdin;

pub(crate) use attach::{AttachScope, AttachedMessage};
pub(crate) use completion::{PathCompletions, complete_path};
pub(crate) use file::media_refusal;
pub(crate) use parts::MessageParts;
#[cfg(feature = "mcp")]
pub(crate) use parts::quoted;
pub(crate) use stdin::{InputFlags, add_to};
