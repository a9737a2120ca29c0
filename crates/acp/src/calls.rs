//! Calls of tools as an editor shows them: a title, a kind, the files that they concern, and their result.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    Diff, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use backstitch::host::one_line;
use backstitch::id::CallId;
use backstitch::journal::InnerMessage;
use backstitch::ports::FilePath;
use serde_json::Value;

/// Maximum length of a title, in characters.
const MOST_TITLE: usize = 120;

/// Maximum size of a result that is shown, in bytes. The store has all of it.
const MOST_RESULT: usize = 64 * 1024;

/// Returns the kind of a tool, by its name.
pub(crate) fn kind_of(name: &str) -> ToolKind {
    match name {
        "read_file" | "stat" | "list_files" | "recall" => ToolKind::Read,
        "glob" | "grep" => ToolKind::Search,
        "write_file" | "edit_file" | "make_directory" => ToolKind::Edit,
        "delete_file" => ToolKind::Delete,
        "rename" => ToolKind::Move,
        "shell" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        "setup_plan" | "add_plan_step" | "update_plan_step" | "read_plan" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// Returns the title of a call: its command, or its tool with the argument that says most.
pub(crate) fn title_of(name: &str, arguments: &Value) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    if let Some(command) = text("command") {
        return one_line(command, MOST_TITLE);
    }
    let subject = match (text("from"), text("to")) {
        (Some(from), Some(to)) => Some(format!("{from} to {to}")),
        _ => ["path", "pattern", "url", "query"].into_iter().find_map(text).map(str::to_owned),
    };
    let subject =
        subject.unwrap_or_else(|| match arguments.as_object().is_some_and(serde_json::Map::is_empty) {
            true => String::new(),
            false => arguments.to_string(),
        });
    one_line(&format!("{name} {subject}"), MOST_TITLE)
}

/// Returns the files that a call names. Paths that leave the directory are left out.
pub(crate) fn locations_of(directory: &Path, arguments: &Value) -> Vec<ToolCallLocation> {
    let paths = ["path", "from", "to"].into_iter().filter_map(|key| arguments.get(key)?.as_str());
    let inside = paths.filter_map(|path| FilePath::new(path).ok());
    inside.map(|path| ToolCallLocation::new(directory.join(path.as_str()))).collect()
}

/// Returns the arguments of a message with a call.
pub(crate) fn arguments_of(message: &InnerMessage) -> Value {
    let arguments = message.message.option_call().map(|call| &call.arguments);
    match arguments.map(|arguments| (arguments.object(), arguments.text())) {
        Some((Some(object), _)) => Value::Object(object.clone()),
        Some((None, text)) => Value::String(text.into_owned()),
        None => Value::Null,
    }
}

/// Returns a call as it is announced. That of a sub-agent has its name before the title.
pub(crate) fn announced(
    directory: &Path,
    call: CallId,
    (name, arguments): (&str, &Value),
    sub_agent: Option<&str>,
) -> ToolCall {
    let title = title_of(name, arguments);
    let title = sub_agent.map_or_else(|| title.clone(), |sub_agent| format!("{sub_agent}: {title}"));
    ToolCall::new(call.to_string(), title)
        .name(name.to_owned())
        .kind(kind_of(name))
        .status(ToolCallStatus::Pending)
        .locations(locations_of(directory, arguments))
        .raw_input(arguments.clone())
}

/// Returns a change of a call.
pub(crate) fn update(call: CallId, fields: ToolCallUpdateFields) -> ToolCallUpdate {
    ToolCallUpdate::new(call.to_string(), fields)
}

/// Returns the end of a call: its status, its result, and what it changed.
pub(crate) fn finished(
    status: ToolCallStatus,
    result: Option<&str>,
    diffs: Vec<Diff>,
) -> ToolCallUpdateFields {
    let mut fields = ToolCallUpdateFields::new().status(status);
    if !diffs.is_empty() {
        let places = diffs.iter().map(|diff| ToolCallLocation::new(diff.path.clone()));
        fields = fields.locations(places.collect::<Vec<_>>());
    }
    let text = result.filter(|text| !text.is_empty()).map(|text| ToolCallContent::from(fenced(text)));
    let content: Vec<ToolCallContent> = diffs.into_iter().map(ToolCallContent::from).chain(text).collect();
    if content.is_empty() { fields } else { fields.content(content) }
}

/// Returns a text as a block of code, in a fence that the text does not have, so that nothing in it is read as markup.
pub(crate) fn fenced(text: &str) -> String {
    let (text, more) = cut(text);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}{more}")
}

/// Returns the beginning of a long text, and a line that says how much more there is.
fn cut(text: &str) -> (&str, String) {
    if text.len() <= MOST_RESULT {
        return (text, String::new());
    }
    let end = (0..=MOST_RESULT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    (&text[..end], format!("\n… {} more bytes", text.len() - end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn titles_name_the_subject_of_a_call() {
        for (name, arguments, expected) in [
            ("shell", json!({"command": "cargo test\n  --all"}), "cargo test --all"),
            ("read_file", json!({"path": "hem.txt"}), "read_file hem.txt"),
            ("rename", json!({"from": "a", "to": "b"}), "rename a to b"),
            ("measure", json!({"seam": 1}), "measure {\"seam\":1}"),
            ("read_plan", json!({}), "read_plan"),
        ] {
            assert_eq!(title_of(name, &arguments).trim(), expected);
        }
        assert!(title_of("shell", &json!({"command": "x".repeat(1_000)})).chars().count() <= MOST_TITLE + 1);
    }

    #[test]
    fn locations_stay_inside() {
        let of = |arguments| locations_of(Path::new("/shop"), &arguments);
        assert_eq!(of(json!({"path": "hem.txt"}))[0].path, Path::new("/shop/hem.txt"));
        assert!(of(json!({"path": "../hem.txt"})).is_empty());
        assert!(of(json!({"path": "/etc/passwd"})).is_empty());
    }

    #[test]
    fn a_result_cannot_leave_its_fence() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("```\nx\n"), "````\n```\nx\n````");
        let long = fenced(&"é".repeat(MOST_RESULT));
        assert!(long.ends_with("65536 more bytes"), "{}", &long[long.len() - 40..]);
    }
}
