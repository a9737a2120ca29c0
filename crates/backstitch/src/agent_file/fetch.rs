//! The tool that reads pages, as agent files configure it.

use serde::{Deserialize, Serialize};

use super::error::Problem;
use crate::approval::WebHost;

/// Options of the tool `fetch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FetchDefinition {
    /// Hosts that may be read although their addresses are private or their ports unusual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub private_hosts: Vec<String>,
}

impl FetchDefinition {
    /// Refuses what is not a host.
    pub fn check(&self) -> Result<(), Problem> {
        match self.private_hosts.iter().find(|name| WebHost::parse(name).is_none()) {
            Some(name) => {
                let message =
                    format!("{name:?} is not a host: write \"localhost:8080\" or \"wiki.example.com\"");
                Err(Problem::new(["fetch", "private_hosts"], message))
            }
            None => Ok(()),
        }
    }
}
