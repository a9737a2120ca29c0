//! Questions of a server to the person who uses the agent (elicitation).
//!
//! A server asks while it works on a call, but does not say on which: the question belongs to the call that began last. It is recorded there
//! with its answer, so a call that runs again after a crash does not ask twice. Values leave the process only if they fit the schema that the
//! server asked with. A server that asks while no call runs, or in a form that is not known, is declined.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::digest::Digest;
use backstitch_core::ports::{
    FieldKind, FieldOption, PersonAnswer, PersonPort, PersonQuestion, QuestionField, TextForm, WantedAnswer,
};
use backstitch_core::tool::{ToolContext, ToolError};
use reqwest::Url;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability,
    UrlElicitationCapability,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The most fields of a question, and the most choices of a field.
const MOST: usize = 100;

/// The most characters of a message, a description or a URL.
const LONGEST: usize = 4000;

/// The most bytes of a question, which a person has to read and the journal holds.
const LARGEST: usize = 64 * 1024;

/// The most questions that wait for one call.
const MOST_WAITING: usize = 8;

/// The most questions of one call. A server that asks on and on would neither let the person go, nor end to fill the journal.
const MOST_ASKED: u32 = 20;

/// A question that waits for its answer.
pub(super) struct WaitingQuestion {
    pub(super) question: PersonQuestion,
    pub(super) answer: oneshot::Sender<PersonAnswer>,
}

/// Where the questions of a server go while this call of it runs.
type Listener = (u64, mpsc::Sender<WaitingQuestion>);

/// The calls of a connection that questions may belong to, in the order in which they began. Clones share them.
#[derive(Clone, Default)]
pub(super) struct QuestionRouter(Arc<Mutex<Vec<Listener>>>);

/// The questions of one call, until it is dropped.
pub(super) struct CallQuestions {
    receiver: mpsc::Receiver<WaitingQuestion>,
    of: QuestionRouter,
    number: u64,
}

impl QuestionRouter {
    /// Receives the questions of a call that begins.
    pub(super) fn of_call(&self) -> CallQuestions {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = calls.last().map_or(0, |(last, _)| last + 1);
        calls.push((number, sender));
        CallQuestions { receiver, of: self.clone(), number }
    }

    /// Asks for the call that began last. Declines if there is none.
    pub(super) async fn ask(&self, question: PersonQuestion) -> PersonAnswer {
        let call = self.0.lock().unwrap_or_else(PoisonError::into_inner).last().map(|(_, call)| call.clone());
        let (answer, answered) = oneshot::channel();
        let asked = call.and_then(|call| call.try_send(WaitingQuestion { question, answer }).ok());
        match asked {
            // A call that ends takes its questions with it.
            Some(()) => answered.await.unwrap_or(PersonAnswer::Cancelled),
            None => PersonAnswer::Declined,
        }
    }
}

impl CallQuestions {
    /// Returns the next question.
    pub(super) async fn next(&mut self) -> WaitingQuestion {
        match self.receiver.recv().await {
            Some(question) => question,
            // The router keeps the sender as long as this exists.
            None => std::future::pending().await,
        }
    }
}

impl Drop for CallQuestions {
    fn drop(&mut self) {
        let mut calls = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|(number, _)| *number != self.number);
    }
}

/// Returns what a client with a person can do.
pub(super) fn capability() -> ElicitationCapability {
    let form = FormElicitationCapability::new().with_schema_validation(true);
    ElicitationCapability::new().with_form(form).with_url(UrlElicitationCapability::new())
}

/// A question with its answer, as the journal keeps it.
#[derive(Serialize, Deserialize)]
struct RecordedQuestion {
    question: PersonQuestion,
    answer: PersonAnswer,
}

/// The questions of a call, which are asked and recorded one after the other.
pub(super) struct RecordedQuestions<'a> {
    context: &'a ToolContext,
    person: &'a PersonPort,
    count: AtomicU32,
}

impl<'a> RecordedQuestions<'a> {
    pub(super) fn new(context: &'a ToolContext, person: &'a PersonPort) -> Self {
        Self { context, person, count: AtomicU32::new(0) }
    }

