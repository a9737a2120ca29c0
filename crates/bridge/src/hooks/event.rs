//! Events of programs, as their hooks receive them.
//!
//! The programs change often, and an event is input from outside. Only the fields that are needed are read, each of them may
//! be missing or of another type, and unknown ones are ignored.

use std::path::PathBuf;

use backstitch_core::secrets::Secrets;
use backstitch_runtime::{ObservedCall, ObservedPrompt, ObservedResult};
use serde_json::Value;

use crate::fields::{id, is_set, text};
use crate::program::Program;

/// An event cannot be understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// It is something other than JSON.
    #[error("the event is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is JSON without fields.
    #[error("the event is not a JSON object")]
    NotAnObject,
    /// It is about a call, and does not say which one.
    #[error("the event names no call")]
    NoCall,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    fields: Value,
}

/// What an event reports.
#[derive(Debug, Clone, PartialEq)]
pub enum HookReport {
    /// The program starts or continues.
    Start,
    /// A person has entered a prompt.
    Prompt(ObservedPrompt),
    /// A call is about to run.
    Before(ObservedCall),
    /// A call has ended.
    After(ObservedCall, ObservedResult),
    /// A call has ended because it was interrupted.
    Interrupted(ObservedCall, ObservedResult),
    /// A sub-agent has ended.
    SubAgentEnd(Option<String>),
    /// The program has answered.
    Answer {
        /// The text of the answer.
        text: Option<String>,
        /// The number of background tasks that still run. The program answers again when they have ended.
        background: usize,
    },
    /// A person interrupted the program.
    Interrupt,
    /// The program ends.
    End,
    /// Nothing that has to be recorded.
    Nothing,
}

impl HookEvent {
    /// Parses the input of a hook.
    pub fn parse(input: &[u8]) -> Result<Self, HookError> {
        let fields: Value = serde_json::from_slice(input).map_err(HookError::NotJson)?;
        if fields.is_object() { Ok(Self { fields }) } else { Err(HookError::NotAnObject) }
    }

