//! The definitions that a session is recorded with.
//!
//! The first one is in the record that creates the session. A session that continues with another one has a note with it, which
//! applies from there on, so a rewind to a point before it applies the earlier definition again. Two things outlast a rewind: the
//! directory of the files, and the limits of the user who imported the session. What was defined before an import was defined by
//! another user, so it is confined to those limits, until this user defines the agent anew.
//!
//! A definition is recorded as JSON, with the version of the form. The forms of older versions can be read too.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};
use crate::RuntimeError;
use crate::id::SessionId;
use crate::journal::{Note, Position, Record, RecordBody};
use crate::mode::AgentMode;
use crate::ports::{Sandbox, Store, fetch_large};
use crate::view::JournalView;

/// The version of the recorded form.
const VERSION: u64 = 1;

/// Topic of a note that holds a definition.
const AGENT: &str = "agent";

/// Topic of the note that a session was imported. It holds the limits of the user who imported it.
const IMPORTED: &str = "imported";

/// Returns the definition of a session's agent: the current one, or the one in effect before a position.
pub async fn recorded_definition(
    store: &dyn Store,
    view: &JournalView,
    before: Option<Position>,
) -> Result<AgentDefinition, AgentFileError> {
    let visible = view.lineage().visible(view.head());
    let mut recorded = view.created().agent.clone();
    let mut latest = None;
    let mut limit: Option<(Sandbox, Option<AgentMode>)> = None;
    let records = defining_records(store, view.session_id(), before).await?;
    for record in records {
        let is_visible = before.is_some() || visible.iter().any(|range| range.contains(&record.position));
        // A rewind does not change that another user has defined what comes before.
        limit = imported_limit(&record.body).or(limit);
        if let RecordBody::Note(note) = &record.body
            && note.topic == AGENT
        {
            let noted = note.data.inline().cloned().unwrap_or_default();
            if is_visible {
                recorded = noted.clone();
                limit = None;
            }
            latest = Some(noted);
        }
    }
    let mut definition = AgentDefinition::from_recorded(&recorded)?;
    // A rewind does not move the directory.
    if let (Some(latest), None) = (latest, before) {
        definition.workspace.path = AgentDefinition::from_recorded(&latest)?.workspace.path;
    }
    if let Some((limit, mode)) = limit {
        definition.confine(&limit, mode);
    }
    Ok(definition)
}

/// Returns the records of a session that define its agent or limit it, with their large data.
pub(crate) async fn defining_records(
    store: &dyn Store,
    session: SessionId,
    before: Option<Position>,
) -> Result<Vec<Record>, RuntimeError> {
    let first = Position::START..Position::START.next();
    let mut records = backstitch_runtime::read_records(store, session, first.start, Some(first.end)).await?;
    records.extend(store.notes(session).await.map_err(RuntimeError::Store)?);
    records.retain(|record| match &record.body {
        RecordBody::SessionCreated(_) => true,
        RecordBody::Note(note) => [AGENT, IMPORTED].contains(&&*note.topic),
        _ => false,
    });
    records.retain(|record| before.is_none_or(|before| record.position < before));
    for record in &mut records {
        if let RecordBody::Note(note) = &mut record.body {
            fetch_large(store, note).await.map_err(RuntimeError::Store)?;
        }
    }
    Ok(records)
}

/// Returns whether the records of a session hold a definition that allows more than a user with these limits does, at the head
/// or at any point that a rewind may go back to. One that cannot be read, as that of a later version, may allow everything.
/// Notes have their large data.
#[cfg(all(feature = "store", feature = "workspace"))]
pub(crate) fn exceeds(records: &[Record], limit: &Sandbox, mode: AgentMode) -> bool {
    let mut later: Option<(Sandbox, Option<AgentMode>)> = None;
    for record in records.iter().rev() {
        let recorded = match &record.body {
            RecordBody::SessionCreated(created) if !created.agent.is_null() => created.agent.clone(),
            RecordBody::Note(note) if note.topic == AGENT => note.data.inline().cloned().unwrap_or_default(),
            body => {
                later = later.or_else(|| imported_limit(body));
                continue;
            }
        };
        let is_wider = match AgentDefinition::from_recorded(&recorded) {
            Ok(mut definition) => {
                if let Some((limit, mode)) = &later {
                    definition.confine(limit, *mode);
                }
                let mut confined = definition.clone();
                confined.confine(limit, Some(mode));
                confined != definition
            }
            Err(_) => later.as_ref() != Some(&(limit.clone(), Some(mode))),
        };
        if is_wider {
            return true;
        }
    }
    false
}

