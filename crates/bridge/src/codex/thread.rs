//! Conversations of Codex, which it calls threads, and their turns.

use serde_json::{Map, Value, json};

/// The most characters of an id.
const LONGEST: usize = 128;

macro_rules! foreign_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// Accepts an id that can be an argument of a command: letters, digits, `-` and `_`, and no `-` at the beginning.
            pub fn new(id: &str) -> Option<Self> {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
                let is_id = !id.is_empty() && id.len() <= LONGEST && !id.starts_with('-') && id.bytes().all(is_plain);
                is_id.then(|| Self(id.to_owned()))
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

foreign_id! {
    /// A conversation.
    ThreadId
}
foreign_id! {
    /// A turn of a conversation: a prompt, and everything until its answer.
    TurnId
}

/// Where a conversation is cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// Before the prompt of a turn.
    Before(TurnId),
    /// After the answer of a turn.
    After(TurnId),
}

impl Cut {
    /// Returns the parameters of `thread/fork`.
    pub(super) fn params(&self, thread: &ThreadId) -> Map<String, Value> {
        let (name, turn) = match self {
            Self::Before(turn) => ("beforeTurnId", turn),
            Self::After(turn) => ("lastTurnId", turn),
        };
        let fields = [("threadId", thread.as_str()), (name, turn.as_str())];
        Map::from_iter(fields.map(|(name, value)| (name.to_owned(), json!(value))))
    }
}

/// Returns the thread of an answer.
pub(super) fn thread_of(answer: &Value) -> Option<ThreadId> {
    ThreadId::new(answer.pointer("/thread/id")?.as_str()?)
}

/// Returns the turns of an answer, the oldest first.
pub(super) fn turns_of(answer: &Value) -> Option<Vec<TurnId>> {
    let turns = answer.pointer("/thread/turns")?.as_array()?;
    turns.iter().map(|turn| TurnId::new(turn.get("id")?.as_str()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_are_accepted() {
        let long = "x".repeat(LONGEST + 1);
        for id in ["", "-c", "a b", "a;b", "\u{1b}", "ä", "../x", long.as_str()] {
            assert_eq!(ThreadId::new(id), None, "{id}");
        }
        let (thread, turn) = (ThreadId::new("01a1-e4").unwrap(), TurnId::new("t_1").unwrap());
        assert_eq!(
            Value::Object(Cut::Before(turn.clone()).params(&thread)),
            json!({"threadId": "01a1-e4", "beforeTurnId": "t_1"})
        );
        assert_eq!(
            Value::Object(Cut::After(turn.clone()).params(&thread)),
            json!({"threadId": "01a1-e4", "lastTurnId": "t_1"})
        );
        assert_eq!(thread_of(&json!({"thread": {"id": "01a1-e4", "x": 1}})), Some(thread));
        assert_eq!(thread_of(&json!({"thread": {"id": "-rf"}})), None);
        assert_eq!(turns_of(&json!({"thread": {"turns": [{"id": "t_1"}]}})), Some(vec![turn]));
        assert_eq!(turns_of(&json!({"thread": {"turns": [{}]}})), None);
    }
}
