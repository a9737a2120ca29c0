//! The text form of a sandbox: the name of a mode, or a table.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{Sandbox, SandboxMode, SandboxSockets};

/// The table. A field that is absent has the meaning that it had before there was the field.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Sandbox", deny_unknown_fields, default = "Sandbox::of_table")]
struct Table {
    mode: SandboxMode,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    write: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<PathBuf>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hide: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read: Vec<PathBuf>,
    network: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sockets: Option<SandboxSockets>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminals: bool,
}

impl Serialize for Sandbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == (Self { mode: self.mode, ..Self::of_table() }) {
            return self.mode.serialize(serializer);
        }
        Table::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Sandbox;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "\"workspace\", \"read-only\", \"off\", or a table with `write`, `hide`, `network` and `sockets`",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sandbox, E> {
                let mode: SandboxMode = text.parse().map_err(E::custom)?;
                Ok(Sandbox { mode, ..Sandbox::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sandbox, A::Error> {
                let sandbox = Table::deserialize(MapAccessDeserializer::new(map))?;
                sandbox.check().map_err(de::Error::custom)?;
                Ok(sandbox)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Sandbox, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Sessions hold sandboxes of these forms from before there was a choice of sockets.
    #[test]
    fn a_sandbox_is_a_name_or_a_table() {
        let old = Sandbox { sockets: None, ..Sandbox::workspace() };
        assert_eq!(read("\"workspace\""), Ok(old.clone()));
        assert_eq!(read("\"read-only\""), Ok(Sandbox { mode: SandboxMode::ReadOnly, ..old.clone() }));
        assert_eq!(read("\"off\""), Ok(Sandbox::off()));
        assert_eq!(read("{}"), Ok(old.clone()));
        assert_eq!(
            read(r#"{"write": ["/a"], "network": false}"#),
            Ok(old.clone().write("/a").without_network())
        );
        assert_eq!(
            read(r#"{"sockets": "on", "terminals": true}"#),
            Ok(old.clone().sockets(SandboxSockets::On).with_terminals())
        );
        let resolved = Sandbox { missing: Some(Vec::new()), ..Sandbox::workspace() };
        for sandbox in [
            old,
            Sandbox::workspace(),
            Sandbox::off(),
            Sandbox::read_only().without_network(),
            Sandbox::workspace().write("/a").write("b c"),
            Sandbox::workspace().sockets(SandboxSockets::Off).with_terminals(),
            Sandbox::workspace().hide("/home/tailor/.ssh"),
            Sandbox { missing: Some(vec!["/b".into()]), ..resolved.clone().write("/a") },
            resolved,
        ] {
            assert_eq!(read(&serde_json::to_string(&sandbox).unwrap()), Ok(sandbox));
        }
        for (text, words) in [
            ("\"of\"", "there are workspace"),
            ("3", "or a table"),
            (r#"{"mode": "none"}"#, "workspace"),
            (r#"{"writes": []}"#, "unknown field"),
            (r#"{"sockets": "some"}"#, "off, inside, on"),
            (r#"{"mode": "off", "network": false}"#, "`network` has no effect"),
            (r#"{"mode": "off", "sockets": "inside"}"#, "`sockets` has no effect"),
            (r#"{"mode": "off", "terminals": true}"#, "`terminals` has no effect"),
            (r#"{"mode": "off", "write": ["/a"]}"#, "`write` has no effect"),
            (r#"{"mode": "off", "hide": ["/a"]}"#, "`hide` has no effect"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
