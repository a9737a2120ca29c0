//! A value that a question asks for, and the reading of what a person typed.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

/// A value that is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionField {
    /// The name, under which the value is sent.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it has to be there.
    #[serde(default)]
    pub is_required: bool,
    /// The value if nothing is typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Which values fit.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// Which values fit a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FieldKind {
    /// Text, of a length in characters.
    Text {
        /// The least length.
        shortest: Option<u64>,
        /// The most.
        longest: Option<u64>,
        /// Its form.
        form: Option<TextForm>,
    },
    /// A number.
    Number {
        /// The least value.
        least: Option<f64>,
        /// The most.
        most: Option<f64>,
    },
    /// A number without a fraction.
    Integer {
        /// The least value.
        least: Option<i64>,
        /// The most.
        most: Option<i64>,
    },
    /// Yes or no.
    Boolean,
    /// One of these values.
    Choice {
        /// The values.
        options: Vec<FieldOption>,
    },
    /// Several of these values.
    Choices {
        /// The values.
        options: Vec<FieldOption>,
        /// The least number of them.
        least: Option<u64>,
        /// The most.
        most: Option<u64>,
    },
}

/// A form of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextForm {
    /// An address for mail.
    Email,
    /// A URI.
    Uri,
    /// A day, such as `2026-11-18`.
    Date,
    /// A time with its zone, such as `2026-11-18T07:50:00Z`.
    Time,
}

/// A value that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldOption {
    /// The value, as it is sent.
    pub value: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Why a value does not fit, in words for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MisfitValue(String);

impl QuestionField {
    /// Reads what a person typed: nothing stands for the default, or for no value.
    pub fn read(&self, text: &str) -> Result<Option<Value>, MisfitValue> {
        let text = text.trim();
        if text.is_empty() {
            return match &self.default {
                Some(default) => self.kind.check(default).map(|()| Some(default.clone())),
                None if self.is_required => misfit("a value is required; Ctrl-C cancels the question"),
                None => Ok(None),
            };
        }
        let value = self.kind.read(text)?;
        self.kind.check(&value)?;
        Ok(Some(value))
    }
}

impl FieldKind {
    /// Describes the values that fit, such as `a number from 1 to 10`.
    pub fn description(&self) -> String {
        match self {
            Self::Text { shortest, longest, form } => {
                let form = match form {
                    None => "text",
                    Some(TextForm::Email) => "an address for mail",
                    Some(TextForm::Uri) => "a URI",
                    Some(TextForm::Date) => "a day, such as 2026-11-18",
                    Some(TextForm::Time) => "a time, such as 2026-11-18T07:50:00Z",
                };
                match limits(*shortest, *longest) {
                    Some((_, limits)) => format!("{form} of {limits} characters"),
                    None => form.to_owned(),
                }
            }
            Self::Number { least, most } => number("a number", *least, *most),
            Self::Integer { least, most } => number("a whole number", *least, *most),
            Self::Boolean => "yes or no".to_owned(),
            Self::Choice { .. } => "one of the choices".to_owned(),
            Self::Choices { least, most, .. } => {
                let count = limits(*least, *most).map_or("any".to_owned(), |(_, limits)| limits);
                format!("{count} of the choices, with commas between them")
            }
        }
    }

    fn read(&self, text: &str) -> Result<Value, MisfitValue> {
        Ok(match self {
            Self::Text { .. } => text.into(),
            Self::Number { .. } => text.parse::<f64>().map_err(|_| self.misfit())?.into(),
            Self::Integer { .. } => text.parse::<i64>().map_err(|_| self.misfit())?.into(),
            Self::Boolean => match &*text.to_ascii_lowercase() {
                "y" | "yes" | "true" => true.into(),
                "n" | "no" | "false" => false.into(),
                _ => return Err(self.misfit()),
            },
            Self::Choice { options } => chosen(options, text).ok_or_else(|| self.misfit())?.into(),
            Self::Choices { options, .. } => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                let chosen = parts.map(|part| chosen(options, part).ok_or_else(|| self.misfit()));
                chosen.collect::<Result<Vec<_>, _>>()?.into()
            }
        })
    }

    pub(super) fn check(&self, value: &Value) -> Result<(), MisfitValue> {
        let is_option = |options: &[FieldOption], value: &Value| {
            options.iter().any(|option| value.as_str() == Some(&option.value))
        };
        let fits = match (self, value) {
            (Self::Text { shortest, longest, form }, Value::String(text)) => {
                let length = text.chars().count() as u64;
                is_within(length, *shortest, *longest) && form.is_none_or(|form| form.is_form_of(text))
            }
            (Self::Number { least, most }, Value::Number(number)) => {
                number.as_f64().is_some_and(|number| is_within(number, *least, *most))
            }
            (Self::Integer { least, most }, Value::Number(number)) => {
                number.as_i64().is_some_and(|number| is_within(number, *least, *most))
            }
            (Self::Boolean, Value::Bool(_)) => true,
            (Self::Choice { options }, value) => is_option(options, value),
            (Self::Choices { options, least, most }, Value::Array(values)) => {
                is_within(values.len() as u64, *least, *most)
                    && values.iter().all(|value| is_option(options, value))
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.misfit()) }
    }

    fn misfit(&self) -> MisfitValue {
        MisfitValue(format!("this has to be {}", self.description()))
    }
}

