//! The tools of an agent, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::tool::{Tool, ToolName};

/// The tools that can be called, by name.
///
/// ```
/// use backstitch_core::tool::{Tool, ToolContext, ToolResult};
/// use backstitch_runtime::Tools;
///
/// let wait = Tool::builder("wait", "Does nothing.")?
///     .handler(|_: ToolContext, (): ()| async { Ok(ToolResult::ok("waited")) });
/// let tools = Tools::new([wait.clone()])?;
/// assert!(tools.get("wait").is_some());
/// assert!(Tools::new([wait.clone(), wait]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tools {
    tools: Arc<BTreeMap<ToolName, Tool>>,
}

/// An error for two tools of one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are two tools called {name}")]
pub struct DuplicateTool {
    /// The name of both.
    pub name: ToolName,
}

impl Tools {
    /// Creates a set of tools. Fails if two have the same name.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self, DuplicateTool> {
        let mut all = BTreeMap::new();
        for tool in tools {
            let name = tool.name().clone();
            if all.insert(name.clone(), tool).is_some() {
                return Err(DuplicateTool { name });
            }
        }
        Ok(Self { tools: Arc::new(all) })
    }

    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        ToolName::new(name).ok().and_then(|name| self.tools.get(&name))
    }

    /// Returns all tools, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }
}

impl IntoIterator for Tools {
    type Item = Tool;
    type IntoIter = std::vec::IntoIter<Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().cloned().collect::<Vec<_>>().into_iter()
    }
}
