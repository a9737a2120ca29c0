//! Questions of programs outside to the person who uses an agent, such as a server that needs a value for a call.
//!
//! Everything in a question is foreign text. An answer is checked against the question, field by field, before it leaves the
//! process. Without a person every question is declined.

mod field;

use std::fmt;
use std::sync::Arc;

use field::misfit;
pub use field::{FieldKind, FieldOption, MisfitValue, QuestionField, TextForm};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::BoxFuture;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonQuestion {
    /// The program that asks, such as `the MCP server "forms"`.
    pub asker: String,
    /// What it says.
    pub message: String,
    /// What it asks for.
    #[serde(flatten)]
    pub wanted: WantedAnswer,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WantedAnswer {
    /// Values, in the order in which the person is asked for them.
    Fields(Vec<QuestionField>),
    /// That the person visits this address, of `http` or `https`. It is never opened by the program.
    Visit(String),
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PersonAnswer {
    /// These values; none if an address was visited.
    Accepted(Map<String, Value>),
    /// The person refuses to answer.
    Declined,
    /// The person did not decide.
    Cancelled,
}

type AskPerson = dyn Fn(PersonQuestion) -> BoxFuture<'static, PersonAnswer> + Send + Sync;

/// The way to the person, if one is there.
#[derive(Clone, Default)]
pub struct PersonPort(Option<Arc<AskPerson>>);

impl PersonPort {
    /// Asks with a function. A question whose future is dropped has ended.
    pub fn new(
        ask: impl Fn(PersonQuestion) -> BoxFuture<'static, PersonAnswer> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(ask)))
    }

    /// Whether a person is there.
    pub fn has_person(&self) -> bool {
        self.0.is_some()
    }

    /// Asks the person. An answer that does not fit the question counts as cancelled.
    pub async fn ask(&self, question: PersonQuestion) -> PersonAnswer {
        let Some(ask) = &self.0 else { return PersonAnswer::Declined };
        match ask(question.clone()).await {
            PersonAnswer::Accepted(values) if question.check(&values).is_err() => PersonAnswer::Cancelled,
            answer => answer,
        }
    }
}

impl fmt::Debug for PersonPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.has_person() { "PersonPort" } else { "no person" })
    }
}

impl PartialEq for PersonPort {
    /// Who is asked is not a part of what is defined.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl PersonQuestion {
    /// Fails if values do not fit the question.
    pub fn check(&self, values: &Map<String, Value>) -> Result<(), MisfitValue> {
        let WantedAnswer::Fields(fields) = &self.wanted else {
            return if values.is_empty() { Ok(()) } else { misfit("no value was asked for") };
        };
        if let Some(name) = values.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
            return misfit(format!("{name:?} was not asked for"));
        }
        for field in fields {
            match values.get(&field.name) {
                Some(value) => field.kind.check(value)?,
                None if field.is_required => return misfit(format!("{:?} is required", field.name)),
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_do_not_fit_a_question_are_refused() {
        let (name, kind) = ("size".to_owned(), FieldKind::Boolean);
        let field =
            QuestionField { name, title: None, description: None, is_required: true, default: None, kind };
        let wanted = WantedAnswer::Fields(vec![field]);
        let question = PersonQuestion { asker: "x".to_owned(), message: "m".to_owned(), wanted };
        let check = |values: Value| question.check(values.as_object().unwrap()).is_ok();
        assert!(check(json!({"size": true})));
        assert!(!check(json!({})) && !check(json!({"size": 1})) && !check(json!({"size": true, "more": 1})));
        let visit = WantedAnswer::Visit("https://example.com/".to_owned());
        let visit = PersonQuestion { wanted: visit, ..question.clone() };
        assert!(visit.check(&Map::new()).is_ok());
        for question in [question, visit] {
            let text = serde_json::to_string(&question).unwrap();
            assert_eq!(serde_json::from_str::<PersonQuestion>(&text).unwrap(), question);
        }
    }
}
