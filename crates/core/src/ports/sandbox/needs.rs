//! Rights that one command asks for, beside those of its sandbox.
//!
//! They hold for this command only, and are part of its arguments, so that the person who approves the call sees them,
//! and its intent records them. Paths are absolute and hold no links: what is approved is what is opened.

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Sandbox, SandboxSockets};

/// Rights that a command needs beyond its sandbox. A person has to approve them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct CommandNeeds {
    /// Whether it needs the network.
    pub network: bool,
    /// Whether it needs sockets of other programs on this machine, such as docker or an ssh agent.
    pub sockets: bool,
    /// Absolute paths of hidden files and directories that it needs to read, such as keys.
    pub read: Vec<PathBuf>,
    /// Absolute paths of files and directories outside of the workspace that it needs to write. They have to exist.
    pub write: Vec<PathBuf>,
    /// Why it needs them, for the person who decides.
    pub reason: String,
}

impl CommandNeeds {
    /// Returns whether it needs nothing.
    pub fn is_empty(&self) -> bool {
        let Self { network, sockets, read, write, reason: _ } = self;
        !network && !sockets && read.is_empty() && write.is_empty()
    }

    /// Returns whether these rights include all of others: a path includes what is below it.
    pub fn covers(&self, others: &Self) -> bool {
        let leaves = |path: &Path| path.components().any(|part| part == Component::ParentDir);
        let holds =
            |own: &[PathBuf], path: &Path| !leaves(path) && own.iter().any(|own| path.starts_with(own));
        (self.network || !others.network)
            && (self.sockets || !others.sockets)
            && others.read.iter().all(|path| holds(&self.read, path))
            && others.write.iter().all(|path| holds(&self.write, path))
    }

    /// Returns a sandbox with these rights. One that is off has them already.
    #[must_use]
    pub fn widen(&self, sandbox: &Sandbox) -> Sandbox {
        let mut wider = sandbox.clone();
        if wider.is_off() {
            return wider;
        }
        // Sockets that follow the network in old sessions do not follow the network of one command.
        wider.sockets = Some(if self.sockets { SandboxSockets::On } else { sandbox.allowed_sockets() });
        wider.network |= self.network;
        wider.read.extend(self.read.iter().cloned());
        wider.write.extend(self.write.iter().cloned());
        wider
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_cover_the_same_and_fewer_rights() {
        let own =
            CommandNeeds { network: true, read: vec!["/home/tailor/.ssh".into()], ..Default::default() };
        let needs = |value: serde_json::Value| serde_json::from_value::<CommandNeeds>(value).unwrap();
        for fewer in [
            serde_json::json!({}),
            serde_json::json!({"network": true, "reason": "to fetch"}),
            serde_json::json!({"read": ["/home/tailor/.ssh/key"]}),
        ] {
            assert!(own.covers(&needs(fewer.clone())), "{fewer}");
        }
        for more in [
            serde_json::json!({"sockets": true}),
            serde_json::json!({"read": ["/home/tailor"]}),
            serde_json::json!({"read": ["/home/tailor/.sshd"]}),
            serde_json::json!({"read": ["/home/tailor/.ssh/../.aws"]}),
            serde_json::json!({"write": ["/home/tailor/.ssh"]}),
        ] {
            assert!(!own.covers(&needs(more.clone())), "{more}");
        }
    }

    #[test]
    fn a_command_gets_what_it_needs_and_nothing_else() {
        let sandbox = Sandbox::workspace().without_network().hide("/home/tailor/.ssh");
        assert_eq!(CommandNeeds::default().widen(&sandbox), sandbox);
        let needs =
            CommandNeeds { network: true, read: vec!["/home/tailor/.ssh".into()], ..Default::default() };
        let wider = needs.widen(&sandbox);
        assert!(wider.network && wider.write.is_empty());
        assert_eq!(wider.sockets, sandbox.sockets);
        assert_eq!(wider.read, [PathBuf::from("/home/tailor/.ssh")]);
        let old = Sandbox { sockets: None, ..sandbox };
        assert_ne!(needs.widen(&old).allowed_sockets(), SandboxSockets::On);
        let all = CommandNeeds { sockets: true, write: vec!["/cache".into()], ..needs };
        let wider = all.widen(&old);
        assert_eq!(wider.allowed_sockets(), SandboxSockets::On);
        assert!(!wider.keeps_effects_inside());
        assert_eq!(all.widen(&Sandbox::off()), Sandbox::off());
    }
}