    /// Reads the request of a callback. It names the event and the call too, in case that the input of the hook does not.
    #[cfg(feature = "engines")]
    pub(crate) fn of_callback(request: &Value) -> Self {
        let mut fields = request.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, other) in [("hook_event_name", "callback_id"), ("tool_use_id", "tool_use_id")] {
            if let Some(value) =
                id(request, other).filter(|_| !fields.get(name).is_some_and(Value::is_string))
            {
                fields.insert(name.to_owned(), Value::from(value));
            }
        }
        Self { fields: Value::Object(fields) }
    }

    /// Removes keys from everything that is recorded.
    #[must_use]
    pub fn without(self, secrets: &Secrets) -> Self {
        Self { fields: secrets.redact_value(self.fields) }
    }

    fn text(&self, name: &str) -> Option<String> {
        text(&self.fields, name).map(str::to_owned)
    }

    fn id(&self, name: &str) -> Option<String> {
        id(&self.fields, name).map(str::to_owned)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        text(&self.fields, name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Name of the event, for messages.
    pub fn name(&self) -> String {
        self.text("hook_event_name").unwrap_or_else(|| "unnamed event".to_owned())
    }

    /// The conversation of the program.
    pub fn session(&self) -> Option<String> {
        self.id("session_id")
    }

    /// The file that the program writes the conversation to.
    pub fn transcript(&self) -> Option<PathBuf> {
        self.path("transcript_path")
    }

    /// The file that the program writes the conversation of a sub-agent to, which has ended.
    pub fn agent_transcript(&self) -> Option<PathBuf> {
        self.path("agent_transcript_path")
    }

    /// The directory that the program works in at this moment.
    pub fn directory(&self) -> Option<PathBuf> {
        self.path("cwd")
    }

    /// The sub-agent that the event comes from.
    fn agent(&self) -> Option<String> {
        self.id("agent_id")
    }

    /// Name of the tool, for messages.
    pub fn tool(&self) -> Option<String> {
        self.text("tool_name")
    }

    /// The mode of permissions of the conversation at this moment.
    pub fn permission_mode(&self) -> Option<String> {
        self.id("permission_mode")
    }

    /// The command that a shell is about to run.
    pub fn shell_command(&self) -> Option<String> {
        let is_shell = self.tool().as_deref() == Some("Bash") && self.is_before_call();
        let command = text(self.fields.get("tool_input")?, "command");
        command.filter(|_| is_shell).map(str::to_owned)
    }

    /// Whether a call waits for the hook.
    pub fn is_before_call(&self) -> bool {
        self.name() == "PreToolUse"
    }

    /// Whether the program starts.
    pub fn is_start(&self) -> bool {
        self.name() == "SessionStart"
    }

    fn call(&self) -> Result<ObservedCall, HookError> {
        let id = self.id("tool_use_id").ok_or(HookError::NoCall)?;
        let name = self.tool().unwrap_or_else(|| "unknown tool".to_owned());
        let input = self.fields.get("tool_input").cloned().unwrap_or(Value::Null);
        Ok(ObservedCall { agent: self.agent(), ..ObservedCall::new(id, &name, input) })
    }

    fn result(&self, outcome: Result<Value, String>) -> ObservedResult {
        let millis = self.fields.get("duration_ms").and_then(Value::as_u64);
        ObservedResult { outcome, elapsed_micros: millis.map(|millis| millis.saturating_mul(1_000)) }
    }

    /// Returns what the event reports.
    pub fn report(&self, program: Program) -> Result<HookReport, HookError> {
        Ok(match self.name().as_str() {
            "SessionStart" => HookReport::Start,
            // Codex reports the prompts of sub-agents too.
            "UserPromptSubmit" if self.agent().is_some() => HookReport::Nothing,
            "UserPromptSubmit" => {
                let text = self.text("prompt").unwrap_or_default();
                let id = self.id(match program {
                    Program::ClaudeCode => "prompt_id",
                    Program::Codex => "turn_id",
                });
                HookReport::Prompt(ObservedPrompt { text, id })
            }
            "PreToolUse" => HookReport::Before(self.call()?),
            "PostToolUse" => {
                let value = self.fields.get("tool_response").cloned().unwrap_or(Value::Null);
                HookReport::After(self.call()?, self.result(Ok(value)))
            }
            "PostToolUseFailure" => {
                let error = self.text("error").unwrap_or_else(|| "it failed".to_owned());
                let is_interrupt = is_set(&self.fields, "is_interrupt");
                let report = if is_interrupt { HookReport::Interrupted } else { HookReport::After };
                report(self.call()?, self.result(Err(error)))
            }
            "SubagentStop" => HookReport::SubAgentEnd(self.agent()),
            "Stop" => {
                let tasks = self.fields.get("background_tasks").and_then(Value::as_array);
                let text = self.text("last_assistant_message");
                HookReport::Answer { text, background: tasks.map_or(0, Vec::len) }
            }
            "Interrupt" => HookReport::Interrupt,
            "SessionEnd" => HookReport::End,
            _ => HookReport::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(fields: &Value) -> Result<HookReport, HookError> {
        HookEvent::parse(fields.to_string().as_bytes()).unwrap().report(Program::ClaudeCode)
    }

    #[test]
    fn fields_may_be_missing_unknown_or_of_another_type() {
        for text in ["", "{", "[]", "null", "\"PreToolUse\"", "\u{0}"] {
            assert!(HookEvent::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(report(&json!({})).unwrap(), HookReport::Nothing);
        assert_eq!(report(&json!({"hook_event_name": 7, "x": [1]})).unwrap(), HookReport::Nothing);
        assert_eq!(
            report(&json!({"hook_event_name": "Stop", "last_assistant_message": 3})).unwrap(),
            HookReport::Answer { text: None, background: 0 }
        );
        assert!(report(&json!({"hook_event_name": "PreToolUse"})).is_err());
        let before = json!({"hook_event_name": "PreToolUse", "tool_use_id": "t", "tool_name": ["x"]});
        let Ok(HookReport::Before(call)) = report(&before) else { panic!("{before}") };
        assert_eq!((call.id.as_str(), call.name.as_str(), call.input), ("t", "unknown tool", Value::Null));
        let long = json!({"hook_event_name": "PreToolUse", "tool_use_id": "t".repeat(10_000)});
        assert!(report(&long).is_err());
    }

    #[test]
    fn a_failed_call_has_its_message_and_duration() {
        let mut fields = json!({"hook_event_name": "PostToolUseFailure", "tool_use_id": "t", "tool_name": "Bash",
            "tool_input": {"command": "make"}, "error": "Exit code 2\nno rule", "duration_ms": 38, "agent_id": "a1"});
        let Ok(HookReport::After(call, result)) = report(&fields) else { panic!("{fields}") };
        assert_eq!(call.agent.as_deref(), Some("a1"));
        assert_eq!(result.outcome, Err("Exit code 2\nno rule".to_owned()));
        assert_eq!(result.elapsed_micros, Some(38_000));
        fields["is_interrupt"] = json!(true);
        assert_eq!(report(&fields).unwrap(), HookReport::Interrupted(call, result));
    }

    #[cfg(feature = "engines")]
    #[test]
    fn the_request_of_a_callback_fills_in_what_its_input_lacks() {
        let around = json!({"callback_id": "PreToolUse", "tool_use_id": "t1", "input": {"hook_event_name": 7, "tool_name": "Bash"}});
        let Ok(HookReport::Before(call)) = HookEvent::of_callback(&around).report(Program::ClaudeCode) else {
            panic!("{around}")
        };
        assert_eq!((call.id.as_str(), call.name.as_str()), ("t1", "Bash"));
        let inside = json!({"callback_id": "x", "tool_use_id": "t1",
            "input": {"hook_event_name": "PostToolUse", "tool_use_id": "t2", "tool_response": "done"}});
        let Ok(HookReport::After(call, result)) = HookEvent::of_callback(&inside).report(Program::ClaudeCode)
        else {
            panic!("{inside}")
        };
        assert_eq!((call.id.as_str(), result.outcome), ("t2", Ok(json!("done"))));
        for strange in [json!({}), json!(7), json!({"input": [], "callback_id": []})] {
            let report = HookEvent::of_callback(&strange).report(Program::ClaudeCode);
            assert_eq!(report.unwrap(), HookReport::Nothing, "{strange}");
        }
    }
}
