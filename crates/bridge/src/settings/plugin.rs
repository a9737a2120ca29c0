//! The guard as a plugin of Claude Code.
//!
//! A plugin holds the hooks outside of the project: no `git clean` deletes them, no rewind restores them, no commit carries
//! them, and no settings turn off the hooks of one project. It also adds commands: `/backstitch:points`, `/backstitch:rewind`
//! and `/backstitch:undo`. Its directory is a marketplace with this one plugin, so that `claude plugin` installs it.
//!
//! Claude Code copies a plugin when it is installed. So the hooks start a small script, which looks for this command where it
//! was, and then in `PATH`, and says if it is gone. With `--strict` the script denies a call then.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::error::SettingsError;
use super::file::{self, create_private, failed};
use crate::hooks;
use crate::program::Program;

/// Name of the marketplace and of the plugin.
const NAME: &str = "backstitch";

const SCRIPT: &str = r#"#!/bin/sh
# Starts the command of the guard. The first word names the event.
program=@PROGRAM@
[ -x "$program" ] || program=$(command -v backstitch) || program=
if [ -n "$program" ]; then exec "$program" guard hook claude-code@FLAGS@@STORE@; fi
echo "Backstitch is neither at" @PROGRAM@ "nor in PATH, so this step is not recorded" >&2
[ "$1" = PreToolUse ] && exit @MISSING@
exit 1
"#;

const POINTS: &str = r#"---
description: List the points of this conversation that its files can be rewound to
allowed-tools: Bash(@PROGRAM@ guard points:*)
---

These points are recorded, the latest first:

!`@PROGRAM@ guard points@STORE@`

Show this list to the user as it is. Do nothing else.
"#;

const REWIND: &str = r#"---
description: Rewind the files of the project to a point of this conversation
argument-hint: POINT
allowed-tools: Bash(@PROGRAM@ guard rewind:*)
---

!`@PROGRAM@ guard rewind@STORE@ $ARGUMENTS`

The files of the project were rewound as it says, unless it says that it failed. Tell the user what it says. Files that you have read
before may differ now: read them again before you use them. Do nothing else.
"#;

const UNDO: &str = r#"---
description: Undo the last rewind of the files of the project
allowed-tools: Bash(@PROGRAM@ guard undo:*)
---

!`@PROGRAM@ guard undo@STORE@`

The last rewind was undone as it says, unless it says that it failed. Tell the user what it says. Files that you have read before may
differ now: read them again before you use them. Do nothing else.
"#;

/// The plugin, in a marketplace of its own below the state directory of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    marketplace: PathBuf,
}

/// How the plugin starts the guard.
#[derive(Debug, Clone)]
pub struct PluginCommand {
    /// The path of the guard, quoted for a shell.
    pub program: String,
    /// Options of the hooks, each with a space before it.
    pub flags: String,
    /// The option that names the store, with a space before it; else empty.
    pub store: String,
    /// Whether a call is denied if the guard is gone.
    pub denies: bool,
}

impl Plugin {
    /// Name for `claude plugin install`.
    pub const INSTALLED_AS: &str = "backstitch@backstitch";

    /// Returns the plugin of a user, which may not be written yet.
    pub fn below(state: &Path) -> Self {
        Self { marketplace: state.join("guard").join("claude-code-plugin") }
    }

    /// Returns the directory of the marketplace.
    pub fn marketplace(&self) -> &Path {
        &self.marketplace
    }

    /// Returns the directory of the plugin itself.
    pub fn directory(&self) -> PathBuf {
        self.marketplace.join(NAME)
    }

    /// Whether it was written.
    pub fn exists(&self) -> bool {
        self.directory().join("hooks/hooks.json").exists()
    }

    /// Writes the plugin.
    pub fn write(&self, command: &PluginCommand) -> Result<(), SettingsError> {
        let place = &self.marketplace;
        create_private(place).map_err(failed(place, "created"))?;
        let version = env!("CARGO_PKG_VERSION");
        let owner = json!({"name": "Backstitch"});
        let about =
            "Records what Claude Code does to the files of a project, so that every step can be undone.";
        let plugin =
            json!({"name": NAME, "source": format!("./{NAME}"), "description": about, "version": version});
        let filled =
            |text: &str| text.replace("@PROGRAM@", &command.program).replace("@STORE@", &command.store);
        let script = filled(SCRIPT)
            .replace("@FLAGS@", &command.flags)
            .replace("@MISSING@", if command.denies { "2" } else { "1" });
        let files = [
            (
                ".claude-plugin/marketplace.json",
                file::pretty(&json!({"name": NAME, "owner": owner, "plugins": [plugin]})),
            ),
            (
                "backstitch/.claude-plugin/plugin.json",
                file::pretty(
                    &json!({"name": NAME, "version": version, "description": about, "author": owner}),
                ),
            ),
            ("backstitch/hooks/hooks.json", file::pretty(&json!({ "hooks": hook_entries() }))),
            ("backstitch/hook", script),
            ("backstitch/commands/points.md", filled(POINTS)),
            ("backstitch/commands/rewind.md", filled(REWIND)),
            ("backstitch/commands/undo.md", filled(UNDO)),
        ];
        for (name, text) in files {
            file::write(&place.join(name), &text)?;
        }
        let script = self.directory().join("hook");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
            .map_err(failed(&script, "made runnable"))
    }
}

fn hook_entries() -> Map<String, Value> {
    let entry = |event: &&str| {
        let command = format!("\"${{CLAUDE_PLUGIN_ROOT}}/hook\" {event}");
        let timeout = hooks::timeout(Program::ClaudeCode, event);
        let entry = json!({"type": "command", "command": command, "timeout": timeout});
        ((*event).to_owned(), json!([{ "hooks": [entry] }]))
    };
    hooks::events(Program::ClaudeCode).iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_script_finds_the_command_or_says_that_it_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let plugin = Plugin::below(directory.path());
        let program = directory.path().join("a program");
        let command = |flags: &str, denies| PluginCommand {
            program: format!("'{}'", program.display()),
            flags: flags.to_owned(),
            store: " --store /s".to_owned(),
            denies,
        };
        assert!(!plugin.exists());
        plugin.write(&command(" --strict", true)).unwrap();
        assert!(plugin.exists());
        let run = |event: &str| {
            let mut command = Command::new(plugin.directory().join("hook"));
            command.arg(event).env("PATH", "/usr/bin:/bin").output().unwrap()
        };
        let gone = run("PreToolUse");
        assert_eq!(gone.status.code(), Some(2), "{gone:?}");
        assert!(String::from_utf8_lossy(&gone.stderr).contains("not recorded"), "{gone:?}");
        assert_eq!(run("Stop").status.code(), Some(1));
        fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&run("Stop").stdout),
            "guard hook claude-code --strict --store /s\n"
        );
        plugin.write(&command("", false)).unwrap();
        fs::remove_file(&program).unwrap();
        assert_eq!(run("PreToolUse").status.code(), Some(1), "the call runs");
    }
}
