//! `/status`, `/context` and `/permissions`: how the conversation stands, what fills the window of its model, and what may happen
//! without a question.

use backstitch::agent_file::ModelName;
use backstitch::approval::ApprovalRule;
use backstitch::report::RequestError;
use backstitch::view::JournalView;
use serde_json::Value;

use super::conversation::{Conversation, is_open};
use super::recap::context;
use crate::common::counted;
use crate::config::{Config, Entry, user_file};
use crate::open::definition::first_line;
use crate::open::short;
use crate::open::trusted::add_project;
use crate::project;
use crate::prompts::{PromptKind, PromptLibrary};
use crate::terminal::{grouped, money};

/// A model for which requests are rendered to count their parts. It is never asked.
const COUNTED: &str = "anthropic:none";

/// Columns of the names.
const NAMES: usize = 14;

impl Conversation {
    /// Prints how the conversation stands.
    pub(super) async fn print_overview(&self) -> anyhow::Result<()> {
        let view = match self.place.as_ref().zip(self.session) {
            Some((place, session)) => Some((place, place.view(session).await?)),
            None => None,
        };
        match (&view, self.session) {
            (Some((_, view)), Some(session)) => {
                let turns = counted(view.evaluations().count(), "turn");
                let open = if is_open(view) { ", the last one has not ended" } else { "" };
                print_row("session", &format!("{} ({turns}{open})", short(session)));
            }
            _ => print_row("session", "not begun: the first message starts it"),
        }
        print_row("model", &self.model());
        print_row("rights", first_line(&self.definition).as_deref().unwrap_or("as before there were modes"));
        if let Some(directory) = &self.definition.workspace.path {
            print_row("directory", &directory.display().to_string());
        }
        if let Some((place, view)) = &view {
            print_row("store", &place.address.to_string());
            let spent = view.ledger().charged();
            let tokens = format!("{} in, {} out", grouped(spent.input_tokens), grouped(spent.output_tokens));
            print_row("tokens", &tokens);
            let cost =
                if spent.money_micros == 0 { "not known".to_owned() } else { money(spent.money_micros) };
            print_row("cost", &cost);
            if let Some(context) = context(view, self.definition.window) {
                print_row("window", &context);
            }
        }
        let servers: Vec<&str> =
            self.definition.mcp_servers().into_iter().map(|server| server.name.as_str()).collect();
        if !servers.is_empty() {
            print_row("MCP servers", &servers.join(", "));
        }
        print_prompts(&self.library()?);
        let settings = user_file().filter(|path| path.exists());
        print_row("settings", &settings.map_or("none".to_owned(), |path| path.display().to_string()));
        Ok(())
    }

