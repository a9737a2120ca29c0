//! Commands and skills: Markdown files of the user and of trusted projects.
//!
//! A command is a text that a person sends as a message by its name, `/name`. A skill is a text that a model loads when a task needs
//! it, or that a person sends. Both are text for a model and nothing else: they grant no right, choose no model and run no
//! command. The forms of Claude Code and Codex are read where these programs keep them.
//!
//! The files of a project are offered only if the user trusts them as they are. Sizes and numbers of files are limited, and a link
//! of a project that leads out of it is not followed.

mod command;
mod front_matter;
mod library;
mod list;
mod place;
pub(crate) mod skills;

pub(crate) use command::{CommandText, expand};
pub(crate) use library::{PromptFile, PromptLibrary, PromptState};
pub(crate) use list::ListPrompts;
pub(crate) use place::{PromptKind, PromptOwner};
