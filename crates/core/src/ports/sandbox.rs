//! What the processes of a tool may change outside of the workspace.
//!
//! A [`Sandbox`] is plain data. The executor of processes enforces it with the means of the system, and
//! reports what it cannot enforce.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Files that processes may write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// The workspace, and a temporary directory that is removed after the call.
    Workspace,
    /// Only a temporary directory that is removed after the call.
    ReadOnly,
    /// Everything that the user may write.
    #[default]
    Off,
}

impl SandboxMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Workspace, Self::ReadOnly, Self::Off];

    /// Returns the name: `workspace`, `read-only` or `off`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::ReadOnly => "read-only",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// An error for a text that names no mode.
#[derive(Debug, thiserror::Error)]
#[error("there is no sandbox {name:?}; there are workspace, read-only and off")]
pub struct UnknownSandbox {
    /// The text.
    pub name: String,
}

impl std::str::FromStr for SandboxMode {
    type Err = UnknownSandbox;

    fn from_str(text: &str) -> Result<Self, UnknownSandbox> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| UnknownSandbox { name: text.to_owned() })
    }
}

/// The limits of a tool's processes. By default there are none.
///
/// The text form is the name of a mode, or a table with `mode` (default `workspace`), `write` and `network`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Files that processes may write.
    pub mode: SandboxMode,
    /// Further files and directories that they may write, such as the cache of a package manager.
    pub write: Vec<PathBuf>,
    /// Whether they may use the network.
    pub network: bool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::off()
    }
}

impl Sandbox {
    /// Processes write only in the workspace. They may use the network.
    pub fn workspace() -> Self {
        Self { mode: SandboxMode::Workspace, write: Vec::new(), network: true }
    }

    /// Processes write only in a temporary directory. They may use the network.
    pub fn read_only() -> Self {
        Self { mode: SandboxMode::ReadOnly, ..Self::workspace() }
    }

    /// Processes are not confined.
    pub fn off() -> Self {
        Self { mode: SandboxMode::Off, ..Self::workspace() }
    }

    /// Allows processes to write a file or a directory outside of the workspace.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Refuses the network.
    #[must_use]
    pub fn without_network(mut self) -> Self {
        self.network = false;
        self
    }

    /// Returns whether processes are not confined.
    pub fn is_off(&self) -> bool {
        self.mode == SandboxMode::Off
    }

    /// Returns whether a process can change the content of no file outside of the workspace, and reach nothing
    /// over the network. Then its call can be rolled back and run again after a crash.
    pub fn keeps_effects_inside(&self) -> bool {
        !self.is_off() && !self.network && self.write.is_empty()
    }

    /// Fails if there are limits without a mode that enforces them.
    pub fn check(&self) -> Result<(), InvalidSandbox> {
        let setting = match self {
            _ if !self.is_off() => return Ok(()),
            Self { network: false, .. } => "network",
            Self { write, .. } if !write.is_empty() => "write",
            _ => return Ok(()),
        };
        Err(InvalidSandbox { setting })
    }
}

/// An error for limits that nothing enforces.
#[derive(Debug, thiserror::Error)]
#[error(
    "the sandbox is off, so `{setting}` has no effect: remove it, or set the mode to workspace or read-only"
)]
pub struct InvalidSandbox {
    /// The setting.
    pub setting: &'static str,
}

impl Serialize for Sandbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Table<'a> {
            mode: SandboxMode,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            write: &'a [PathBuf],
            network: bool,
        }
        match self {
            Self { mode, write, network: true } if write.is_empty() => mode.serialize(serializer),
            Self { mode, write, network } => {
                Table { mode: *mode, write, network: *network }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            #[serde(default = "workspace")]
            mode: SandboxMode,
            #[serde(default)]
            write: Vec<PathBuf>,
            #[serde(default = "on")]
            network: bool,
        }
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Sandbox;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter
                    .write_str("\"workspace\", \"read-only\", \"off\", or a table with `write` and `network`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sandbox, E> {
                let mode: SandboxMode = text.parse().map_err(E::custom)?;
                Ok(Sandbox { mode, ..Sandbox::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sandbox, A::Error> {
                let Table { mode, write, network } = Table::deserialize(MapAccessDeserializer::new(map))?;
                let sandbox = Sandbox { mode, write, network };
                sandbox.check().map_err(de::Error::custom)?;
                Ok(sandbox)
            }
        }
        fn workspace() -> SandboxMode {
            SandboxMode::Workspace
        }
        fn on() -> bool {
            true
        }
        deserializer.deserialize_any(Forms)
    }
}

/// Something that a sandbox refused to a process, as far as the output of the process shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxRefusal {
    /// A write of this path.
    Write(PathBuf),
    /// A write of this path, which may be written but did not exist when the process was started.
    Missing(PathBuf),
    /// The network.
    Network,
    /// The output reports a refusal, and names no path that the sandbox protects.
    Unnamed,
}

impl SandboxRefusal {
    /// Returns the path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Write(path) | Self::Missing(path) => Some(path),
            Self::Network | Self::Unnamed => None,
        }
    }
}

impl fmt::Display for SandboxRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path) => write!(
                formatter,
                "the sandbox refused to write {}; a person can allow it with `write` in `[sandbox]`",
                path.display()
            ),
            Self::Missing(path) => write!(
                formatter,
                "the sandbox refused to write {}: `write` in `[sandbox]` allows it, but it did not exist when \
                 the command was started; a person has to create it",
                path.display()
            ),
            Self::Network => formatter.write_str(
                "the sandbox refuses the network; a person can allow it with `network = true` in `[sandbox]`",
            ),
            Self::Unnamed => formatter.write_str(
                "something was refused, and the output does not name it; it may be the sandbox, which allows \
                 writes only in the workspace, in $TMPDIR and in the paths of `write` in `[sandbox]`",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Sandbox, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_sandbox_is_a_name_or_a_table() {
        assert_eq!(read("\"workspace\""), Ok(Sandbox::workspace()));
        assert_eq!(read("\"read-only\""), Ok(Sandbox::read_only()));
        assert_eq!(read("\"off\""), Ok(Sandbox::off()));
        assert_eq!(read("{}"), Ok(Sandbox::workspace()));
        assert_eq!(
            read(r#"{"write": ["/a"], "network": false}"#),
            Ok(Sandbox::workspace().write("/a").without_network())
        );
        for sandbox in [
            Sandbox::workspace(),
            Sandbox::off(),
            Sandbox::read_only().without_network(),
            Sandbox::workspace().write("/a").write("b c"),
        ] {
            assert_eq!(read(&serde_json::to_string(&sandbox).unwrap()), Ok(sandbox));
        }
        for (text, words) in [
            ("\"of\"", "there are workspace"),
            ("3", "or a table"),
            (r#"{"mode": "none"}"#, "workspace"),
            (r#"{"writes": []}"#, "unknown field"),
            (r#"{"mode": "off", "network": false}"#, "`network` has no effect"),
            (r#"{"mode": "off", "write": ["/a"]}"#, "`write` has no effect"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn only_a_process_without_network_and_further_paths_can_be_repeated() {
        assert!(Sandbox::workspace().without_network().keeps_effects_inside());
        assert!(Sandbox::read_only().without_network().keeps_effects_inside());
        assert!(!Sandbox::workspace().keeps_effects_inside());
        assert!(!Sandbox::workspace().without_network().write("/a").keeps_effects_inside());
        assert!(!Sandbox { network: false, ..Sandbox::off() }.keeps_effects_inside());
    }
}
