//! The list of a server's tools, with limits while it is read.
//!
//! A tool that no provider would accept is left out, with a note: a provider refuses a whole request for one bad
//! schema.

use std::collections::HashSet;

use rmcp::RoleClient;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::Peer;
use serde_json::Value;

use super::address::of_request;
use super::incoming::{MOST_TOOLS, left_out};
use super::pinned::PinnedTool;

/// The most pages of a list.
const MOST_PAGES: usize = 100;

/// The largest schema of a tool, in bytes.
const LARGEST_SCHEMA: usize = 256 * 1024;

/// The longest description, in characters.
const LONGEST_DESCRIPTION: usize = 20_000;

/// The most notes that name a tool.
const MOST_NOTES: usize = 10;

/// The tools of a server.
#[derive(Debug, Clone, Default)]
pub struct ToolListing {
    /// The tools that can be offered.
    pub tools: Vec<PinnedTool>,
    /// What was left out, and why, in sentences for people.
    pub notes: Vec<String>,
}

impl ToolListing {
    /// Asks a server for its tools.
    pub(super) async fn read(peer: &Peer<RoleClient>) -> Result<Self, String> {
        let mut listing = Self::default();
        let (mut unnamed, mut over) = (0, 0);
        let (mut cursor, mut cursors) = (None::<String>, HashSet::new());
        for page in 0.. {
            if page == MOST_PAGES {
                listing.notes.push(format!(
                    "the list of tools has more than {MOST_PAGES} pages; the rest of it was not read"
                ));
                break;
            }
            let mut asked = PaginatedRequestParams::default();
            asked.cursor.clone_from(&cursor);
            let answer = peer.list_tools(Some(asked)).await.map_err(|error| of_request(&error))?;
            let lost = left_out(answer.meta.as_deref());
            if answer.tools.len() + lost > MOST_TOOLS {
                over += lost;
            } else {
                unnamed += lost;
            }
            for tool in &answer.tools {
                if listing.tools.len() == MOST_TOOLS {
                    over += 1;
                } else {
                    listing.add(PinnedTool::of(tool));
                }
            }
            cursor = answer.next_cursor;
            match &cursor {
                None => break,
                Some(next) if !cursors.insert(next.clone()) => {
                    return Err("its list of tools does not end: it repeats a cursor".to_owned());
                }
                Some(_) => {}
            }
        }
        let more = listing.notes.len().saturating_sub(MOST_NOTES);
        if more > 0 {
            listing.notes.truncate(MOST_NOTES);
            listing.notes.push(format!("{more} more tools are left out for such reasons"));
        }
        if unnamed > 0 {
            listing.notes.push(format!(
                "{unnamed} tools are left out: they are not described as the protocol requires"
            ));
        }
        if over > 0 {
            listing.notes.push(format!(
                "{over} tools are left out: at most {MOST_TOOLS} tools of a server are offered"
            ));
        }
        Ok(listing)
    }

    fn add(&mut self, mut tool: PinnedTool) {
        if let Some((end, _)) = tool.description.char_indices().nth(LONGEST_DESCRIPTION) {
            tool.description.truncate(end);
        }
        match problem(&tool) {
            None if self.tools.iter().any(|other| other.name == tool.name) => {
                self.leave_out(&tool, "another tool has this name");
            }
            None => self.tools.push(tool),
            Some(problem) => self.leave_out(&tool, &problem),
        }
    }

    fn leave_out(&mut self, tool: &PinnedTool, why: &str) {
        let name: String = tool.name.chars().take(60).collect();
        self.notes.push(format!("the tool {name:?} is left out: {why}"));
    }
}

/// Returns why a tool cannot be offered.
fn problem(tool: &PinnedTool) -> Option<String> {
    if tool.name.trim().is_empty() {
        return Some("its name is empty".to_owned());
    }
    let schema = &tool.parameters;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Some("its parameters are not a JSON Schema of an object".to_owned());
    }
    if schema.to_string().len() > LARGEST_SCHEMA {
        return Some(format!("its schema has more than {} KiB", LARGEST_SCHEMA / 1024));
    }
    // What the runner compiles when the tool is called.
    let error = jsonschema::validator_for(schema).err()?;
    let shown: String = error.to_string().chars().take(200).collect();
    Some(format!("its parameters are not a valid JSON Schema: {shown}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::pinned::Hints;
    use super::*;

    #[test]
    fn tools_that_providers_would_refuse_are_left_out_with_the_reason() {
        let mut listing = ToolListing::default();
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let schemas = [
            ("hem", object(json!({"a": {"type": "string"}}))),
            ("", object(json!({}))),
            (" ", object(json!({}))),
            ("typo", object(json!({"a": {"type": "nosuch"}}))),
            ("wrong", object(json!({"a": 7}))),
            ("list", json!({"type": "array"})),
            ("text", json!("object")),
            ("hem", object(json!({}))),
            ("large", object(json!({"a": {"description": "a".repeat(300_000)}}))),
        ];
        for (name, parameters) in schemas {
            let name = name.to_owned();
            listing.add(PinnedTool { name, description: String::new(), parameters, hints: Hints::default() });
        }
        assert_eq!(listing.tools.len(), 1);
        let notes = listing.notes.join("\n");
        for words in
            ["\"typo\"", "empty", "not a JSON Schema of an object", "another tool", "256 KiB", "nosuch"]
        {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        assert_eq!(listing.notes.len(), 8, "{notes}");
    }
}
