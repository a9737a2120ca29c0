//! Options that all commands share, and commands as they are printed in hints.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use backstitch::stores;
use clap::Args;

/// Where sessions are, and how results are printed.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// The store. Without it, the one that BACKSTITCH_STORE names, `.backstitch/store.db` of this directory or of one above it, or
    /// the one of this project in the state directory of the user.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) store: Option<PathBuf>,
    /// Prints JSON: one object, or one per line for lists.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl Common {
    /// With the store that the environment names, unless another one was given.
    pub(crate) fn with_environment(mut self) -> Self {
        let named = std::env::var_os("BACKSTITCH_STORE").filter(|path| !path.is_empty());
        self.store = self.store.or(named.map(PathBuf::from));
        self
    }

    /// For hints about sessions of this store: it is named where this directory alone would not lead to it.
    pub(crate) fn naming(&self, store: &Path) -> Self {
        let is_default = || {
            let here = std::env::current_dir().ok()?;
            stores::existing(&here).ok().flatten()
        };
        let mut common = self.clone();
        if common.store.is_none() && is_default().as_deref() != Some(store) {
            common.store = Some(store.to_owned());
        }
        common
    }

    /// A command that can be executed as it stands: it means the same store as this command did.
    pub(crate) fn hint(&self, command: impl Display) -> String {
        match &self.store {
            Some(path) => format!("backstitch {command} --store {}", quoted(&path.to_string_lossy())),
            None => format!("backstitch {command}"),
        }
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
