//! Options that all commands share, and commands as they are printed in hints.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use backstitch::stores;
use clap::Args;

use crate::terminal::pager;
use crate::terminal::style::{self, ColorChoice};

/// Options of every command.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Path of the store. Default: BACKSTITCH_STORE if it is set, else `.backstitch/store.db` in this
    /// directory or in one above it, else the store of this project in the state directory of the user.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) store: Option<PathBuf>,
    /// Print JSON: one object, or one object per line for lists.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print colours: on a terminal, always or never. `NO_COLOR` and `CLICOLOR_FORCE` are respected.
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", hide_possible_values = true)]
    pub(crate) color: ColorChoice,
    /// Print long output without a pager.
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

impl Common {
    /// Uses the store of BACKSTITCH_STORE, unless `--store` names one.
    pub(crate) fn with_environment(mut self) -> Self {
        let named = std::env::var_os("BACKSTITCH_STORE").filter(|path| !path.is_empty());
        self.store = self.store.or(named.map(PathBuf::from));
        self
    }

    /// Sets up the output of the process.
    pub(crate) fn set_up_output(&self) {
        style::choose(self.color);
        if self.no_pager || self.json {
            pager::refuse();
        }
    }

    /// Returns options for hints about sessions of a store. They name the store unless it is the default of
    /// this directory.
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

    /// Formats a command line that refers to the same store as this command, and can be executed unchanged.
    pub(crate) fn hint(&self, command: impl Display) -> String {
        match &self.store {
            Some(path) => format!("backstitch {command} --store {}", quoted(&path.to_string_lossy())),
            None => format!("backstitch {command}"),
        }
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
