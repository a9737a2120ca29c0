//! The constant part of an evaluation: system prompt, mission, tools, data.
//!
//! Each request of an evaluation begins with the same bytes: the system prompt, then the mission, then the
//! earlier missions and answers of the session, then the sections `tool/` and `data/`. They are rendered
//! once, when the context is created, so later events cannot change them, and providers can cache them.

use std::sync::Arc;

use backstitch_core::tool::ToolSpec;
use backstitch_lisp::{Map, Truncation, Value, to_clojure_without_hidden, type_label};

use super::lines::{self, COLUMN, one_line, write_entry};
use super::schema::{parameter_names, signature};
use crate::text::{collapsed, cut};
use crate::turn::label;

/// The maximum number of characters of a tool's description.
const DESCRIPTION_CHARACTERS: usize = 1_000;
/// The maximum number of characters of a tool's signature.
const SIGNATURE_CHARACTERS: usize = 1_500;

/// The constant part of an evaluation.
#[derive(Debug, Clone)]
pub struct RenderContext {
    system: Option<Arc<str>>,
    mission: Arc<str>,
    earlier: Arc<str>,
    tools: Arc<str>,
    data: Arc<str>,
    max_turns: Option<u64>,
    turns_left: Option<u64>,
    /// The mission and the sections, at the beginning of the first user message.
    prefix: Arc<str>,
}

impl RenderContext {
    /// The default number of turns of an agent.
    pub const DEFAULT_MAX_TURNS: u64 = 5;

    /// Creates a context with this mission, without tools and data.
    pub fn new(mission: impl Into<Arc<str>>) -> Self {
        let (mission, max_turns) = (mission.into(), Some(Self::DEFAULT_MAX_TURNS));
        let (earlier, tools, data) = (Arc::default(), Arc::default(), Arc::default());
        let prefix = mission.clone();
        Self { system: None, mission, earlier, tools, data, max_turns, turns_left: None, prefix }
    }

    /// Sets the system prompt, which no strategy changes.
    #[must_use]
    pub fn system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Sets the missions and answers of the evaluations that this one follows.
    #[must_use]
    pub fn earlier(mut self, earlier: impl Into<Arc<str>>) -> Self {
        self.earlier = earlier.into();
        self.with_prefix()
    }

    /// Sets the tools.
    #[must_use]
    pub fn tools<'a>(mut self, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Self {
        let mut text = String::new();
        for tool in tools {
            let mut left = format!("(tool/{}", tool.name.as_str());
            for name in parameter_names(&tool.parameters) {
                left.push(' ');
                left.push_str(&lines::name(name));
            }
            left.push(')');
            let signature = signature(&tool.parameters, tool.output.as_ref());
            write_entry(&mut text, &left, &cut(&one_line(&signature), SIGNATURE_CHARACTERS));
            let description = collapsed(&tool.description);
            if !description.is_empty() {
                let indent = " ".repeat(COLUMN);
                text.push_str(&format!("{indent}; {}\n", cut(&description, DESCRIPTION_CHARACTERS)));
            }
        }
        self.tools = text.into();
        self.with_prefix()
    }

    /// Sets the data. Of names that begin with `_` only the type is shown.
    #[must_use]
    pub fn data(mut self, data: &Map, sample: Truncation) -> Self {
        let mut text = String::new();
        for (name, value) in data.iter() {
            let name = match name {
                Value::Keyword(name) => name.full().to_owned(),
                Value::String(name) => name.as_str().to_owned(),
                other => to_clojure_without_hidden(other, sample),
            };
            let is_hidden = name.starts_with('_');
            let mut comment = if is_hidden { type_label(value) } else { label(value, sample) };
            if is_hidden {
                comment.push_str(", hidden");
            } else if !matches!(comment.as_str(), "nil" | "list[0]" | "map[0]" | "set[0]") {
                comment.push_str(", sample: ");
                comment.push_str(&one_line(&to_clojure_without_hidden(value, sample)));
            }
            write_entry(&mut text, &format!("data/{}", lines::name(&name)), &comment);
        }
        self.data = text.into();
        self.with_prefix()
    }

    /// Sets the maximum number of turns. Without one, requests do not contain the number of turns left.
    #[must_use]
    pub fn max_turns(mut self, max_turns: Option<u64>) -> Self {
        self.max_turns = max_turns;
        self
    }

    /// Limits the number of turns left, including the next one.
    #[must_use]
    pub fn turns_left(mut self, turns_left: Option<u64>) -> Self {
        self.turns_left = turns_left;
        self
    }

    /// The mission.
    pub fn mission(&self) -> &str {
        &self.mission
    }

    /// The beginning of the first user message of each request.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn system_prompt(&self) -> Option<&str> {
        self.system.as_deref().filter(|system| !system.is_empty())
    }

    pub(super) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// The last line of a request after this number of turns.
    pub(super) fn turns_line(&self, turns: usize) -> Option<String> {
        match self.max_turns? {
            // With a single turn there is nothing to count.
            1 => None,
            most => Some(
                match most
                    .saturating_sub(turns as u64)
                    .min(self.turns_left.unwrap_or(u64::MAX))
                    .saturating_sub(1)
                {
                    0 => "FINAL TURN - you must call (return result) or (fail reason) now.".to_owned(),
                    left => format!("Turns left: {left}"),
                },
            ),
        }
    }

    fn with_prefix(mut self) -> Self {
        let mut prefix = self.mission.to_string();
        let sections = [
            (";; === earlier missions and answers ===", &self.earlier),
            (";; === tool/ ===", &self.tools),
            (";; === data/ ===", &self.data),
        ];
        for (header, section) in sections {
            if !section.is_empty() {
                if !prefix.is_empty() {
                    prefix.push_str("\n\n");
                }
                prefix.push_str(header);
                prefix.push('\n');
                prefix.push_str(section.trim_end_matches('\n'));
            }
        }
        self.prefix = prefix.into();
        self
    }
}
