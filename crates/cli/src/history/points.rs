//! The points of a session that people choose from: those before its calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use backstitch::filesystem::format;
use backstitch::host::{message_text, one_line};
use backstitch::journal::Role;
use backstitch::message::Content;
use backstitch::ports::{PathChange, WorkspaceError};
use backstitch::time::{Clock as _, Timestamp};
use backstitch::view::{Call, JournalView};
use backstitch::{PointSpec, SystemClock};
use serde_json::{Value, json};

use crate::common::{Common, counted};
use crate::open::{OpenStore, short};
use crate::terminal::time::relative;
use crate::terminal::{self, Role as Style, Text};
use crate::usage;

/// The most files that a line names.
const NAMED: usize = 4;

/// The most characters of a prompt in a line.
const SHOWN: usize = 60;

/// The most points to choose from.
const OFFERED: usize = 20;

/// A call, with what it changed.
pub(crate) struct CallPoint<'a> {
    call: &'a Call,
    prompt: String,
    changes: Vec<PathChange>,
}

impl CallPoint<'_> {
    fn started(&self) -> Option<Timestamp> {
        self.call.intent.as_ref().map(|intent| intent.at)
    }

    fn files(&self) -> String {
        let names: Vec<&str> = self.changes.iter().take(NAMED).map(|change| change.path.as_str()).collect();
        match self.changes.len() {
            0 => "no files".to_owned(),
            count if count > NAMED => format!("{}: {}, ...", counted(count, "file"), names.join(", ")),
            count => format!("{}: {}", counted(count, "file"), names.join(", ")),
        }
    }

    /// Returns the prompt that led to the call, for a line.
    pub(crate) fn prompt(&self) -> String {
        one_line(&self.prompt, SHOWN)
    }

    /// Describes the point for people: the point, the tool, its files, and its age.
    pub(crate) fn line(&self, now: Timestamp) -> String {
        let age = self.started().map(|at| relative(at, now)).unwrap_or_default();
        format!("before:{}  {}  {}  {age}", short(self.call.call_id), self.call.name, self.files())
    }

    pub(crate) fn to_json(&self, now: Timestamp) -> Value {
        let id = self.call.call_id;
        let age = self.started().map(|at| now.since(at).as_secs());
        json!({"point": format!("before:{id}"), "call": id, "tool": self.call.name, "prompt": self.prompt,
            "at": self.started(), "age_seconds": age, "files": self.changes})
    }
}

/// Returns the newest calls of a session, the oldest first, with what each of them changed.
pub(crate) fn points<'a>(
    place: &OpenStore,
    view: &'a JournalView,
    most: usize,
) -> anyhow::Result<Vec<CallPoint<'a>>> {
    let calls: Vec<&Call> = view.calls().filter(|call| call.intent.is_some()).collect();
    let (mut points, mut prompts) = (Vec::new(), HashMap::new());
    for call in calls.into_iter().rev().take(most).rev() {
        // Retention has removed the files of an old call that cannot be compared, so nothing leads back to it.
        let Ok(changes) = changes_of(place, call) else { continue };
        let prompt = match prompts.entry(call.evaluation_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(prompt_of(view, call)?),
        };
        points.push(CallPoint { call, prompt: prompt.clone(), changes });
    }
    Ok(points)
}

/// Returns what a call changed: as it is recorded, or by a comparison of the files.
fn changes_of(place: &OpenStore, call: &Call) -> Result<Vec<PathChange>, WorkspaceError> {
    let before = call.intent.as_ref().and_then(|intent| intent.record.root);
    let finished = call.finished.as_ref().map(|finished| &finished.record);
    // What a failed call changed was undone.
    let after = finished.and_then(|finished| finished.root);
    let Some((before, after)) = before.zip(after) else { return Ok(Vec::new()) };
    match finished.and_then(|finished| finished.changes.as_ref()?.paths()) {
        Some(paths) => Ok(paths.iter().map(PathChange::from).collect()),
        None => format::diff(&*place.objects, before, after),
    }
}

/// Returns the text that began the evaluation of a call.
fn prompt_of(view: &JournalView, call: &Call) -> anyhow::Result<String> {
    let messages = view.messages_of(call.evaluation_id)?;
    let mut prompts = messages.iter().filter(|message| {
        message.role() == Role::User && matches!(message.message.content, Content::Parts(_))
    });
    Ok(prompts.next().map(|message| message_text(message)).unwrap_or_default())
}

/// Lets a person choose a point, the newest first. Returns `None` if none is chosen. Fails if nobody can be asked.
pub(super) fn choose(
    common: &Common,
    place: &OpenStore,
    view: &JournalView,
) -> anyhow::Result<Option<PointSpec>> {
    let session = short(view.session_id());
    if !common.can_ask() {
        let log = common.hint(format_args!("log {session}"));
        return usage::refuse(format!("name the point to return to; `{log}` lists the calls"));
    }
    let points = points(place, view, OFFERED)?;
    if points.is_empty() {
        return usage::refuse(format!("session {session} has no calls yet, so there is no point to choose"));
    }
    let (now, mut prompt) = (SystemClock::new().now(), String::new());
    for (number, point) in (1..).zip(points.iter().rev()) {
        if point.prompt() != prompt {
            prompt = point.prompt();
            terminal::error_line(&Text::new().add(Style::Emphasis, &prompt));
        }
        terminal::error_line(&Text::new().plain(format!("{number:>4}  {}", point.line(now))));
    }
    let answer = terminal::ask(&format!("return to which point? [1-{}, or Enter for none] ", points.len()))?;
    match answer.parse::<usize>() {
        _ if answer.is_empty() => Ok(None),
        Ok(number) if (1..=points.len()).contains(&number) => {
            let call = points[points.len() - number].call.call_id;
            Ok(Some(PointSpec::Before(call.to_string())))
        }
        _ => usage::refuse(format!("`{answer}` is not a number from 1 to {}", points.len())),
    }
}
