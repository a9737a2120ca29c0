//! Command lines with placeholders.
//!
//! Each element of the list is one argument of the program, whatever its value holds: there is no shell. An
//! element that is only a placeholder is left out if the call does not have the argument, and becomes several
//! arguments if its value is a list. `{{` and `}}` stand for braces.

use serde_json::{Map, Value};

use super::error::near;

/// The program and the templates of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgumentTemplate {
    program: String,
    arguments: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String),
}

impl ArgumentTemplate {
    /// Parses a command line. `names` are the arguments of the tool.
    pub(super) fn parse(command: &[String], names: &[&str]) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first().filter(|(program, _)| !program.is_empty())
        else {
            return Err("name a program, such as [\"cargo\", \"test\"]".to_owned());
        };
        if command.iter().any(|part| part.contains('\0')) {
            return Err("an argument of a program cannot hold the character 0".to_owned());
        }
        let program = match &pieces(program)?[..] {
            [Piece::Text(program)] => program.clone(),
            _ => return Err("the program is fixed: placeholders are for its arguments".to_owned()),
        };
        let arguments = arguments.iter().map(|argument| pieces(argument)).collect::<Result<Vec<_>, _>>()?;
        for piece in arguments.iter().flatten() {
            if let Piece::Argument(name) = piece
                && !names.contains(&name.as_str())
            {
                return Err(format!(
                    "there is no argument `{name}` in `parameters`{}; write {{{{ for a brace",
                    near(name, names)
                ));
            }
        }
        Ok(Self { program, arguments })
    }

    /// Returns the program, which is the same for every call.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Returns the arguments that are the same for every call.
    pub(super) fn fixed(&self) -> Vec<String> {
        let fixed = self.arguments.iter().filter_map(|pieces| match &pieces[..] {
            [Piece::Text(text)] => Some(text.clone()),
            _ => None,
        });
        fixed.collect()
    }

    /// Returns the program and its arguments for a call.
    pub(super) fn filled(&self, values: &Map<String, Value>) -> Result<Vec<String>, String> {
        let mut filled = vec![self.program.clone()];
        for pieces in &self.arguments {
            if let [Piece::Argument(name)] = &pieces[..] {
                match values.get(name) {
                    None | Some(Value::Null) => {}
                    Some(Value::Array(items)) => filled.extend(items.iter().map(text)),
                    Some(value) => filled.push(text(value)),
                }
                continue;
            }
            let parts = pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Argument(name) => {
                    values.get(name).filter(|value| !value.is_null()).map(text).unwrap_or_default()
                }
            });
            filled.push(parts.collect());
        }
        if filled.iter().any(|argument| argument.contains('\0')) {
            return Err("an argument of a program cannot hold the character 0".to_owned());
        }
        Ok(filled)
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if after.starts_with(brace) {
            plain.push_str(brace);
            rest = &after[1..];
            continue;
        }
        let Some((name, after)) = after.split_once('}').filter(|_| brace == "{") else {
            return Err(format!("{text:?} has a single brace: write {{name}}, or {{{{ and }}}} for braces"));
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Argument(name.to_owned()));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(command: &[&str], values: Value) -> Result<Vec<String>, String> {
        let command: Vec<_> = command.iter().map(|part| (*part).to_owned()).collect();
        let Value::Object(values) = values else { panic!("an object") };
        ArgumentTemplate::parse(&command, &["a", "b"])?.filled(&values)
    }

    #[test]
    fn each_element_is_one_argument() {
        let hostile = "x; rm -rf / $(id) `id` \n --flag";
        assert_eq!(
            filled(&["p", "-n={a}", "{b}"], json!({"a": hostile, "b": 2})).unwrap(),
            ["p", &format!("-n={hostile}"), "2"]
        );
        assert_eq!(
            filled(&["p", "{a}", "{b}"], json!({"b": ["x", 1, true]})).unwrap(),
            ["p", "x", "1", "true"]
        );
        assert_eq!(filled(&["p", "{{a}}", "x{a}y"], json!({"a": null})).unwrap(), ["p", "{a}", "xy"]);
        assert_eq!(filled(&["p", "{a}"], json!({"a": "{b}", "b": "no"})).unwrap(), ["p", "{b}"]);
        assert_eq!(filled(&["p", ""], json!({})).unwrap(), ["p", ""]);
        assert!(filled(&["p", "{a}"], json!({"a": "x\u{0}"})).is_err());
    }

    #[test]
    fn arguments_without_placeholders_are_fixed() {
        let command = ["python3", "{{a}}.py", "{a}", "-n={b}", "x"].map(str::to_owned);
        let template = ArgumentTemplate::parse(&command, &["a", "b"]).unwrap();
        assert_eq!(template.fixed(), ["{a}.py", "x"]);
    }

    #[test]
    fn wrong_templates_are_refused() {
        for wrong in
            [&[][..], &[""], &["{a}"], &["p", "{c}"], &["p", "{a"], &["p", "a}"], &["p", "{}"], &["p\0"]]
        {
            assert!(filled(wrong, json!({})).is_err(), "{wrong:?}");
        }
    }
}
