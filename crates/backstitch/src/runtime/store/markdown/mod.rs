//! The visible conversation of a session as a document. Its text cannot break out of its place in it.

mod text;

use std::collections::{HashMap, VecDeque};

use backstitch_runtime::{message_text, one_line, unfinished, with_content};
use serde_json::Value;

use crate::agent_file::recorded_definition;
use crate::id::{CallId, SessionId};
use crate::journal::{InnerMessage, Origin, Role};
use crate::message::{OptionCall, Part};
use crate::ports::{IndexedStatus, SessionPresence};
use crate::report::{MarkdownExport, Version};
use crate::view::{CallStatus, JournalView};
use crate::{Runtime, RuntimeError};
use text::{block, cut, quote, span, words};

/// Maximum length of arguments and results, in characters and in lines.
const MOST_CHARACTERS: usize = 8_000;
const MOST_LINES: usize = 200;

impl Runtime {
    /// Renders the visible conversation of a session, and those of its sub-agents, as Markdown.
    pub async fn export_markdown(&self, session: SessionId) -> Result<MarkdownExport, RuntimeError> {
        let view = self.view(session).await?;
        let mut document = Document { runtime: self, text: String::new(), children: VecDeque::new() };
        let title = mission(&view)?;
        document.line(&format!("# {}", if title.is_empty() { "Session".to_owned() } else { words(&title) }));
        document.session(&view).await?;
        let mut known = vec![session];
        while let Some(child) = document.children.pop_front() {
            if known.contains(&child) {
                continue;
            }
            known.push(child);
            // A sub-agent whose call was interrupted early has no session yet.
            match self.view(child).await {
                Ok(view) => {
                    document.line(&format!("# Sub-agent {}", short(child)));
                    document.session(&view).await?;
                }
                Err(RuntimeError::SessionNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(MarkdownExport { v: Version, session, markdown: document.text })
    }
}

/// Returns the end of an id, as it is shown to people.
fn short(id: impl ToString) -> String {
    let id = id.to_string();
    id.rsplit('-').next().map_or(id.clone(), str::to_owned)
}

/// Returns the first message of the user, as one line.
fn mission(view: &JournalView) -> Result<String, RuntimeError> {
    let transcript = view.transcript()?;
    let first = transcript.all().iter().find(|message| message.role() == Role::User);
    Ok(first.map(|message| one_line(&message_text(message), 80)).unwrap_or_default())
}

struct Document<'a> {
    runtime: &'a Runtime,
    text: String,
    /// Sub-agents that calls name, in the order of the calls.
    children: VecDeque<SessionId>,
}

impl Document<'_> {
    /// Adds a paragraph.
    fn line(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        if !text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    async fn session(&mut self, view: &JournalView) -> Result<(), RuntimeError> {
        self.head(view).await?;
        let transcript = view.transcript()?;
        let mut results: HashMap<CallId, InnerMessage> = HashMap::new();
        for message in transcript.all().iter() {
            if let Some(call) = message.tool_call_id() {
                results.insert(call, with_content(&**self.runtime.store(), message).await?);
            }
        }
        let mut speaker = None;
        for message in transcript.all().iter().filter(|message| message.role() != Role::Tool) {
            let message = with_content(&**self.runtime.store(), message).await?;
            let current = (message.role(), message.evaluation_id, message.turn);
            let is_call = message.message.option_call().is_some();
            if speaker != Some(current) && !is_call {
                let who = match message.role() {
                    Role::System => "System".to_owned(),
                    Role::User => "User".to_owned(),
                    Role::Assistant | Role::Tool => format!("Agent, turn {}", message.turn),
                };
                self.line(&format!("## {who}"));
            }
            speaker = Some(current);
            match message.message.option_call() {
                Some(call) => {
                    let status = transcript.status(call.invocation_id);
                    self.call(view, call, status, results.get(&call.invocation_id));
                }
                None => self.parts(&message),
            }
        }
        if let Some(failure) = view.failure() {
            self.line(&format!("**No answer:** {}", words(&failure.to_string())));
        }
        Ok(())
    }

    async fn head(&mut self, view: &JournalView) -> Result<(), RuntimeError> {
        let session = view.session_id();
        let store = self.runtime.store();
        let is_held = store.holder(session).await?.is_some();
        let presence = SessionPresence { is_held, has_waiting: false };
        let created = view.created();
        let mut lines = vec![
            format!("- Session: {}", span(&session.to_string())),
            format!("- Created: {}", created.created_at),
            format!("- Status: {}", IndexedStatus::of(view.journal_state(), presence)),
        ];
        if let Ok(definition) = recorded_definition(&**store, view, None).await
            && let Some(model) = &definition.model
        {
            lines.push(format!("- Model: {}", span(&model.to_string())));
        }
        match &created.origin {
            Origin::Fork { session, position } => {
                lines.push(format!("- Fork of: {} at position {position}", span(&session.to_string())));
            }
            Origin::Call { session, call } => {
                let (session, call) = (span(&session.to_string()), span(&short(call)));
                lines.push(format!("- Sub-agent of: {session}, call {call}"));
            }
            Origin::Root => {}
        }
        let rewinds = view.lineage().rewinds().len();
        if rewinds > 0 {
            lines.push(format!("- Rewinds: {rewinds}; what they undid is not shown"));
        }
        let spent = view.ledger().charged();
        lines.push(format!("- Spent: {} tokens", spent.total_tokens()));
        self.line(&lines.join("\n"));
        Ok(())
    }

    fn call(
        &mut self,
        view: &JournalView,
        call: &OptionCall,
        status: CallStatus,
        result: Option<&InnerMessage>,
    ) {
        let status = match status {
            CallStatus::Pending => "no result yet",
            CallStatus::Completed => "completed",
            CallStatus::Failed => "failed",
        };
        self.line(&format!(
            "### Call {} ({status}, {})",
            span(&call.option_name),
            span(&short(call.invocation_id))
        ));
        match call.arguments.object() {
            Some(object) if object.is_empty() => {}
            Some(object) => self.code("json", &format!("{:#}", Value::Object(object.clone()))),
            None => self.code("text", &call.arguments.text()),
        }
        if let Some(child) = view.call(call.invocation_id).and_then(|call| call.session()) {
            let child_name = short(child);
            self.line(&format!("Sub-agent: [{child_name}](#sub-agent-{child_name})"));
            self.children.push_back(child);
        }
        let Some(result) = result else { return };
        self.line("Result:");
        let value = result.message.option_result().and_then(|result| result.result.inline());
        match value {
            Some(Value::Null) | None if result.content().is_empty() => self.line("(empty)"),
            Some(value @ (Value::Object(_) | Value::Array(_))) if status != "failed" => {
                self.code("json", &format!("{value:#}"));
            }
            _ => self.code("text", &result.content()),
        }
        let parts = result.message.option_result().map(|result| result.parts.as_slice()).unwrap_or_default();
        self.media(parts);
    }

    fn parts(&mut self, message: &InnerMessage) {
        let text = format!("{}{}", message.content(), unfinished(message));
        if !text.trim().is_empty() {
            self.line(&quote(&text));
        }
        self.media(message.message.parts().unwrap_or_default());
    }

    fn media(&mut self, parts: &[Part]) {
        for media in parts.iter().filter_map(Part::as_media) {
            let what = match &media.mime {
                Some(mime) => format!("{} ({mime})", media.modality),
                None => media.modality.to_string(),
            };
            self.line(&format!("Media: {}", words(&what)));
        }
    }

    /// Adds a code block, cut to a readable length.
    fn code(&mut self, language: &str, text: &str) {
        let (shown, missing) = cut(text, MOST_CHARACTERS, MOST_LINES);
        self.line(&block(language, shown));
        if let Some(missing) = missing {
            self.line(&format!("({missing})"));
        }
    }
}
