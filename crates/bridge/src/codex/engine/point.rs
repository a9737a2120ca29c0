//! Where a conversation continues, without IO.

use backstitch_runtime::EnginePoint;
use serde_json::Value;

use crate::codex::thread::{Cut, TurnId};
use crate::fields::text;

/// How a thread continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continuation {
    /// At its end.
    Whole,
    /// Without what comes after a turn.
    Cut(Cut),
}

/// Returns how a thread continues after the first of some points that it has. Returns `None` if it has none of them, or if
/// the point lies inside of a turn and more of that turn has to be cut off than calls that did not end.
pub(super) fn continuation(read: &Value, after: &[EnginePoint]) -> Option<Continuation> {
    let turns = read.pointer("/thread/turns")?.as_array()?;
    after.iter().find_map(|point| found(turns, point))?
}

/// Returns `None` if the thread does not have the point, and `Some(None)` if it has it and cannot be cut there.
fn found(turns: &[Value], point: &EnginePoint) -> Option<Option<Continuation>> {
    let place = turns.iter().enumerate().find_map(|(turn, value)| {
        let items = items_of(value);
        let item = items.iter().position(|item| match point {
            EnginePoint::Call(call) | EnginePoint::Before(call) => text(item, "id") == Some(call),
            EnginePoint::Answer(prompt) => text(item, "clientId") == Some(prompt),
        })?;
        let rest = if matches!(point, EnginePoint::Before(_)) { item } else { item + 1 };
        Some((turn, items.get(rest..).unwrap_or_default()))
    });
    let (turn, rest) = place?;
    let is_last = turn + 1 == turns.len();
    Some(match point {
        EnginePoint::Answer(_) if is_last => Some(Continuation::Whole),
        EnginePoint::Answer(_) => {
            let id = turns.get(turn).and_then(|turn| TurnId::new(text(turn, "id")?));
            id.map(|id| Continuation::Cut(Cut::After(id)))
        }
        // Calls that did not end are shown to the model as aborted, which they are.
        EnginePoint::Call(_) | EnginePoint::Before(_) if is_last && !rest.iter().any(is_done) => {
            Some(Continuation::Whole)
        }
        EnginePoint::Call(_) | EnginePoint::Before(_) => None,
    })
}

fn items_of(turn: &Value) -> &[Value] {
    turn.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether an item is a text of the model, or a call that has ended.
fn is_done(item: &Value) -> bool {
    match text(item, "status") {
        Some(status) => matches!(status, "completed" | "failed"),
        None => text(item, "type") == Some("agentMessage"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_thread_is_cut_between_turns_only() {
        let prompt = |id: &str| json!({"type": "userMessage", "clientId": id});
        let call = |id: &str, status: &str| json!({"type": "commandExecution", "id": id, "status": status});
        let one = json!({"id": "t_1", "items": [prompt("p1"), call("c1", "completed"), call("c2", "failed"), {"type": "agentMessage"}]});
        let two =
            json!({"id": "t_2", "items": [prompt("p2"), call("c3", "completed"), call("c4", "inProgress")]});
        let read = json!({"thread": {"turns": [one, two]}});
        let at = |points: &[EnginePoint]| continuation(&read, points);
        let (called, answered) =
            (|id: &str| EnginePoint::Call(id.to_owned()), |id: &str| EnginePoint::Answer(id.to_owned()));
        assert_eq!(at(&[called("c3")]), Some(Continuation::Whole), "the call after it did not end");
        assert_eq!(at(&[called("c1")]), None, "more of the turn was undone");
        let before = |id: &str| EnginePoint::Before(id.to_owned());
        assert_eq!(at(&[before("c4")]), Some(Continuation::Whole), "it did not end");
        assert_eq!(at(&[before("c3"), called("c3")]), None, "the thread has its result");
        assert_eq!(at(&[called("c2")]), None, "the answer was undone");
        assert_eq!(at(&[answered("p2")]), Some(Continuation::Whole));
        let cut = TurnId::new("t_1").map(|turn| Continuation::Cut(Cut::After(turn)));
        assert_eq!(at(&[answered("p1")]), cut);
        assert_eq!(at(&[called("gone"), answered("p1")]), cut, "the first point that it has");
        assert_eq!(at(&[called("c1"), answered("p2")]), None, "a later one would know too much");
        assert_eq!(at(&[]), None);
        for strange in
            [json!({}), json!({"thread": {"turns": 3}}), json!({"thread": {"turns": [3, {"items": {}}]}})]
        {
            assert_eq!(continuation(&strange, &[called("c1")]), None);
        }
    }
}
