//! The tools of a server, as clients see them.

use std::collections::BTreeMap;

use backstitch_core::journal::Recovery;
use backstitch_core::tool::ToolSpec;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig, Tool, ToolAnnotations};

use super::content::object;
use super::history::{HISTORY_TOOLS, HistoryTool};
use super::host::ToolOffer;

/// The tools of a server.
pub(super) struct OfferedTools {
    pub(super) info: ServerConfig,
    pub(super) tools: Vec<Tool>,
    /// The tools about the history, by the names that they have here.
    pub(super) history: BTreeMap<String, HistoryTool>,
}

impl OfferedTools {
    /// Returns the tools, those of the history last if they are offered.
    pub(super) fn new(offer: &ToolOffer, has_history: bool) -> Self {
        let mut tools: Vec<Tool> = offer.tools.iter().map(|spec| offered(spec)).collect();
        let mut history = BTreeMap::new();
        for tool in HISTORY_TOOLS.into_iter().filter(|_| has_history) {
            // A tool of the agent keeps its name.
            let is_taken = tools.iter().any(|other| other.name == tool.name());
            let name = if is_taken { format!("history_{}", tool.name()) } else { tool.name().to_owned() };
            tools.push(tool.offered(&name));
            history.insert(name, tool);
        }
        let mut info = information(&format!("backstitch/{}", offer.name));
        info.instructions.clone_from(&offer.instructions);
        Self { info, tools, history }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}

/// Describes a server of this name.
pub(super) fn information(name: &str) -> ServerConfig {
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
}

fn offered(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::new(spec.name.to_string(), spec.description.clone(), object(&spec.parameters));
    // The results are texts and values of any form; a schema would oblige the server to send them as declared.
    tool.output_schema = None;
    tool.with_annotations(annotations(spec))
}

fn annotations(spec: &ToolSpec) -> ToolAnnotations {
    let effect = spec.strongest_effect();
    let leaves = effect.acts_outside() || spec.address_argument.is_some();
    let hints = ToolAnnotations::new().read_only(effect.only_reads()).open_world(leaves);
    match effect.recovery() {
        Recovery::Repeat | Recovery::RepeatWithKey => hints.idempotent(true),
        Recovery::RestoreAndRepeat | Recovery::Decide => hints,
    }
}