impl TextForm {
    fn is_form_of(self, text: &str) -> bool {
        match self {
            Self::Email => {
                let is_part =
                    |part: &str| !part.is_empty() && !part.contains(|one: char| one.is_whitespace());
                text.rsplit_once('@').is_some_and(|(name, host)| is_part(name) && is_part(host))
            }
            Self::Uri => Url::parse(text).is_ok(),
            Self::Date => text.parse::<jiff::civil::Date>().is_ok(),
            Self::Time => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

/// Returns the value that a person chose, by itself, by its title or by its number from 1.
fn chosen(options: &[FieldOption], text: &str) -> Option<String> {
    let is_named = |option: &&FieldOption| option.value == text || option.title.as_deref() == Some(text);
    let by_number = || options.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    options.iter().find(is_named).or_else(by_number).map(|option| option.value.clone())
}

fn is_within<T: PartialOrd>(value: T, least: Option<T>, most: Option<T>) -> bool {
    least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
}

/// Describes limits, such as `1 to 9`, with the word before them; `None` if there are none.
fn limits<T: fmt::Display>(least: Option<T>, most: Option<T>) -> Option<(&'static str, String)> {
    match (least, most) {
        (Some(least), Some(most)) => Some(("from", format!("{least} to {most}"))),
        (Some(least), None) => Some(("of", format!("at least {least}"))),
        (None, Some(most)) => Some(("of", format!("at most {most}"))),
        (None, None) => None,
    }
}

/// Describes a number with its limits.
fn number<T: fmt::Display>(word: &str, least: Option<T>, most: Option<T>) -> String {
    match limits(least, most) {
        Some((before, limits)) => format!("{word} {before} {limits}"),
        None => word.to_owned(),
    }
}

pub(super) fn misfit<T>(message: impl Into<String>) -> Result<T, MisfitValue> {
    Err(MisfitValue(message.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(kind: FieldKind) -> QuestionField {
        let name = "size".to_owned();
        QuestionField { name, title: None, description: None, is_required: true, default: None, kind }
    }

    fn options() -> Vec<FieldOption> {
        let option = |value: &str, title: Option<&str>| FieldOption {
            value: value.to_owned(),
            title: title.map(str::to_owned),
        };
        vec![option("s", Some("small")), option("l", None), option("1", None)]
    }

    #[test]
    fn typed_text_becomes_a_value_that_fits_or_an_error_that_says_what_does() {
        let text = |shortest, longest, form| FieldKind::Text { shortest, longest, form };
        let cases = [
            (text(Some(2), Some(3), None), "äöü", Some(json!("äöü"))),
            (text(Some(2), Some(3), None), "four", None),
            (text(None, None, Some(TextForm::Email)), "a@b", Some(json!("a@b"))),
            (text(None, None, Some(TextForm::Email)), "a b@c", None),
            (text(None, None, Some(TextForm::Uri)), "https://x.y/z", Some(json!("https://x.y/z"))),
            (text(None, None, Some(TextForm::Uri)), "nothing", None),
            (text(None, None, Some(TextForm::Date)), "2026-02-29", None),
            (text(None, None, Some(TextForm::Date)), "2024-02-29", Some(json!("2024-02-29"))),
            (
                text(None, None, Some(TextForm::Time)),
                "2026-11-18T07:50:00Z",
                Some(json!("2026-11-18T07:50:00Z")),
            ),
            (FieldKind::Number { least: Some(0.5), most: None }, "0.75", Some(json!(0.75))),
            (FieldKind::Number { least: Some(0.5), most: None }, "0.25", None),
            (FieldKind::Number { least: None, most: None }, "nan", None),
            (FieldKind::Integer { least: Some(1), most: Some(3) }, "3", Some(json!(3))),
            (FieldKind::Integer { least: Some(1), most: Some(3) }, "4", None),
            (FieldKind::Integer { least: None, most: None }, "1.5", None),
            (FieldKind::Boolean, "Yes", Some(json!(true))),
            (FieldKind::Boolean, "perhaps", None),
            (FieldKind::Choice { options: options() }, "small", Some(json!("s"))),
            (FieldKind::Choice { options: options() }, "2", Some(json!("l"))),
            // A value counts before a number.
            (FieldKind::Choice { options: options() }, "1", Some(json!("1"))),
            (FieldKind::Choice { options: options() }, "0", None),
            (
                FieldKind::Choices { options: options(), least: None, most: Some(2) },
                "s, 2",
                Some(json!(["s", "l"])),
            ),
            (FieldKind::Choices { options: options(), least: None, most: Some(2) }, "s,l,1", None),
        ];
        for (kind, typed, expected) in cases {
            let described = kind.description();
            match (field(kind).read(typed), expected) {
                (Ok(value), Some(expected)) => assert_eq!(value, Some(expected), "{typed}"),
                (Err(error), None) => assert_eq!(error.to_string(), format!("this has to be {described}")),
                (read, expected) => panic!("{typed}: {read:?} in place of {expected:?}"),
            }
        }
    }

    #[test]
    fn nothing_typed_is_the_default_or_no_value() {
        let mut asked = field(FieldKind::Boolean);
        assert!(asked.read(" ").is_err());
        asked.default = Some(json!(true));
        assert_eq!(asked.read(""), Ok(Some(json!(true))));
        // A default that does not fit is not sent.
        asked.default = Some(json!("x"));
        assert!(asked.read("").is_err());
        asked = QuestionField { is_required: false, default: None, ..asked };
        assert_eq!(asked.read(""), Ok(None));
    }
}
