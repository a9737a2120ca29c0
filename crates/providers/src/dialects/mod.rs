//! The particulars of each provider: a folder for each, with one [`Dialect`] in it.
//!
//! To add a provider, add a folder that defines `DIALECT`, declare it here, and add its entry to the list in
//! `provider.rs`. Code that two providers share stands in a module beside the folders. A folder may use all
//! shared modules (`request`, `answer`, `error`, `rules`), and no shared module uses a folder.

mod anthropic;
mod gemini;
mod openai;
mod openai_chat;
mod openai_responses;
mod table;

pub(crate) use table::{Address, Dialect};

use crate::provider::{Provider, with_providers};

macro_rules! define_lookup {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $folder:ident;)*) => {
        /// The dialect of a provider.
        pub(crate) fn dialect(provider: Provider) -> &'static Dialect {
            match provider {
                $(Provider::$variant => &$folder::DIALECT,)*
            }
        }
    };
}
with_providers!(define_lookup);
