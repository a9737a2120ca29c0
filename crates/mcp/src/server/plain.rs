//! Plain texts for results that are mostly text.
//!
//! Clients show structured content to their models as JSON on one line, in which a file or the output of a command is
//! hard to read. So lines of a file and outputs of commands are sent as they are. A client that asks for the value gets
//! it too.

use serde_json::{Map, Value};

/// Key of `_meta` with which a client asks for values of all results.
pub(super) const STRUCTURED: &str = "backstitch/structured";

/// Returns the text of a value that is lines of a file or the output of a command.
pub(super) fn plain(value: &Map<String, Value>) -> Option<String> {
    lines(value).or_else(|| output(value))
}

fn lines(value: &Map<String, Value>) -> Option<String> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let text = value.get("text")?.as_str()?;
    let (first, last, all) = (number("first_line")?, number("last_line")?, number("total_lines")?);
    let mut plain = text.to_owned();
    if let Some(note) = value.get("note").and_then(Value::as_str) {
        plain = format!("{}\n[lines {first} to {last} of {all}; {note}]", plain.trim_end_matches('\n'));
    } else if first > 1 || last < all {
        plain = format!("{}\n[lines {first} to {last} of {all}]", plain.trim_end_matches('\n'));
    }
    Some(plain)
}

fn output(value: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let (code, stdout, stderr) = (value.get("exit_code")?.as_i64()?, text("stdout")?, text("stderr")?);
    let mut parts = vec![stdout.trim_end_matches('\n').to_owned()];
    if !stderr.trim().is_empty() {
        parts.push(format!("standard error:\n{}", stderr.trim_end_matches('\n')));
    }
    parts.extend(text("sandbox").map(|refused| format!("[{refused}]")));
    if code != 0 {
        parts.push(format!("[exit code {code}]"));
    }
    parts.retain(|part| !part.is_empty());
    Some(if parts.is_empty() { "[no output, exit code 0]".to_owned() } else { parts.join("\n") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: Value) -> Option<String> {
        plain(value.as_object().unwrap())
    }

    #[test]
    fn files_and_outputs_are_shown_as_they_are() {
        let file = json!({"text": "one\n\ttwo\n", "first_line": 1, "last_line": 2, "total_lines": 2});
        assert_eq!(shown(file).unwrap(), "one\n\ttwo\n");
        let part = json!({"text": "two\n", "first_line": 2, "last_line": 2, "total_lines": 9});
        assert_eq!(shown(part).unwrap(), "two\n[lines 2 to 2 of 9]");
        let ran = json!({"exit_code": 3, "stdout": "a\nb\n", "stderr": "oops\n"});
        assert_eq!(shown(ran).unwrap(), "a\nb\nstandard error:\noops\n[exit code 3]");
        let silent = json!({"exit_code": 0, "stdout": "", "stderr": ""});
        assert_eq!(shown(silent).unwrap(), "[no output, exit code 0]");
        assert_eq!(shown(json!({"text": "a"})), None);
        assert_eq!(shown(json!({"created": "a.txt"})), None);
    }
}