/// Builds the note that a session was imported by a user with these limits, whose agents have this mode.
pub fn imported_note(limit: &Sandbox, mode: AgentMode) -> Note {
    let text = "another user may have defined its agent, so your sandbox and your mode apply";
    Note::new(IMPORTED, text).with_data(json!({ "sandbox": limit, "mode": mode }))
}

/// Returns the limits of the user who imported a session, if the record names them. Imports from before there were modes
/// have none.
fn imported_limit(record: &RecordBody) -> Option<(Sandbox, Option<AgentMode>)> {
    let RecordBody::Note(note) = record else { return None };
    let data = note.data.inline().filter(|_| note.topic == IMPORTED)?;
    let limit = data.get("sandbox")?.clone();
    // Limits of a later version are as strict as can be.
    let limit = serde_json::from_value(limit).unwrap_or_else(|_| Sandbox::read_only().without_network());
    let mode = data.get("mode").map(|mode| serde_json::from_value(mode.clone()).unwrap_or(AgentMode::Plan));
    Some((limit, mode))
}

impl AgentDefinition {
    /// Renders the form that is recorded with a session.
    pub fn to_recorded(&self) -> Value {
        let mut recorded = serde_json::to_value(self).unwrap_or_default();
        recorded["v"] = json!(VERSION);
        recorded
    }

    /// Parses the definition that is recorded with a session.
    pub fn from_recorded(recorded: &Value) -> Result<Self, AgentFileError> {
        let refused = |message: &str| AgentFileError::from(Problem::new([], message));
        let Value::Object(mut fields) = recorded.clone() else {
            return Err(refused("the session has no recorded definition, so no agent can be built from it"));
        };
        match fields.remove("v").map(|version| version.as_u64()) {
            Some(Some(VERSION)) => {}
            Some(_) => return Err(refused("the session was recorded by a newer version: use that version")),
            None => fields = upcast(fields),
        }
        rename_answers(&mut fields);
        serde_json::from_value(Value::Object(fields)).map_err(|error| {
            refused(&format!("the recorded definition of the session cannot be read: {error}"))
        })
    }

    /// Builds the note that a session continues with this definition. `text` says so in the log.
    pub fn note(&self, text: impl Into<String>) -> Note {
        Note::new(AGENT, text).with_data(self.to_recorded())
    }

    /// Builds the note that a session continues with this definition, whose text names the model, the directory and the mode.
    pub fn change_note(&self) -> Note {
        let at = self.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
        let files = self.workspace.path.as_ref();
        let files = files.map(|path| format!(", files in {}", path.display())).unwrap_or_default();
        let mode = self.mode.map(|mode| format!(", in the mode {mode}")).unwrap_or_default();
        self.note(format!("continues with {}{at}{files}{mode}", self.answerer()))
    }

    /// Names what answers: the model, or the engine.
    pub fn answerer(&self) -> String {
        let engine = self.engine.as_ref().map(ToString::to_string);
        self.model.as_ref().map(ToString::to_string).or(engine).unwrap_or_default()
    }

    /// Limits the rights of an agent that another user defined: nothing is allowed that this user does not allow to all
    /// sessions, and everything is asked about that this mode asks about. An engine keeps the network, which it needs for
    /// its model. Without a mode, only what the definition names is asked about.
    pub fn confine(&mut self, limit: &Sandbox, mode: Option<AgentMode>) {
        let mut sandbox = self.sandbox.take().unwrap_or_default();
        let had_network = sandbox.network;
        sandbox.mode = sandbox.mode.max(limit.mode);
        sandbox.network &= limit.network || sandbox.is_off() || self.engine.is_some();
        if !sandbox.is_off() {
            sandbox.sockets = Some(sandbox.allowed_sockets().min(limit.allowed_sockets()));
        }
        sandbox.terminals &= limit.terminals || limit.is_off();
        // Its paths are those of another machine.
        sandbox.write.retain(|path| limit.write.contains(path));
        sandbox.read.retain(|path| limit.read.contains(path));
        if !sandbox.is_off() {
            let further = limit.hide.iter().filter(|path| !sandbox.hide.contains(path)).cloned();
            let further: Vec<_> = further.collect();
            sandbox.hide.extend(further);
        }
        self.sandbox = Some(sandbox);
        if let Some(mode) = mode.filter(|mode| *mode != AgentMode::Full) {
            if self.mode.is_none() {
                // The programs of its servers had the network of commands.
                for server in self.mcp.iter_mut().filter(|server| server.url.is_none()) {
                    server.network.get_or_insert(had_network);
                }
            }
            self.mode = Some(self.mode.map_or(mode, |own| own.min(mode)));
            self.drop_waivers();
            self.drop_promises();
        } else if !limit.is_off() {
            self.mode = self.mode.map(|mode| mode.min(AgentMode::Auto));
            self.drop_waivers();
        }
    }
}

