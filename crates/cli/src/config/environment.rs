//! Settings in environment variables.

use std::ffi::OsString;
use std::path::PathBuf;

use backstitch::agent_file::{ModelProvider, Problem, ToolChoice, check_base_url};
use clap::ValueEnum as _;
use toml::Value;

use super::error::ConfigError;
use super::layer::{Entry, Layer, Origin};
use super::settings::{ApproveSetting, PagerSetting, Settings};
use crate::terminal::ColorChoice;

/// Variables, and the settings that they stand for.
pub(super) const VARIABLES: [(&str, &str); 9] = [
    ("BACKSTITCH_MODEL", "model"),
    ("BACKSTITCH_BASE_URL", "base_url"),
    ("BACKSTITCH_AGENT", "agent"),
    ("BACKSTITCH_STORE", "store"),
    ("BACKSTITCH_TOOLS", "tools"),
    ("BACKSTITCH_APPROVE", "approve"),
    ("BACKSTITCH_MODE", "mode"),
    ("BACKSTITCH_COLOR", "color"),
    ("BACKSTITCH_PAGER", "pager"),
];

/// Returns the address in the variable that the provider's own programs read, such as `OPENAI_BASE_URL`.
pub(crate) fn provider_address(provider: &ModelProvider) -> Result<Option<String>, Problem> {
    let variable = match provider.as_str() {
        "openai" | "openai-chat" => "OPENAI_BASE_URL",
        "anthropic" => "ANTHROPIC_BASE_URL",
        _ => return Ok(None),
    };
    let Some(url) = std::env::var(variable).ok().filter(|url| !url.trim().is_empty()) else {
        return Ok(None);
    };
    check_base_url(&url).map_err(|problem| Problem::new([variable], problem.message))?;
    Ok(Some(url))
}

/// Reads the variables. Empty ones are ignored.
pub(super) fn layer(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Layer, ConfigError> {
    let mut layer = Layer::default();
    for (name, key) in VARIABLES {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
        let shown = value.to_string_lossy().into_owned();
        set(&mut layer.settings, key, value)
            .map_err(|message| ConfigError::InVariable { variable: name, message })?;
        let (value, origin) = (Value::String(shown), Origin::Environment { variable: name });
        layer.entries.push(Entry { key: vec![key.to_owned()], value, origin });
    }
    Ok(layer)
}

fn set(settings: &mut Settings, key: &str, value: OsString) -> Result<(), String> {
    match (key, value.into_string()) {
        // Paths need not be text.
        ("agent", path) => settings.agent = Some(path.map_or_else(PathBuf::from, PathBuf::from)),
        ("store", path) => settings.store = Some(path.map_or_else(PathBuf::from, PathBuf::from)),
        (_, Err(_)) => return Err("it is not UTF-8 text".to_owned()),
        ("model", Ok(text)) => settings.model = Some(text.parse().map_err(|error| format!("{error}"))?),
        ("base_url", Ok(text)) => {
            check_base_url(&text).map_err(|problem| problem.message)?;
            settings.base_url = Some(text);
        }
        ("tools", Ok(text)) => settings.tools = Some(ToolChoice::of_list(&text)),
        ("approve", Ok(text)) => settings.approve = Some(ApproveSetting::of_list(&text)),
        ("mode", Ok(text)) => settings.mode = Some(text.parse().map_err(|error| format!("{error}"))?),
        ("color", Ok(text)) => {
            let unknown = |_| format!("{text:?} is none of auto, always, never");
            settings.color = Some(ColorChoice::from_str(&text, false).map_err(unknown)?);
        }
        (_, Ok(text)) => settings.pager = Some(PagerSetting::Command(text)),
    }
    Ok(())
}
