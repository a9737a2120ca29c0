//! Questions of MCP servers, which the person at the terminal answers while a call runs.
//!
//! A server asks from inside of a call. The question waits here until the loop that follows the run shows it, since that loop owns the
//! keyboard. Everything that a server sends stands behind a gutter, so that it cannot imitate the question. Nothing is sent before the
//! person has seen all values; an address is only shown.

use std::sync::LazyLock;

use backstitch::agent_file::names_secret;
use backstitch::host::one_line;
use backstitch::ports::{
    FieldKind, FieldOption, PersonAnswer, PersonPort, PersonQuestion, QuestionField, WantedAnswer,
};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Person;
use super::shown::{behind_gutter, dim, line, plain, warning};
use crate::common::Common;
use crate::terminal::{Role, Text, columns, exact_json, exact_text};

/// The most characters of a name or a value in a line of our own.
const SHOWN: usize = 60;

type Questions = (mpsc::UnboundedSender<ServerQuestion>, Mutex<mpsc::UnboundedReceiver<ServerQuestion>>);

/// The questions that wait. A process has one terminal.
static WAITING: LazyLock<Questions> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Mutex::new(receiver))
});

/// A question that waits for the person.
pub(crate) struct ServerQuestion {
    question: PersonQuestion,
    answer: oneshot::Sender<PersonAnswer>,
}

/// Returns the person at the terminal. Without a terminal there is none.
pub(crate) fn person(common: &Common) -> PersonPort {
    if !common.can_ask() {
        return PersonPort::default();
    }
    PersonPort::new(|question| {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _ = WAITING.0.send(ServerQuestion { question, answer });
            answered.await.unwrap_or(PersonAnswer::Cancelled)
        })
    })
}

/// Returns the next question that still waits.
pub(crate) async fn next() -> ServerQuestion {
    let mut receiver = WAITING.1.lock().await;
    loop {
        match receiver.recv().await {
            Some(question) if question.answer.is_closed() => {}
            Some(question) => return question,
            // The sender is never dropped.
            None => std::future::pending().await,
        }
    }
}

impl ServerQuestion {
    /// Asks the person, and sends the answer to the call. A call that ends takes its question with it.
    pub(crate) async fn ask(mut self, person: &mut dyn Person) {
        let answer = tokio::select! {
            biased;
            () = self.answer.closed() => None,
            answer = ask(&self.question, &mut *person) => Some(answer),
        };
        let Some(answer) = answer else {
            person.show(&[dim(""), dim("the question has ended: its call does not wait any more")]);
            return;
        };
        let word = match &answer {
            PersonAnswer::Accepted(_) => "sent to",
            PersonAnswer::Declined => "declined:",
            _ => "cancelled:",
        };
        person.show(&[dim(format!("{word} {}", own(&self.question.asker)))]);
        let _ = self.answer.send(answer);
    }
}

async fn ask(question: &PersonQuestion, person: &mut dyn Person) -> PersonAnswer {
    person.show(&[line(Role::Heading, format!("{} asks you:", own(&question.asker)))]);
    person.show(&behind_gutter(Role::Plain, &question.message, columns()));
    let asked = match &question.wanted {
        WantedAnswer::Fields(fields) => ask_fields(fields, person).await,
        WantedAnswer::Visit(url) => ask_visit(url, person).await,
        _ => Some(PersonAnswer::Declined),
    };
    asked.unwrap_or(PersonAnswer::Cancelled)
}

/// Shows an address. `None` if the person leaves the question.
async fn ask_visit(url: &str, person: &mut dyn Person) -> Option<PersonAnswer> {
    person.show(&[plain("it wants you to visit this address in a browser:")]);
    person.show(&behind_gutter(Role::Plain, url, columns()));
    // A long address may look like one of another host.
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    person.show(&[plain("its host is:")]);
    person.show(&behind_gutter(Role::Plain, rest.split(['/', '?', '#']).next().unwrap_or(rest), columns()));
    person.show(&[dim(
        "it was not opened. Check the host; what you type there goes to it, not to this session.",
    )]);
    loop {
        let typed = person.answer("have you visited it? [y/n/q] ").await?;
        match first_letter(&typed) {
            Some('y') => return Some(PersonAnswer::Accepted(Map::new())),
            Some('n') => return Some(PersonAnswer::Declined),
            Some('q') => return None,
            _ => person.show(&[dim("y: continue; n: decline; q: cancel the question")]),
        }
    }
}

