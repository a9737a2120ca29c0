//! Events of programs, as their hooks receive them.
//!
//! The programs change often, and an event is input from outside. Only the fields that are needed are read, each of them may
//! be missing or of another type, and unknown ones are ignored.

use std::path::PathBuf;

use backstitch::secrets::Secrets;
use backstitch::{ObservedCall, ObservedPrompt, ObservedResult};
use serde_json::Value;

use super::program::Program;

/// The most characters of an id.
const LONGEST_ID: usize = 400;

/// An event.
#[derive(Debug)]
pub(super) struct Event {
    fields: Value,
}

/// What an event reports.
#[derive(Debug, PartialEq)]
pub(super) enum Report {
    /// The program starts or continues.
    Start,
    Prompt(ObservedPrompt),
    /// A call is about to run.
    Before(ObservedCall),
    /// A call has ended.
    After(ObservedCall, ObservedResult),
    /// A sub-agent has ended.
    SubAgentEnd(Option<String>),
    /// The program has answered.
    Answer(Option<String>),
    /// A person interrupted the program.
    Interrupt,
    /// The program ends.
    End,
    /// Nothing that has to be recorded.
    Nothing,
}

impl Event {
    /// Parses an event.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let fields: Value =
            serde_json::from_slice(text).map_err(|error| format!("the event is not JSON: {error}"))?;
        if fields.is_object() {
            Ok(Self { fields })
        } else {
            Err("the event is not a JSON object".to_owned())
        }
    }

    /// Removes keys from everything that is recorded.
    pub(super) fn without(self, secrets: &Secrets) -> Self {
        Self { fields: secrets.redact_value(self.fields) }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.fields.get(name)?.as_str().map(str::to_owned)
    }

    fn id(&self, name: &str) -> Option<String> {
        self.text(name).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID)
    }

    /// Name of the event, for messages.
    pub(super) fn name(&self) -> String {
        self.text("hook_event_name").unwrap_or_else(|| "unnamed event".to_owned())
    }

    /// The conversation of the program.
    pub(super) fn session(&self) -> Option<String> {
        self.id("session_id")
    }

    /// The file that the program writes the conversation to.
    pub(super) fn transcript(&self) -> Option<PathBuf> {
        self.text("transcript_path").map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The file that the program writes the conversation of a sub-agent to, which has ended.
    pub(super) fn agent_transcript(&self) -> Option<PathBuf> {
        self.text("agent_transcript_path").map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The directory that the program works in at this moment.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.text("cwd").map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The sub-agent that the event comes from.
    fn agent(&self) -> Option<String> {
        self.id("agent_id")
    }

    /// Name of the tool, for messages.
    pub(super) fn tool(&self) -> Option<String> {
        self.text("tool_name")
    }

    /// The mode of permissions of the conversation at this moment.
    pub(super) fn permission_mode(&self) -> Option<String> {
        self.id("permission_mode")
    }

    /// The command that a shell is about to run.
    pub(super) fn shell_command(&self) -> Option<String> {
        let is_shell = self.tool().as_deref() == Some("Bash") && self.is_before_call();
        let command = self.fields.get("tool_input")?.get("command")?.as_str();
        command.filter(|_| is_shell).map(str::to_owned)
    }

    /// Whether a call waits for the hook.
    pub(super) fn is_before_call(&self) -> bool {
        self.name() == "PreToolUse"
    }

    /// Whether the program starts.
    pub(super) fn is_start(&self) -> bool {
        self.name() == "SessionStart"
    }

    fn call(&self) -> Result<ObservedCall, String> {
        let id = self.id("tool_use_id").ok_or("the event names no call")?;
        let name = self.tool().unwrap_or_else(|| "unknown tool".to_owned());
        let input = self.fields.get("tool_input").cloned().unwrap_or(Value::Null);
        Ok(ObservedCall { agent: self.agent(), ..ObservedCall::new(id, &name, input) })
    }

    /// Returns what the event reports.
    pub(super) fn report(&self, program: Program) -> Result<Report, String> {
        let elapsed_micros =
            self.fields.get("duration_ms").and_then(Value::as_u64).map(|millis| millis.saturating_mul(1_000));
        Ok(match self.name().as_str() {
            "SessionStart" => Report::Start,
            // Codex reports the prompts of sub-agents too.
            "UserPromptSubmit" if self.agent().is_some() => Report::Nothing,
            "UserPromptSubmit" => {
                let text = self.text("prompt").unwrap_or_default();
                let id = self.id(match program {
                    Program::ClaudeCode => "prompt_id",
                    Program::Codex => "turn_id",
                });
                Report::Prompt(ObservedPrompt { text, id })
            }
            "PreToolUse" => Report::Before(self.call()?),
            "PostToolUse" => {
                let value = self.fields.get("tool_response").cloned().unwrap_or(Value::Null);
                Report::After(self.call()?, ObservedResult { outcome: Ok(value), elapsed_micros })
            }
            "PostToolUseFailure" => {
                let error = self.text("error").unwrap_or_else(|| "it failed".to_owned());
                Report::After(self.call()?, ObservedResult { outcome: Err(error), elapsed_micros })
            }
            "SubagentStop" => Report::SubAgentEnd(self.agent()),
            "Stop" => Report::Answer(self.text("last_assistant_message")),
            "Interrupt" => Report::Interrupt,
            "SessionEnd" => Report::End,
            _ => Report::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(fields: &Value) -> Result<Report, String> {
        Event::parse(fields.to_string().as_bytes()).unwrap().report(Program::ClaudeCode)
    }

    #[test]
    fn fields_may_be_missing_unknown_or_of_another_type() {
        for text in ["", "{", "[]", "null", "\"PreToolUse\"", "\u{0}"] {
            assert!(Event::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(report(&json!({})), Ok(Report::Nothing));
        assert_eq!(report(&json!({"hook_event_name": 7, "x": [1]})), Ok(Report::Nothing));
        assert_eq!(
            report(&json!({"hook_event_name": "Stop", "last_assistant_message": 3})),
            Ok(Report::Answer(None))
        );
        assert!(report(&json!({"hook_event_name": "PreToolUse"})).is_err());
        let before = json!({"hook_event_name": "PreToolUse", "tool_use_id": "t", "tool_name": ["x"]});
        let Ok(Report::Before(call)) = report(&before) else { panic!("{before}") };
        assert_eq!((call.id.as_str(), call.name.as_str(), call.input), ("t", "unknown tool", Value::Null));
        let long = json!({"hook_event_name": "PreToolUse", "tool_use_id": "t".repeat(10_000)});
        assert!(report(&long).is_err());
    }

    #[test]
    fn a_failed_call_has_its_message_and_duration() {
        let fields = json!({"hook_event_name": "PostToolUseFailure", "tool_use_id": "t", "tool_name": "Bash",
            "tool_input": {"command": "make"}, "error": "Exit code 2\nno rule", "duration_ms": 38, "agent_id": "a1"});
        let Ok(Report::After(call, result)) = report(&fields) else { panic!("{fields}") };
        assert_eq!(call.agent.as_deref(), Some("a1"));
        assert_eq!(result.outcome, Err("Exit code 2\nno rule".to_owned()));
        assert_eq!(result.elapsed_micros, Some(38_000));
    }
}
