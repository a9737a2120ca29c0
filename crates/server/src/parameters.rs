//! Query parameters, read as their schema says: a list may be repeated, numbers and truth values are not quoted, and everything else is
//! text. A parameter that the schema does not have is refused, so that a wrong name is never ignored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::problem::Problem;

/// The parameters of a route.
#[derive(Debug, Clone)]
pub(crate) struct Parameters(BTreeMap<String, Kind>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Truth,
    Texts,
}

impl Parameters {
    /// Reads the schema of a type.
    pub(crate) fn of<Q: JsonSchema>() -> Self {
        let schema = schemars::schema_for!(Q);
        let properties = schema.get("properties").and_then(Value::as_object);
        let kinds = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), kind_of(schema)));
        Self(kinds.collect())
    }

    /// Reads the query of a request.
    pub(crate) fn read<Q: DeserializeOwned>(&self, query: &str) -> Result<Q, Problem> {
        let mut values = Map::new();
        for (name, text) in form_urlencoded::parse(query.as_bytes()) {
            let Some(kind) = self.0.get(&*name) else {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Problem::invalid(format!(
                    "there is no parameter `{}`; there are: {known}",
                    shown(&name)
                )));
            };
            let wrong = |what: &str| {
                Problem::invalid(format!("the parameter `{name}` is not {what}: {:?}", shown(&text)))
            };
            let value = match kind {
                Kind::Text | Kind::Texts => Value::from(&*text),
                Kind::Number => text.parse::<u64>().map(Value::from).map_err(|_| wrong("a number"))?,
                Kind::Truth => text.parse::<bool>().map(Value::from).map_err(|_| wrong("true or false"))?,
            };
            if *kind == Kind::Texts {
                let list = values.entry(name.into_owned()).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    list.push(value);
                }
            } else if values.insert(name.clone().into_owned(), value).is_some() {
                return Err(Problem::invalid(format!("the parameter `{name}` is given twice")));
            }
        }
        serde_json::from_value(Value::Object(values)).map_err(|error| Problem::invalid(error.to_string()))
    }
}

fn kind_of(schema: &Value) -> Kind {
    let is = |word: &str| match &schema["type"] {
        Value::String(one) => one == word,
        Value::Array(several) => several.iter().any(|one| one == word),
        _ => false,
    };
    match () {
        () if is("array") => Kind::Texts,
        () if is("integer") => Kind::Number,
        () if is("boolean") => Kind::Truth,
        () => Kind::Text,
    }
}

/// The beginning of a text that a client sent.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(default)]
        status: Vec<String>,
        limit: Option<u64>,
        #[serde(default)]
        all: bool,
        search: Option<String>,
    }

    #[test]
    fn parameters_are_read_as_their_schema_says() {
        let parameters = Parameters::of::<Sample>();
        let read = |query| parameters.read::<Sample>(query);
        let all = read("status=a&status=b%20c&limit=7&all=true&search=12").unwrap();
        let status = vec!["a".to_owned(), "b c".to_owned()];
        assert_eq!(all, Sample { status, limit: Some(7), all: true, search: Some("12".to_owned()) });
        assert_eq!(read("").unwrap(), Sample { status: Vec::new(), limit: None, all: false, search: None });
        for wrong in ["limit=-1", "limit=x", "all=1", "search=a&search=b", "other=1", "limit=1&limit=2"] {
            assert_eq!(read(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }
}