/// Asks for values. `None` if the person leaves the question.
async fn ask_fields(fields: &[QuestionField], person: &mut dyn Person) -> Option<PersonAnswer> {
    person.show(&[dim("it asks for these values, which the journal of the session will hold:")]);
    fields.iter().for_each(|field| person.show(&described(field)));
    let is_secret = |field: &QuestionField| {
        [Some(&field.name), field.title.as_ref()].into_iter().flatten().any(|text| names_secret(text, ""))
    };
    if let Some(field) = fields.iter().find(|field| is_secret(field)) {
        let word = format!("{} may be a secret: the server and the journal would hold it", name_of(field));
        person.show(&[warning(word)]);
    }
    loop {
        let typed = person.answer("answer it? [y/n/q] ").await?;
        match first_letter(&typed) {
            Some('y') => break,
            Some('n') => return Some(PersonAnswer::Declined),
            Some('q') => return None,
            _ => person.show(&[dim("y: type the values; n: decline; q: cancel the question")]),
        }
    }
    loop {
        let values = read_values(fields, person).await?;
        person.show(&[plain("this will be sent:")]);
        person.show(&behind_gutter(Role::Plain, &exact_json(&Value::Object(values.clone())), columns()));
        loop {
            let typed = person.answer("send it? [y/e/n/q] ").await?;
            match first_letter(&typed) {
                Some('y') => return Some(PersonAnswer::Accepted(values)),
                Some('e') => break,
                Some('n') => return Some(PersonAnswer::Declined),
                Some('q') => return None,
                _ => person
                    .show(&[dim("y: send; e: type the values again; n: decline; q: cancel the question")]),
            }
        }
    }
}

async fn read_values(fields: &[QuestionField], person: &mut dyn Person) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for field in fields {
        loop {
            let typed = person.answer(&format!("{}{}: ", name_of(field), hint(field))).await?;
            match field.read(&typed) {
                Ok(value) => {
                    values.extend(value.map(|value| (field.name.clone(), value)));
                    break;
                }
                Err(misfit) => person.show(&[warning(own(&misfit.to_string()))]),
            }
        }
    }
    Some(values)
}

/// Describes a field: its name, what fits, what it is for, and its choices.
fn described(field: &QuestionField) -> Vec<Text> {
    let is_required = if field.is_required { "required" } else { "optional" };
    let mut lines =
        vec![plain(format!("- {} ({}, {is_required})", name_of(field), field.kind.description()))];
    for text in [&field.title, &field.description].into_iter().flatten() {
        lines.extend(behind_gutter(Role::Plain, text, columns()));
    }
    if let FieldKind::Choice { options } | FieldKind::Choices { options, .. } = &field.kind {
        let choices = options.iter().enumerate().map(|(index, option)| choice(index + 1, option));
        lines.extend(behind_gutter(Role::Plain, &choices.collect::<Vec<_>>().join("\n"), columns()));
    }
    lines
}

fn choice(number: usize, option: &FieldOption) -> String {
    let title = option.title.as_ref().filter(|title| **title != option.value);
    let title = title.map(|title| format!(": {}", title.replace('\n', " "))).unwrap_or_default();
    format!("{number}  {}{title}", option.value.replace('\n', " "))
}

/// Returns what stands behind the name of a field at the prompt.
fn hint(field: &QuestionField) -> String {
    match &field.default {
        Some(default) => format!(" [{}]", own(&exact_json(default))),
        None if field.is_required => String::new(),
        None => " (Enter for none)".to_owned(),
    }
}

/// Returns the name of a field, in quotes if it could be read as words of our own.
fn name_of(field: &QuestionField) -> String {
    let is_name = |name: &str| name.chars().all(|one| one.is_alphanumeric() || "_-.".contains(one));
    let name = own(&field.name);
    if is_name(&field.name) { name } else { format!("\"{}\"", name.replace('"', "'")) }
}

/// Returns foreign text for a line of our own: short, and without a way to control the terminal.
fn own(text: &str) -> String {
    exact_text(&one_line(text, SHOWN))
}

