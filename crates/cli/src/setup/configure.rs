//! `config`: show and change settings.

use std::process::ExitCode;

use backstitch::providers::read_text;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use toml::Value;

use crate::common::Common;
use crate::config::{Config, ConfigError, Entry, Origin, edit, user_file};
use crate::open::trusted::add_project;
use crate::project;
use crate::report::{Report, ReportLine};

/// A setting, as JSON.
#[derive(Serialize)]
struct ShownSetting<'a> {
    key: String,
    value: &'a Value,
    #[serde(flatten)]
    origin: &'a Origin,
}

#[derive(Subcommand)]
pub(crate) enum Configure {
    /// Print the settings that apply here.
    #[command(after_help = "Example:\n  backstitch config show --origin")]
    Show {
        /// Print where each value comes from. Default: only values.
        #[arg(long)]
        origin: bool,
    },
    /// Print the path of the user's file.
    #[command(after_help = "Example:\n  $EDITOR \"$(backstitch config path)\"")]
    Path,
    /// Set a key in the user's file. Comments are kept.
    #[command(
        after_help = "Examples:\n  backstitch config set model openai:MODEL\n  backstitch config set budget.tokens 200000"
    )]
    Set {
        /// Key, such as model or budget.tokens.
        key: String,
        /// Value: TOML, or a text.
        value: String,
    },
    /// Remove a key from the user's file.
    #[command(after_help = "Example:\n  backstitch config unset model")]
    Unset {
        /// Key, such as model or budget.tokens.
        key: String,
    },
}

impl Configure {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let report = match self {
            Self::Show { origin } => {
                let (mut config, root) = (Config::load()?, project::root(&std::env::current_dir()?));
                if let Some((path, false)) = add_project(&root, &mut config)? {
                    eprintln!("{} is not used, because it is not trusted", path.display());
                }
                let entries = config.effective();
                let settings = entries.iter().map(|Entry { key, value, origin }| {
                    let key = written_key(key);
                    ShownSetting { key, value, origin }
                });
                let settings: Vec<_> = settings.collect();
                Report::new(&json!({"v": 1, "settings": settings})).lines(lines(&entries, origin))
            }
            Self::Path => {
                let path = user_file().ok_or(ConfigError::NoDirectory)?;
                let path = path.to_string_lossy();
                Report::new(&json!({"v": 1, "path": path})).line(&*path)
            }
            Self::Set { key, value } => {
                change(&key, |path, text| edit::with_value(path, text, &key, &value).map(Some))?
            }
            Self::Unset { key } => change(&key, |path, text| edit::without(path, text, &key))?,
        };
        Ok(report.print(common))
    }
}

/// Changes the user's file. Nothing is written if the change returns no text.
fn change(
    key: &str,
    change: impl FnOnce(&std::path::Path, &str) -> Result<Option<String>, ConfigError>,
) -> anyhow::Result<Report> {
    let path = user_file().ok_or(ConfigError::NoDirectory)?;
    let text = match read_text(&path, 1 << 20) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(ConfigError::Unreadable { path, source }.into()),
    };
    let changed = change(&path, &text)?;
    let is_changed = changed.as_ref().is_some_and(|changed| *changed != text);
    if let Some(changed) = changed.filter(|_| is_changed) {
        edit::write(&path, &changed)?;
    }
    let shown = path.display();
    let done = if is_changed { format!("changed {shown}") } else { format!("{shown} was not changed") };
    let path = path.to_string_lossy();
    Ok(Report::new(&json!({"v": 1, "path": path, "key": key, "changed": is_changed})).line(done))
}

/// Formats entries as TOML, with their origins as comments.
fn lines(entries: &[Entry], origin: bool) -> Vec<ReportLine> {
    let lines: Vec<_> =
        entries.iter().map(|entry| format!("{} = {}", written_key(&entry.key), entry.value)).collect();
    let widest = lines.iter().map(|line| line.chars().count()).filter(|length| *length <= 60).max();
    let width = widest.unwrap_or(0);
    let line = |(line, entry): (&String, &Entry)| match origin {
        true => format!("{line:<width$}  # {}\n", entry.origin),
        false => format!("{line}\n"),
    };
    lines.iter().zip(entries).map(line).map(ReportLine::Data).collect()
}

/// Formats a key as TOML.
fn written_key(key: &[String]) -> String {
    let is_bare = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let parts = key
        .iter()
        .map(|part| if is_bare(part) { part.clone() } else { Value::String(part.clone()).to_string() });
    parts.collect::<Vec<_>>().join(".")
}