/// Sets the directory of a definition in its recorded form.
pub(super) fn recorded_in(mut recorded: Value, directory: &Path) -> Value {
    recorded["workspace"]["path"] = json!(directory.to_string_lossy());
    recorded
}

/// Converts the form without a version: a script, with a directory and the effect of the shell.
fn upcast(mut old: Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("ns".to_owned(), json!("cli"));
    fields.insert("name".to_owned(), json!("run"));
    fields.insert("model".to_owned(), json!("scripted:script"));
    if let Some(path) = old.remove("workspace") {
        fields.insert("workspace".to_owned(), json!({ "path": path }));
    }
    if let Some(effect) = old.remove("shell_effect") {
        fields.insert("shell".to_owned(), json!({ "effect": effect }));
    }
    fields.append(&mut old);
    fields
}

/// Gives the form of the answers its name of today, also in sub-agents. It was called `mode`, which is the name of something
/// else now.
fn rename_answers(fields: &mut Map<String, Value>) {
    let is_form = |value: &Value| matches!(value.as_str(), Some("tools" | "lisp"));
    if fields.get("mode").is_some_and(is_form)
        && let Some(form) = fields.remove("mode")
    {
        fields.insert("answers".to_owned(), form);
    }
    let sub_agents = fields.get_mut("sub_agent").and_then(Value::as_array_mut);
    for sub_agent in sub_agents.into_iter().flatten() {
        if let Some(Value::Object(agent)) = sub_agent.get_mut("agent") {
            rename_answers(agent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::SandboxSockets;

    fn confined(own: Option<Sandbox>, limit: &Sandbox) -> Sandbox {
        let mut definition = AgentDefinition { sandbox: own, ..AgentDefinition::default() };
        definition.confine(limit, None);
        definition.sandbox.unwrap()
    }

    #[test]
    fn an_imported_agent_has_the_stricter_of_two_modes() {
        use AgentMode::{Ask, Auto, Full, Plan};
        let confined = |own: Option<AgentMode>, mode: Option<AgentMode>| {
            let mut definition = AgentDefinition { mode: own, ..AgentDefinition::default() };
            definition.confine(&Sandbox::workspace(), mode);
            definition.mode
        };
        for (own, user, expected) in [
            (None, Some(Auto), Some(Auto)),
            (None, Some(Ask), Some(Ask)),
            (Some(Full), Some(Ask), Some(Ask)),
            (Some(Plan), Some(Auto), Some(Plan)),
            (Some(Full), Some(Full), Some(Auto)),
            // Imports from before there were modes.
            (None, None, None),
            (Some(Full), None, Some(Auto)),
        ] {
            assert_eq!(confined(own, user), expected, "{own:?} {user:?}");
        }
    }

    #[test]
    fn an_imported_engine_keeps_the_network_and_commands_do_not() {
        let limit = AgentMode::Auto.sandbox();
        for (text, has_network) in [("engine = 'claude-code'", true), ("model = 'openai:m'", false)] {
            let mut definition: AgentDefinition = toml::from_str(text).unwrap();
            definition.confine(&limit, Some(AgentMode::Auto));
            assert_eq!(definition.sandbox.unwrap().network, has_network, "{text}");
        }
    }

    #[test]
    fn an_imported_agent_has_the_stricter_of_two_sandboxes() {
        let user = Sandbox::workspace();
        assert_eq!(confined(None, &user), Sandbox::workspace());
        assert_eq!(confined(Some(Sandbox::off()), &user), Sandbox::workspace());
        assert_eq!(confined(Some(Sandbox::off()), &Sandbox::off()), Sandbox::off());
        assert_eq!(confined(Some(Sandbox::read_only()), &Sandbox::off()), Sandbox::read_only());
        let quiet = Sandbox::read_only().without_network();
        assert_eq!(confined(Some(Sandbox::off()), &quiet), quiet);
        assert_eq!(confined(Some(quiet.clone()), &user), quiet);
        let open = Sandbox { terminals: true, ..Sandbox::workspace().sockets(SandboxSockets::On) };
        assert_eq!(confined(Some(open.clone()), &user), user);
        assert_eq!(confined(Some(open.clone()), &Sandbox::off()), open);
        let writes = Sandbox::workspace().write("/a").write("/b");
        assert_eq!(confined(Some(writes.clone()), &user), user);
        assert_eq!(
            confined(Some(writes), &Sandbox::workspace().write("/b")),
            Sandbox::workspace().write("/b")
        );
    }
}