    /// Asks the person, unless the answer was recorded by an earlier attempt of the call.
    pub(super) async fn ask(&self, question: PersonQuestion) -> PersonAnswer {
        let number = self.count.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        if number > MOST_ASKED {
            // Said once, and not recorded.
            if number == MOST_ASKED + 1 {
                let word =
                    format!("{} asked {MOST_ASKED} times; more questions are declined", question.asker);
                self.context.progress(word, None);
            }
            return PersonAnswer::Declined;
        }
        // A server that asks something else when the call runs again needs another answer.
        let digest = Digest::of_json(&question).map(|digest| digest.to_string()).unwrap_or_default();
        let name = format!("question {number} of {}, {digest}", question.asker);
        if !self.person.has_person() {
            let word =
                format!("{} asks for input, which is declined: nobody is at a terminal", question.asker);
            self.context.progress(word, None);
        }
        let work = async {
            let answer = self.context.wait_for_person(self.person.ask(question.clone())).await;
            Ok::<_, ToolError>(RecordedQuestion { question, answer })
        };
        match self.context.step(&name, work).await {
            // The recorded values have no keys of providers, so they may not fit any more.
            Ok(RecordedQuestion { question, answer: PersonAnswer::Accepted(values) }) => {
                let fits = question.check(&values).is_ok();
                if fits { PersonAnswer::Accepted(values) } else { PersonAnswer::Cancelled }
            }
            Ok(recorded) => recorded.answer,
            Err(error) => {
                tracing::warn!(%error, "the answer to a question of a server cannot be recorded");
                PersonAnswer::Cancelled
            }
        }
    }
}

/// Reads a question. `None` if it cannot be asked.
pub(super) fn question_of(server: &str, asked: ElicitRequestParams) -> Option<PersonQuestion> {
    let asker = format!("the MCP server {server:?}");
    let (message, wanted) = match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let order = requested_schema.property_order.clone();
            let schema = serde_json::to_value(&requested_schema).ok()?;
            (message, WantedAnswer::Fields(fields(&schema, order)?))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
            // A name before the host would be taken for it, as in `https://bank.example@host/`.
            let has_name = !url.username().is_empty() || url.password().is_some();
            let url = Some(url.to_string()).filter(|_| !has_name)?;
            (message, WantedAnswer::Visit(Some(url).filter(|url| is_short(url))?))
        }
        _ => return None,
    };
    let question = PersonQuestion { asker, message, wanted };
    let size = serde_json::to_vec(&question).ok()?.len();
    (is_short(&question.message) && size <= LARGEST).then_some(question)
}

/// Returns the result for the server. Only forms have content.
pub(super) fn result_of(wanted: &WantedAnswer, answer: PersonAnswer) -> ElicitResult {
    match answer {
        PersonAnswer::Accepted(values) => {
            let accepted = ElicitResult::new(ElicitationAction::Accept);
            let is_form = matches!(wanted, WantedAnswer::Fields(_));
            if is_form { accepted.with_content(Value::Object(values)) } else { accepted }
        }
        PersonAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}

fn is_short(text: &str) -> bool {
    text.chars().nth(LONGEST).is_none()
}

fn fields(schema: &Value, order: Option<Vec<String>>) -> Option<Vec<QuestionField>> {
    let properties = schema.get("properties")?.as_object()?;
    let required = schema.get("required").and_then(Value::as_array);
    let names = order.unwrap_or_else(|| properties.keys().cloned().collect());
    let names: Vec<String> = names.into_iter().filter(|name| properties.contains_key(name)).collect();
    if names.len() > MOST || names.len() != properties.len() {
        return None;
    }
    let field = |name: String| {
        let property = &properties[&name];
        let text = |key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
        let (title, description) = (text("title"), text("description"));
        let is_required = required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(&name)));
        let kind = kind_of(property)?;
        let all = [Some(&name), title.as_ref(), description.as_ref()];
        let default = property.get("default").cloned();
        all.into_iter().flatten().all(|text| is_short(text)).then_some(())?;
        Some(QuestionField { name, title, description, is_required, default, kind })
    };
    names.into_iter().map(field).collect()
}

fn kind_of(property: &Value) -> Option<FieldKind> {
    let number = |key: &str| property.get(key).and_then(Value::as_u64);
    if let Some(options) = options_of(property) {
        return Some(FieldKind::Choice { options: options? });
    }
    Some(match property.get("type")?.as_str()? {
        "string" => {
            let form = match property.get("format").and_then(Value::as_str) {
                Some("email") => Some(TextForm::Email),
                Some("uri") => Some(TextForm::Uri),
                Some("date") => Some(TextForm::Date),
                Some("date-time") => Some(TextForm::Time),
                _ => None,
            };
            FieldKind::Text { shortest: number("minLength"), longest: number("maxLength"), form }
        }
        "number" => {
            let number = |key: &str| property.get(key).and_then(Value::as_f64);
            FieldKind::Number { least: number("minimum"), most: number("maximum") }
        }
        "integer" => {
            let number = |key: &str| property.get(key).and_then(Value::as_i64);
            FieldKind::Integer { least: number("minimum"), most: number("maximum") }
        }
        "boolean" => FieldKind::Boolean,
        "array" => {
            let options = options_of(property.get("items")?)??;
            FieldKind::Choices { options, least: number("minItems"), most: number("maxItems") }
        }
        _ => return None,
    })
}