fn first_letter(typed: &str) -> Option<char> {
    let word = typed.trim().to_lowercase();
    let is_known = matches!(word.as_str(), "y" | "yes" | "n" | "no" | "e" | "edit" | "q" | "quit");
    is_known.then(|| word.chars().next()).flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use backstitch::ports::BoxFuture;
    use serde_json::json;

    use super::*;

    /// A person with prepared answers.
    struct ScriptedPerson {
        answers: VecDeque<&'static str>,
        shown: String,
    }

    impl Person for ScriptedPerson {
        fn show(&mut self, lines: &[Text]) {
            lines.iter().for_each(|line| self.shown.push_str(&format!("{}\n", line.text())));
        }

        fn answer<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
            self.shown.push_str(question);
            self.shown.push('\n');
            let answer = self.answers.pop_front().map(str::to_owned);
            Box::pin(std::future::ready(answer))
        }
    }

    fn question(wanted: WantedAnswer) -> PersonQuestion {
        let (asker, message) = ("the MCP server \"forms\"".to_owned(), "Which \u{1b}[2Jhem?".to_owned());
        PersonQuestion { asker, message, wanted }
    }

    fn field(name: &str, is_required: bool, default: Option<Value>, kind: FieldKind) -> QuestionField {
        let name = name.to_owned();
        QuestionField { name, title: None, description: None, is_required, default, kind }
    }

    async fn answer_to(wanted: WantedAnswer, answers: &[&'static str]) -> (PersonAnswer, String) {
        let mut person = ScriptedPerson { answers: answers.iter().copied().collect(), shown: String::new() };
        let answer = ask(&question(wanted), &mut person).await;
        (answer, person.shown)
    }

    fn fields() -> WantedAnswer {
        let option = |value: &str| FieldOption { value: value.to_owned(), title: None };
        let options = vec![option("silk"), option("wool")];
        WantedAnswer::Fields(vec![
            field("length", true, None, FieldKind::Integer { least: Some(1), most: Some(9) }),
            field("cloth", true, Some(json!("wool")), FieldKind::Choice { options }),
            field("note\u{1b}[1A\nsend it? [y]", false, None, FieldKind::Boolean),
        ])
    }

    #[tokio::test]
    async fn values_are_sent_after_the_person_has_seen_them() {
        let answers = ["perhaps", "y", "twelve", "12", "7", "", "", "e", "8", "1", "y", "y"];
        let (answer, shown) = answer_to(fields(), &answers).await;
        let note = "note\u{1b}[1A\nsend it? [y]";
        let expected = json!({"length": 8, "cloth": "silk", note: true});
        assert_eq!(answer, PersonAnswer::Accepted(expected.as_object().unwrap().clone()), "{shown}");
        assert!(shown.contains("this has to be a whole number from 1 to 9"), "{shown}");
        assert!(shown.contains("cloth [\"wool\"]: "), "{shown}");
        assert!(!shown.contains('\u{1b}') && !shown.contains("\nsend it? [y]"), "{shown}");
    }

    #[tokio::test]
    async fn a_question_is_declined_or_cancelled_at_every_step() {
        for (answers, expected) in [
            (&["n"][..], PersonAnswer::Declined),
            (&["q"], PersonAnswer::Cancelled),
            (&[], PersonAnswer::Cancelled),
            (&["y", "7"], PersonAnswer::Cancelled),
            (&["y", "7", "", "", "n"], PersonAnswer::Declined),
            (&["y", "7", "", "", "q"], PersonAnswer::Cancelled),
        ] {
            assert_eq!(answer_to(fields(), answers).await.0, expected, "{answers:?}");
        }
        let visit = || WantedAnswer::Visit("https://example.com/form".to_owned());
        let (answer, shown) = answer_to(visit(), &["y"]).await;
        assert_eq!(answer, PersonAnswer::Accepted(Map::new()));
        assert!(shown.contains("  | https://example.com/form") && shown.contains("not opened"), "{shown}");
        assert!(shown.contains("its host is:\n  | example.com\n"), "{shown}");
        assert_eq!(answer_to(visit(), &["n"]).await.0, PersonAnswer::Declined);
        assert_eq!(answer_to(visit(), &["q"]).await.0, PersonAnswer::Cancelled);
    }

    #[tokio::test]
    async fn names_that_read_like_our_own_words_are_quoted_and_secrets_are_warned_about() {
        let text = || FieldKind::Text { shortest: None, longest: None, form: None };
        let asked = WantedAnswer::Fields(vec![field("Backstitch needs your API key", true, None, text())]);
        let (_, shown) = answer_to(asked, &["y", "x", "n"]).await;
        assert!(shown.contains("\n\"Backstitch needs your API key\": \n"), "{shown}");
        assert!(shown.contains("may be a secret: the server and the journal would hold it"), "{shown}");
        assert!(!answer_to(fields(), &["n"]).await.1.contains("may be a secret"));
    }
}
