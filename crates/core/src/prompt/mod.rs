//! Prompts: the instructions that a model receives before it answers.
//!
//! A [`Prompt`] is a tree of [sections](Section). Each has a text in which `$field` stands for a parameter,
//! and tools that it offers. It may have a condition, which enables it, and a summary, which is shown in its
//! place. Binding parameters results in a [`BoundPrompt`]; rendering it for a session results in a
//! [`RenderedPrompt`], a text with the tools of all sections that are shown in full. A section holds no
//! state: everything that differs between evaluations is in the session, so rendering is a function of the
//! prompt, its parameters and the journal.
//!
//! A section that is shown as a summary can be read ([`read_section`](READ_SECTION)) or opened
//! ([`open_sections`](OPEN_SECTIONS)). Opening a section ends the evaluation. Another one supersedes it, with
//! the section's text and tools.
//!
//! ```
//! # use std::sync::Arc;
//! # use backstitch_core::{id::{IdStream, SessionId}, session::Session, time::FixedClock};
//! use backstitch_core::prompt::{Prompt, Section};
//!
//! #[derive(serde::Serialize)]
//! struct Order { cloth: String }
//!
//! let prompt = Prompt::builder("workshop", "tailor")
//!     .section(Section::new("task", "Task").body("Mend the $cloth. It costs nothing ($$0)."))
//!     .section(Section::new("stitches", "Stitches").body("A backstitch goes back.").summarised("Which stitches there are."))
//!     .build()?;
//! let bound = prompt.bind(&Order { cloth: "coat".into() })?;
//! # let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
//! # let session = Session::new(ids.next::<SessionId>(), ids.clock().clone());
//! let rendered = bound.render(&session)?;
//! assert!(rendered.text.starts_with("## 1. Task\n\nMend the coat. It costs nothing ($0).\n\n## 2. Stitches\n"));
//! assert!(!rendered.text.contains("goes back"));
//! # Ok::<(), backstitch_core::prompt::PromptError>(())
//! ```

mod bound;
mod build;
mod error;
mod extract;
mod name;
mod output;
mod render;
mod section;
mod template;
mod tools;

pub use bound::BoundPrompt;
pub use build::{Prompt, PromptBuilder};
pub use error::{PromptError, TemplateError};
pub use extract::NoJson;
pub use output::Output;
pub use render::{RenderedPrompt, RenderedSection, fingerprint};
pub use section::Section;
pub use tools::{OPEN_SECTIONS, READ_SECTION};

use crate::session::{Session, replace_latest, upsert_by};
use crate::slices::{Plan, VisibilityOverrides, WorkspaceDigest};

/// Registers the reducers of the slices that prompts read. Only the latest plan and the latest overrides are
/// kept, and the latest digest of each section.
pub fn register_slices(session: &mut Session) {
    session
        .register::<VisibilityOverrides, VisibilityOverrides>(replace_latest)
        .register::<Plan, Plan>(replace_latest)
        .register::<WorkspaceDigest, WorkspaceDigest>(upsert_by(|digest: &WorkspaceDigest| {
            digest.section_key.clone()
        }));
}