/// Returns the choices of a schema; `None` if it has none, and `Some(None)` if they cannot be shown.
fn options_of(schema: &Value) -> Option<Option<Vec<FieldOption>>> {
    let text = |value: &Value| value.as_str().filter(|text| is_short(text)).map(str::to_owned);
    let options: Option<Vec<FieldOption>> = if let Some(values) = schema.get("enum").and_then(Value::as_array)
    {
        let title = |index: usize| schema.get("enumNames").and_then(|names| text(names.get(index)?));
        let option = |(index, value)| Some(FieldOption { value: text(value)?, title: title(index) });
        values.iter().enumerate().map(option).collect()
    } else {
        let all = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        let option = |one: &Value| {
            Some(FieldOption { value: text(one.get("const")?)?, title: one.get("title").and_then(text) })
        };
        all.iter().map(option).collect()
    };
    Some(options.filter(|options| (1..=MOST).contains(&options.len())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(asked: Value) -> Option<PersonQuestion> {
        question_of("forms", serde_json::from_value(asked).ok()?)
    }

    fn form(properties: Value) -> Value {
        let schema = json!({"type": "object", "properties": properties, "required": ["size"]});
        json!({"mode": "form", "message": "Which hem?", "requestedSchema": schema})
    }

    #[test]
    fn every_kind_of_field_is_read_in_the_order_of_the_server() {
        let question = read(form(json!({
            "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
            "cloth": {"type": "string", "oneOf": [{"const": "s", "title": "silk"}, {"const": "w", "title": "wool"}]},
            "extras": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1},
            "until": {"type": "string", "format": "date", "title": "Until when"},
            "share": {"type": "number", "minimum": 0.5},
            "lined": {"type": "boolean"},
        })))
        .unwrap();
        let WantedAnswer::Fields(fields) = &question.wanted else { panic!("{question:?}") };
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["size", "colour", "cloth", "extras", "until", "share", "lined"]);
        assert!(fields[0].is_required && !fields[1].is_required);
        assert_eq!(fields[0].default, Some(json!(2)));
        let kinds: Vec<String> = fields.iter().map(|field| field.kind.description()).collect();
        assert_eq!(kinds[0], "a whole number from 1 to 9");
        assert_eq!(kinds[1], "one of the choices");
        assert_eq!(kinds[3], "at most 1 of the choices, with commas between them");
        assert_eq!(kinds[4], "a day, such as 2026-11-18");
        let titles = |field: &QuestionField| match &field.kind {
            FieldKind::Choice { options } => {
                options.iter().map(|option| option.title.clone().unwrap_or_default()).collect::<Vec<_>>()
            }
            kind => panic!("{kind:?}"),
        };
        assert_eq!(
            (titles(&fields[1]), titles(&fields[2])),
            (vec!["red".into(), "green".into()], vec!["silk".into(), "wool".into()])
        );
    }

    #[test]
    fn what_cannot_be_asked_is_left_out() {
        let many: serde_json::Map<_, _> =
            (0..=MOST).map(|number| (format!("f{number}"), json!({"type": "boolean"}))).collect();
        let long = "x".repeat(LONGEST + 1);
        let url = |url: &str| json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"});
        for asked in [
            form(json!(many)),
            form(json!({"size": {"type": "string", "description": long}})),
            form(json!({"size": {"type": "string", "default": "x".repeat(LARGEST)}})),
            json!({"message": long, "requestedSchema": {"type": "object", "properties": {}}}),
            url("file:///etc/passwd"),
            url("javascript:alert(1)"),
            url("not a url"),
            url("https://bank.example@example.com/"),
            url(&format!("https://example.com/{long}")),
        ] {
            assert_eq!(read(asked.clone()), None, "{asked}");
        }
        let visit = read(url("https://EXAMPLE.com/a b")).unwrap();
        assert_eq!(visit.wanted, WantedAnswer::Visit("https://example.com/a%20b".to_owned()));
    }

    #[tokio::test]
    async fn a_question_belongs_to_the_call_that_began_last() {
        let router = QuestionRouter::default();
        let question = read(form(json!({"size": {"type": "boolean"}}))).unwrap();
        assert_eq!(router.ask(question.clone()).await, PersonAnswer::Declined, "no call runs");
        let (_first, mut second) = (router.of_call(), router.of_call());
        let answering = async {
            let waiting = second.next().await;
            let _ = waiting
                .answer
                .send(PersonAnswer::Accepted(json!({"size": true}).as_object().unwrap().clone()));
        };
        let (answer, ()) = tokio::join!(router.ask(question.clone()), answering);
        assert_eq!(result_of(&question.wanted, answer).content, Some(json!({"size": true})));
        // A call that ends leaves its questions open.
        let ending = async { drop(second) };
        let (answer, ()) = tokio::join!(router.ask(question), ending);
        assert_eq!(answer, PersonAnswer::Cancelled);
    }
}
