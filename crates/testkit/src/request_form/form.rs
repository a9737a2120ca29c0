//! Forms: the fields of a value, their types, and dependencies between them.
//!
//! A form is complete: unknown fields are refused, as strict servers do, and so is `null`, which is never
//! sent.

use serde_json::{Map, Value};

/// The form of a value.
pub(super) enum Form {
    /// Any value except `null`.
    Any,
    /// Any object.
    Map,
    /// A text.
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Boolean,
    /// A whole number with this minimum.
    Count(u64),
    /// A number.
    Number,
    /// A list of values of one form.
    List(&'static Form),
    /// An object of one shape.
    Object(&'static Shape),
    /// An object of one of these shapes: the one in which the field of this name has the same word.
    By(&'static str, &'static [&'static Shape]),
    /// An object whose shape depends on its content; `None` for unknown content.
    ByContent(fn(&Value) -> Option<&'static Shape>),
    /// A text, or a list of values of one form.
    TextOr(&'static Form),
}

/// The shape of an object.
pub(super) struct Shape {
    /// The name in errors.
    pub(super) name: &'static str,
    /// All possible fields.
    pub(super) fields: &'static [Field],
    /// The dependencies between fields.
    pub(super) together: &'static [Together],
}

impl Shape {
    /// An object with independent fields.
    pub(super) const fn of(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, together: &[] }
    }

    /// Whether an object with this value of a field has the shape.
    fn is_of(&self, name: &str, value: &Value) -> bool {
        let has_word = |form: &Form| matches!(form, Form::Word(words) if is_word(words, value));
        self.fields.iter().any(|field| field.name == name && has_word(&field.form))
    }
}

/// A field of an object, or several of one form, whose names are separated by spaces.
pub(super) struct Field {
    name: &'static str,
    form: Form,
    is_needed: bool,
}

impl Field {
    fn has_name(&self, name: &str) -> bool {
        self.name.split(' ').any(|one| one == name)
    }
}

/// A required field.
pub(super) const fn needed(name: &'static str, form: Form) -> Field {
    Field { name, form, is_needed: true }
}

/// An optional field, or several.
pub(super) const fn maybe(name: &'static str, form: Form) -> Field {
    Field { name, form, is_needed: false }
}

/// The field `type`, which is one of these words.
pub(super) const fn kind(words: &'static [&'static str]) -> Field {
    needed("type", Form::Word(words))
}

/// A dependency between fields.
pub(super) enum Together {
    /// Exactly one of them is present.
    OneOf(&'static [&'static str]),
    /// At most one of them is present.
    NotBoth(&'static str, &'static str),
    /// The first is present only together with the second.
    With(&'static str, &'static str),
}

/// Returns all problems of a value, each with its place.
pub(super) fn problems(form: &Form, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(form, value, "", &mut found);
    found
}

fn check(form: &Form, value: &Value, place: &str, found: &mut Vec<String>) {
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{}: expected {what}, got {}", shown(place), excerpt(value)));
        }
    };
    match form {
        Form::Any => expect(!value.is_null(), "a value"),
        Form::Map => expect(value.is_object(), "an object"),
        Form::Text => expect(value.is_string(), "a text"),
        Form::Word(words) => expect(is_word(words, value), &format!("one of {}", words.join(", "))),
        Form::Boolean => expect(value.is_boolean(), "true or false"),
        Form::Count(least) => {
            let holds = value.as_u64().is_some_and(|count| count >= *least);
            expect(holds, &format!("a whole number of at least {least}"));
        }
        Form::Number => expect(value.is_number(), "a number"),
        Form::List(form) => match value.as_array() {
            Some(items) => {
                for (index, item) in items.iter().enumerate() {
                    check(form, item, &format!("{place}[{index}]"), found);
                }
            }
            None => expect(false, "a list"),
        },
        Form::TextOr(_) if value.is_string() => {}
        Form::TextOr(form) => check(&Form::List(form), value, place, found),
        Form::Object(shape) => match value.as_object() {
            Some(fields) => check_shape(shape, fields, place, found),
            None => expect(false, shape.name),
        },
        Form::By(name, shapes) => {
            let mut shapes = shapes.iter().copied();
            match shapes.find(|shape| shape.is_of(name, &value[*name])) {
                Some(shape) => check(&Form::Object(shape), value, place, found),
                None => expect(false, "an object of a known kind"),
            }
        }
        Form::ByContent(choose) => match choose(value) {
            Some(shape) => check(&Form::Object(shape), value, place, found),
            None => expect(false, "an object of a known kind"),
        },
    }
}

fn is_word(words: &[&str], value: &Value) -> bool {
    value.as_str().is_some_and(|word| words.contains(&word))
}

fn check_shape(shape: &Shape, fields: &Map<String, Value>, place: &str, found: &mut Vec<String>) {
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    for (name, value) in fields {
        match shape.fields.iter().find(|field| field.has_name(name)) {
            Some(field) => check(&field.form, value, &below(name), found),
            None => found.push(format!("{}: {} has no such field", below(name), shape.name)),
        }
    }
    for field in shape.fields.iter().filter(|field| field.is_needed && !fields.contains_key(field.name)) {
        found.push(format!("{}: {} needs it", below(field.name), shape.name));
    }
    let has = |name: &str| fields.contains_key(name);
    for together in shape.together {
        let problem = match together {
            Together::OneOf(names) if names.iter().filter(|name| has(name)).count() != 1 => {
                format!("has to have exactly one of {}", names.join(", "))
            }
            Together::NotBoth(one, other) if has(one) && has(other) => {
                format!("cannot have both {one} and {other}")
            }
            Together::With(one, other) if has(one) && !has(other) => format!("has {one} without {other}"),
            _ => continue,
        };
        found.push(format!("{}: {} {problem}", shown(place), shape.name));
    }
}

fn shown(place: &str) -> &str {
    if place.is_empty() { "the request" } else { place }
}

/// The beginning of a value, for errors.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
