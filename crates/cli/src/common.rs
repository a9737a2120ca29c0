//! Options that all commands share, and commands as they are printed in hints.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch::stores;
use clap::Args;

use crate::config::{Config, ConfigError, PagerSetting};
use crate::terminal::pager;
use crate::terminal::style::{self, ColorChoice};

/// Options of every command.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Path of the store. Default: BACKSTITCH_STORE or `store` of the settings, else `.backstitch/store.db` in this
    /// directory or in one above it, else the store of this project in the state directory of the user.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) store: Option<PathBuf>,
    /// Print JSON: one object, or one object per line for lists.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print colours: auto (on a terminal), always or never. `NO_COLOR` and `CLICOLOR_FORCE` are respected. Default:
    /// `color` of the settings, else auto.
    #[arg(long, value_name = "WHEN", global = true, hide_possible_values = true)]
    pub(crate) color: Option<ColorChoice>,
    /// Print long output without a pager.
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// Settings of the user.
    #[arg(skip)]
    pub(crate) config: Arc<Config>,
}

impl Common {
    /// Reads the settings of the user and the environment. They name the store, unless `--store` does.
    pub(crate) fn with_settings(mut self) -> Result<Self, ConfigError> {
        self.config = Arc::new(Config::load()?);
        self.store = self.store.or_else(|| self.config.store());
        Ok(self)
    }

    /// Sets up the output of the process.
    pub(crate) fn set_up_output(&self) {
        let color = self.color.or_else(|| self.config.strongest(|settings| settings.color));
        style::choose(color.unwrap_or_default());
        match self.config.strongest(|settings| settings.pager.clone()) {
            _ if self.no_pager || self.json => pager::refuse(),
            Some(PagerSetting::Off) => pager::refuse(),
            Some(PagerSetting::Command(command)) => pager::prefer(command),
            None => {}
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
