//! How the tools of a server differ from those that were pinned.

use serde::{Deserialize, Serialize};

use super::pinned::PinnedTool;

/// How the tools of a server differ from those that were pinned, by the server's names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolListChange {
    /// Tools that were not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Tools that are no longer there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Tools with other parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

impl ToolListChange {
    /// Compares two lists. Other descriptions are not a difference.
    pub fn between(before: &[PinnedTool], after: &[PinnedTool]) -> Self {
        let find = |tools: &'_ [PinnedTool], name: &str| tools.iter().position(|tool| tool.name == name);
        let mut change = Self::default();
        for tool in after {
            match find(before, &tool.name) {
                None => change.added.push(tool.name.clone()),
                Some(at) if !before[at].is_compatible(tool) => change.changed.push(tool.name.clone()),
                Some(_) => {}
            }
        }
        let gone = before.iter().filter(|tool| find(after, &tool.name).is_none());
        change.removed.extend(gone.map(|tool| tool.name.clone()));
        change
    }

    /// True if the lists are the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::pinned::Hints;
    use super::*;

    fn tool(name: &str, description: &str, property: &str) -> PinnedTool {
        PinnedTool {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object", "properties": {property: {"type": "string"}}}),
            hints: Hints::default(),
        }
    }

    #[test]
    fn added_removed_and_changed_tools_are_listed() {
        let before = [tool("hem", "Hems.", "a"), tool("knit", "Knits.", "a"), tool("sew", "Sews.", "a")];
        let after = [tool("hem", "Hems well.", "a"), tool("sew", "Sews.", "b"), tool("darn", "Darns.", "a")];
        let change = ToolListChange::between(&before, &after);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(change.added, names(&["darn"]));
        assert_eq!(change.removed, names(&["knit"]));
        assert_eq!(change.changed, names(&["sew"]));
        assert!(ToolListChange::between(&before, &before).is_empty());
    }
}