    /// Prints what the latest request consists of.
    pub(super) async fn print_context(&self) -> anyhow::Result<()> {
        let Some((place, session)) = self.place.as_ref().zip(self.session) else {
            println!("the conversation has not begun; type a message first");
            return Ok(());
        };
        let view = place.view(session).await?;
        let model: ModelName = COUNTED.parse()?;
        let rendered = match place.runtime.request(&view, None, Some(&model)).await {
            Ok(rendered) => rendered,
            Err(error @ (RequestError::NoMessages | RequestError::NotFound { .. })) => {
                println!("{error}");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let parts = RequestSizes::of(rendered.report.request.as_ref().unwrap_or(&Value::Null));
        let total = parts.rows().iter().map(|(_, bytes)| *bytes).sum::<usize>().max(1);
        for (name, bytes) in parts.rows().into_iter().filter(|(_, bytes)| *bytes > 0) {
            println!("{name:<28} {:>12} bytes {:>4} %", grouped(bytes as u64), bytes * 100 / total);
        }
        if parts.media > 0 {
            println!("{:<28} {:>12}", "images and documents", parts.media);
        }
        println!("{}", window_line(&view, self.definition.window));
        Ok(())
    }

    /// Prints the mode and the rules, and where each comes from.
    pub(super) async fn print_permissions(&self) -> anyhow::Result<()> {
        println!("{}", first_line(&self.definition).as_deref().unwrap_or("as before there were modes"));
        let mut config = Config::clone(&self.common.config);
        let root = project::root(&std::env::current_dir()?);
        if let Some((path, false)) = add_project(&root, &mut config)? {
            println!("{} is not used, because it is not trusted", path.display());
        }
        let entries = config.effective();
        let of = |key: &str| entries.iter().find(|entry| entry.key == [key]);
        if let (Some(mode), Some(entry)) = (self.definition.mode, of("mode")) {
            let is_same = entry.value.as_str() == Some(mode.as_str());
            let origin = if is_same { entry.origin.to_string() } else { "this session".to_owned() };
            println!("{:<40} {origin}", format!("mode {mode}"));
        }
        for (tool, approve) in &self.definition.approval {
            let verdict = format!("{approve:?}").to_lowercase();
            println!("{:<40} this session", format!("{verdict} `{tool}`"));
        }
        for entry in entries.iter().filter(|entry| entry.key.first().is_some_and(|key| key == "rules")) {
            rules_of(entry).iter().for_each(|rule| println!("{rule:<40} {}", entry.origin));
        }
        if let (Some(place), Some(session)) = (&self.place, self.session) {
            for rule in place.runtime.state(session).await?.all::<ApprovalRule>()?.iter() {
                let by = rule.by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
                println!("{:<40} this session{by}", rule.to_string());
            }
        }
        println!(
            "`/mode` changes the mode; `[rules]` in the settings last for all sessions (`backstitch config path`)"
        );
        Ok(())
    }
}

fn print_row(name: &str, value: &str) {
    println!("{name:<NAMES$}{value}");
}

fn print_prompts(library: &PromptLibrary) {
    let commands = library.offered(PromptKind::Command).count();
    let skills = library.offered(PromptKind::Skill).count();
    print_row("files", &format!("{}, {}", counted(commands, "command"), counted(skills, "skill")));
    library.untrusted_line().into_iter().for_each(|line| print_row("", &line));
}

/// Formats the rules of an entry of the settings.
fn rules_of(entry: &Entry) -> Vec<String> {
    let verdict = entry.key.last().map(String::as_str).unwrap_or_default();
    let scopes = entry.value.as_array().into_iter().flatten().filter_map(|scope| scope.as_str());
    scopes.map(|scope| format!("{verdict} `{scope}`")).collect()
}

/// Describes how full the window is.
fn window_line(view: &JournalView, window: Option<u64>) -> String {
    let latest = view.evaluations().flat_map(|evaluation| evaluation.requests.iter()).last();
    let finished = latest.and_then(|request| request.finished.as_ref());
    let used = finished.map(|finished| finished.record.usage.total_tokens()).filter(|used| *used > 0);
    match (used, window) {
        (Some(used), Some(window)) => {
            let share = used.saturating_mul(100).div_ceil(window.max(1));
            format!("{} of {} tokens ({share} %)", grouped(used), grouped(window))
        }
        (Some(used), None) => format!("{} tokens; the window of this model is not known", grouped(used)),
        (None, Some(window)) => format!("the window has {} tokens", grouped(window)),
        (None, None) => "the window of this model is not known; `--window` sets it".to_owned(),
    }
}

/// Sizes of the parts of a request, in bytes of JSON.
#[derive(Debug, Default, PartialEq, Eq)]
struct RequestSizes {
    instructions: usize,
    tools: usize,
    messages: usize,
    answers: usize,
    calls: usize,
    results: usize,
    media: usize,
}

impl RequestSizes {
    /// Counts the parts of a request in the form of Anthropic.
    fn of(request: &Value) -> Self {
        let size = |value: &Value| if value.is_null() { 0 } else { value.to_string().len() };
        let mut sizes = Self {
            instructions: size(&request["system"]),
            tools: size(&request["tools"]),
            ..Self::default()
        };
        for message in request["messages"].as_array().into_iter().flatten() {
            let is_answer = message["role"] == "assistant";
            let blocks = match &message["content"] {
                Value::Array(blocks) => blocks.clone(),
                other => vec![other.clone()],
            };
            for block in &blocks {
                let of_kind = match block["type"].as_str() {
                    Some("image" | "document") => {
                        sizes.media += 1;
                        continue;
                    }
                    Some("tool_use") => &mut sizes.calls,
                    Some("tool_result") => &mut sizes.results,
                    _ if is_answer => &mut sizes.answers,
                    _ => &mut sizes.messages,
                };
                *of_kind += size(block);
            }
        }
        sizes
    }

    fn rows(&self) -> [(&'static str, usize); 6] {
        [
            ("instructions", self.instructions),
            ("definitions of tools", self.tools),
            ("your messages", self.messages),
            ("answers", self.answers),
            ("calls", self.calls),
            ("results of calls", self.results),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_of_a_request_are_counted() {
        let request = json!({
            "system": "abc",
            "tools": [1],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool_use"}]},
                {"role": "user", "content": [{"type": "tool_result"}, {"type": "image"}]},
            ],
        });
        let sizes = RequestSizes::of(&request);
        assert_eq!((sizes.instructions, sizes.tools, sizes.messages, sizes.media), (5, 3, 4, 1));
        assert!(sizes.answers > 0 && sizes.calls > 0 && sizes.results > 0);
        assert_eq!(RequestSizes::of(&Value::Null), RequestSizes::default());
    }
}
