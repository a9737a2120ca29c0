//! `init`: writes a commented agent file or settings file. An existing file is never changed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::stores;
use clap::Args;
use serde_json::json;

use crate::common::{Common, quoted};
use crate::config::{ConfigError, ProjectSettings, user_file};
use crate::open::write_new;
use crate::project;
use crate::report::Report;
use crate::trust::Subject;

const AGENT: &str = include_str!("agent.toml");
const SETTINGS: &str = include_str!("settings.toml");

#[derive(Args)]
pub(crate) struct Init {
    /// Agent file to write. Default: agent.toml.
    #[arg(value_name = "FILE", conflicts_with_all = ["project", "user"])]
    file: Option<PathBuf>,
    /// Write the settings of this project, backstitch.toml at its root, instead of an agent file.
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Write the settings of the user instead of an agent file.
    #[arg(long)]
    user: bool,
}

impl Init {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let here = std::env::current_dir()?;
        let root = project::root(&here);
        let (path, text) = if self.user {
            (user_file().ok_or(ConfigError::NoDirectory)?, SETTINGS)
        } else if self.project {
            (root.join(ProjectSettings::FILE), SETTINGS)
        } else {
            (self.file.unwrap_or_else(|| PathBuf::from("agent.toml")), AGENT)
        };
        if let Some(parent) = path.parent().filter(|parent| self.user && !parent.exists()) {
            stores::make_private(parent)
                .with_context(|| format!("{} cannot be created", parent.display()))?;
        }
        // Settings of the user are readable only by the user.
        write_new(&path, text, if self.user { 0o600 } else { 0o666 })?;
        trust(&root, &path);
        let next = if self.user || self.project {
            "`backstitch config show --origin` prints the settings that apply".to_owned()
        } else {
            let agent = quoted(&path.to_string_lossy());
            format!("`backstitch run \"Say what you can do\" --agent {agent}` starts it")
        };
        let report = Report::new(&json!({"v": 1, "path": path.to_string_lossy()}));
        Ok(report.line(format!("wrote {}", path.display())).line(next).print(common))
    }
}

/// Trusts a file of the project that the user has just asked for.
fn trust(root: &Path, path: &Path) {
    let mut subject = Subject::new(root);
    if subject.holds(path) && subject.add_file(path).is_ok() {
        // Where this cannot be recorded, the next command asks.
        let _ = subject.record();
    }
}

#[cfg(test)]
mod tests {
    use backstitch::agent_file::AgentDefinition;

    use super::*;

    fn with_examples(text: &str) -> String {
        text.lines().map(|line| format!("{}\n", line.strip_prefix("#: ").unwrap_or(line))).collect()
    }

    #[test]
    fn the_agent_file_is_valid_with_and_without_its_examples() {
        AgentDefinition::from_toml(AGENT).unwrap();
        let whole = AgentDefinition::from_toml(&with_examples(AGENT)).unwrap();
        assert_eq!((whole.command_tools.len(), whole.sub_agents.len()), (1, 1));
    }

    #[test]
    fn the_settings_are_valid_with_and_without_their_examples() {
        let directory = tempfile::tempdir().unwrap();
        for text in [SETTINGS.to_owned(), with_examples(SETTINGS)] {
            std::fs::write(directory.path().join(ProjectSettings::FILE), text).unwrap();
            assert!(ProjectSettings::read(directory.path()).unwrap().is_some());
        }
    }
}
