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

use anyhow::Context as _;
use backstitch::stores::{make_private, state_directory};
use serde_json::{Map, Value, json};

use super::program::Program;
use crate::common::quoted;

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

/// Returns the directory of the marketplace.
fn marketplace() -> anyhow::Result<PathBuf> {
    Ok(state_directory()?.join("guard").join("claude-code-plugin"))
}

/// Returns the marketplace, if the plugin was written.
pub(super) fn written() -> Option<PathBuf> {
    marketplace().ok().filter(|place| directory(place).join("hooks/hooks.json").exists())
}

/// Returns the directory of the plugin itself.
pub(super) fn directory(marketplace: &Path) -> PathBuf {
    marketplace.join(NAME)
}

/// Returns what a person has to run so that Claude Code uses the plugin.
pub(super) fn advice(marketplace: &Path) -> [String; 2] {
    [
        format!("claude plugin marketplace add {}", quoted(&marketplace.to_string_lossy())),
        format!("claude plugin install {NAME}@{NAME}"),
    ]
}

/// Returns a line about the plugin.
pub(super) fn line(marketplace: &Path) -> String {
    let place = directory(marketplace);
    format!(
        "a plugin for Claude Code is in {}; `claude plugin list` shows whether it is installed",
        place.display()
    )
}

/// How the plugin starts this command.
pub(super) struct PluginCommand<'a> {
    pub(super) program: &'a Path,
    /// Options of the hooks, each with a space before it.
    pub(super) flags: String,
    /// The option that names the store, with a space before it; else empty.
    pub(super) store: String,
    /// Whether a call is denied if the command is gone.
    pub(super) denies: bool,
}

/// Writes the plugin. Returns the directory of its marketplace.
pub(super) fn write(command: &PluginCommand<'_>) -> anyhow::Result<PathBuf> {
    let place = marketplace()?;
    write_to(&place, command)
        .with_context(|| format!("the plugin cannot be written to {}", place.display()))?;
    Ok(place)
}

fn write_to(place: &Path, command: &PluginCommand<'_>) -> anyhow::Result<()> {
    let own = directory(place);
    make_private(place)?;
    let version = env!("CARGO_PKG_VERSION");
    let owner = json!({"name": "Backstitch"});
    let about = "Records what Claude Code does to the files of a project, so that every step can be undone.";
    let plugin =
        json!({"name": NAME, "source": format!("./{NAME}"), "description": about, "version": version});
    let program = quoted(&command.program.to_string_lossy());
    let filled = |text: &str| text.replace("@PROGRAM@", &program).replace("@STORE@", &command.store);
    let script = filled(SCRIPT)
        .replace("@FLAGS@", &command.flags)
        .replace("@MISSING@", if command.denies { "2" } else { "1" });
    let files = [
        (
            ".claude-plugin/marketplace.json",
            pretty(&json!({"name": NAME, "owner": owner, "plugins": [plugin]}))?,
        ),
        (
            "backstitch/.claude-plugin/plugin.json",
            pretty(&json!({"name": NAME, "version": version, "description": about, "author": owner}))?,
        ),
        ("backstitch/hooks/hooks.json", pretty(&json!({ "hooks": hooks() }))?),
        ("backstitch/hook", script),
        ("backstitch/commands/points.md", filled(POINTS)),
        ("backstitch/commands/rewind.md", filled(REWIND)),
        ("backstitch/commands/undo.md", filled(UNDO)),
    ];
    for (name, text) in files {
        super::file::write(&place.join(name), &text)?;
    }
    fs::set_permissions(own.join("hook"), fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn hooks() -> Map<String, Value> {
    let program = Program::ClaudeCode;
    let hook = |event: &&str| {
        let command = format!("\"${{CLAUDE_PLUGIN_ROOT}}/hook\" {event}");
        let entry = json!({"type": "command", "command": command, "timeout": program.timeout(event)});
        ((*event).to_owned(), json!([{ "hooks": [entry] }]))
    };
    program.events().iter().map(hook).collect()
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value)?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_script_finds_the_command_or_says_that_it_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("plugin");
        let program = directory.path().join("a program");
        let command = |flags: &str, denies| PluginCommand {
            program: &program,
            flags: flags.to_owned(),
            store: " --store /s".to_owned(),
            denies,
        };
        write_to(&place, &command(" --strict", true)).unwrap();
        let run = |event: &str| {
            let mut command = Command::new(super::directory(&place).join("hook"));
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
        write_to(&place, &command("", false)).unwrap();
        fs::remove_file(&program).unwrap();
        assert_eq!(run("PreToolUse").status.code(), Some(1), "the call runs");
    }
}
