//! Options that all commands share, and commands as they are printed in hints.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use backstitch::stores::{self, StoreAddress};
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, Parser, ValueHint};

use crate::config::{Config, ConfigError, PagerSetting};
use crate::keys;
use crate::terminal::{self, ColorChoice, pager, style};

/// Options of every command.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Address of the store: a path, `postgres://USER@HOST/DATABASE`, or `memory:` for a store that ends with the command. Default: BACKSTITCH_STORE or `store`
    /// of the settings, else `.backstitch/store.db` in this directory or in one above it, else the store of this project in the
    /// state directory of the user.
    #[arg(
        long,
        value_name = "ADDRESS",
        global = true,
        value_hint = ValueHint::AnyPath,
        value_parser = PathBufValueParser::new().map(keys::store_address)
    )]
    pub(crate) store: Option<StoreAddress>,
    /// Print JSON: one object, or one object per line for lists.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print colours: auto (on a terminal), always or never. `NO_COLOR` and `CLICOLOR_FORCE` are respected. Default:
    /// `color` of the settings, else auto.
    #[arg(long, value_name = "WHEN", global = true, hide_possible_values = true)]
    pub(crate) color: Option<ColorChoice>,
    /// Print for a screen reader: no status line, words in place of marks, tables as records. Default: `plain` of the settings.
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Print long output without a pager.
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// Print results and errors only: no progress.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log what the command does to standard error; given twice, in detail. RUST_LOG selects what is logged.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Append the log to a file. Default: BACKSTITCH_LOG if it is set.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) log_file: Option<PathBuf>,
    /// Trust the settings, the agent file and the store of this project, for this command only.
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Settings of the user.
    #[arg(skip)]
    pub(crate) config: Arc<Config>,
    /// Never ask on the terminal: a session that waits for a decision ends the command with exit code 3.
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
}

/// The options without a command.
#[derive(Parser)]
struct CommonOnly {
    #[command(flatten)]
    common: Common,
}

impl Common {
    /// Reads the settings of the user and the environment. They name the store, unless `--store` does.
    pub(crate) fn with_settings(mut self) -> Result<Self, ConfigError> {
        self.config = Arc::new(Config::load()?);
        self.store = self.store.or_else(|| self.config.store().map(keys::with_password));
        let log_file = std::env::var_os("BACKSTITCH_LOG").filter(|path| !path.is_empty());
        self.log_file = self.log_file.or(log_file.map(PathBuf::from));
        Ok(self)
    }

    /// Returns the options of a command line that is not complete. Only the store is read from it.
    pub(crate) fn of_command_line(words: impl Iterator<Item = OsString>) -> Self {
        let mut common = CommonOnly::parse_from([""]).common;
        let mut words = words.skip_while(|word| word != "--");
        while let Some(word) = words.next() {
            if word == "--store" {
                common.store = words.next().map(keys::store_address);
            } else if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--store=")) {
                common.store = Some(keys::store_address(path));
            }
        }
        common.clone().with_settings().unwrap_or(common)
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
        if self.quiet {
            terminal::be_quiet();
        }
        if self.json {
            terminal::be_exact();
        }
        if self.plain || self.config.strongest(|settings| settings.plain) == Some(true) {
            terminal::be_plain();
        }
    }

    /// Returns options for hints about sessions of a store. They name the store unless it is the default of
    /// this directory.
    pub(crate) fn naming(&self, store: &StoreAddress) -> Self {
        let mut common = self.clone();
        if self.store.is_none() && self.known_store().as_ref().and_then(StoreAddress::path) != store.path() {
            common.store = Some(store.clone());
        }
        common
    }

    /// Returns the store that a command would use, without asking anything.
    pub(crate) fn known_store(&self) -> Option<StoreAddress> {
        let of_project = || stores::existing(&std::env::current_dir().ok()?).ok()?.map(StoreAddress::File);
        self.store.clone().or_else(of_project)
    }

    /// Whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        !self.json && !self.no_input && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Formats a command line that refers to the same store as this command, and can be executed unchanged.
    pub(crate) fn hint(&self, command: impl Display) -> String {
        match &self.store {
            Some(store) => format!("backstitch {command} --store {}", quoted(&store.to_string())),
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

/// Formats a number of things, such as `1 record`, `2 records` or `3 entries`.
pub(crate) fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    match (number.try_into().unwrap_or(u64::MAX), noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (number, Some(stem)) => format!("{number} {stem}ies"),
        (number, None) => format!("{number} {noun}s"),
    }
}
