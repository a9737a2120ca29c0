//! Other sessions that work in the same directory.

use std::collections::HashSet;
use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{CallChanges, CallVerdict, Origin};
use backstitch_core::ports::{IndexedSession, SessionQuery, Store, TimeRange};
use backstitch_core::time::Timestamp;
use backstitch_core::view::{Call, JournalView};
use serde_json::Value;

use super::{LiveSession, blocking, creation_of, find_view};
use crate::content::{arguments_of, with_content};
use crate::error::{Result, RuntimeError};

/// Which calls of other sessions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherCalls {
    /// All.
    All,
    /// Those that name the path in their arguments, as file tools do: what else changed while they ran may be the work of others.
    NamingTheirPaths,
}

impl LiveSession {
    /// Returns the paths that calls of other sessions in the same directory have changed since a time, and calls of their sub-agents.
    /// Sub-agents of this session, and its parent sessions, are not others.
    pub(crate) async fn changed_by_others(
        &self,
        since: Timestamp,
        which: OtherCalls,
    ) -> Result<HashSet<String>> {
        let Some(directory) = self.host_directory() else { return Ok(HashSet::new()) };
        let store = &**self.store();
        let own = self.outermost().await?;
        let mut query = SessionQuery::default()
            .with_workspace(directory.to_string_lossy())
            .with_updated(TimeRange::since(since));
        let mut changed = HashSet::new();
        loop {
            let page = store.query(query.clone()).await?;
            let sessions: Vec<SessionId> = page.sessions.iter().map(IndexedSession::id).collect();
            for session in sessions.into_iter().filter(|session| *session != self.id()) {
                let view = match find_view(store, session).await {
                    Ok(Some(view)) => view,
                    Ok(None) => continue,
                    // A journal that cannot be read must not stop this session.
                    Err(error) => {
                        tracing::warn!(%session, %error, "the changes of a session are not known");
                        continue;
                    }
                };
                if outermost_session(store, session, view.created().origin.clone()).await? != own {
                    self.add_changes(&view, &directory, (since, which), &mut changed).await?;
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(changed);
            }
        }
    }

    /// Returns the outermost session that this one is a sub-agent of, or itself.
    pub(crate) async fn outermost(&self) -> Result<SessionId> {
        let origin = self.view().await.created().origin.clone();
        outermost_session(&**self.store(), self.id(), origin).await
    }

    async fn add_changes(
        &self,
        view: &JournalView,
        directory: &Path,
        (since, which): (Timestamp, OtherCalls),
        changed: &mut HashSet<String>,
    ) -> Result<()> {
        let is_recent = |call: &&Call| {
            call.finished.as_ref().is_some_and(|finished| {
                let is_own = finished.point.session == view.session_id();
                is_own && finished.at >= since && finished.record.outcome == CallVerdict::Succeeded
            })
        };
        let recent: Vec<Call> = view.calls().filter(is_recent).cloned().collect();
        for call in &recent {
            let mut paths = self.paths_changed_by(call).await?;
            if which == OtherCalls::NamingTheirPaths && !paths.is_empty() {
                let arguments = self.arguments_of_other(view, call).await?;
                paths.retain(|path| names(&arguments, directory, path));
            }
            changed.extend(paths);
        }
        Ok(())
    }

    /// Returns the arguments of a call of another session.
    async fn arguments_of_other(&self, view: &JournalView, call: &Call) -> Result<Value> {
        let intent = call.intent.as_ref().map(|intent| &intent.record);
        let edited = intent.and_then(|intent| intent.arguments.as_ref()?.inline());
        if let Some(edited) = edited {
            return Ok(Value::Object(edited.clone()));
        }
        let transcript = view.transcript()?;
        match transcript.message_of(call.call_id) {
            Some(message) => Ok(arguments_of(&with_content(&**self.store(), message).await?)),
            None => Ok(Value::Null),
        }
    }

    /// Returns the paths that a call has changed.
    async fn paths_changed_by(&self, call: &Call) -> Result<Vec<String>> {
        let finished = call.finished.as_ref().map(|finished| &finished.record);
        if let Some(CallChanges::Paths(paths)) = finished.and_then(|finished| finished.changes.as_ref()) {
            return Ok(paths.iter().map(|changed| changed.path.clone()).collect());
        }
        let before = call.intent.as_ref().and_then(|intent| intent.record.root);
        let after = finished.and_then(|finished| finished.root);
        let (Some(workspace), Some((before, after))) = (self.workspace().cloned(), before.zip(after)) else {
            return Ok(Vec::new());
        };
        if before == after {
            return Ok(Vec::new());
        }
        // The files of an old call may have been deleted by retention.
        let compared = blocking(move || workspace.diff(before, after)).await;
        Ok(compared.unwrap_or_default().into_iter().map(|changed| changed.path).collect())
    }
}

/// Returns the outermost session that a session with this origin is a sub-agent of, or itself.
async fn outermost_session(store: &dyn Store, session: SessionId, mut origin: Origin) -> Result<SessionId> {
    let mut seen = vec![session];
    while let Origin::Call { session, .. } = origin {
        if seen.contains(&session) {
            break;
        }
        seen.push(session);
        origin = match creation_of(store, session).await {
            Err(RuntimeError::SessionNotFound { .. }) => break,
            created => created?.origin.clone(),
        };
    }
    Ok(seen.pop().unwrap_or(session))
}

/// Returns whether an argument is this path of a directory.
fn names(arguments: &Value, directory: &Path, path: &str) -> bool {
    match arguments {
        Value::String(text) => {
            let named = Path::new(text);
            named.strip_prefix(directory).unwrap_or(named).components().eq(Path::new(path).components())
        }
        Value::Array(values) => values.iter().any(|value| names(value, directory, path)),
        Value::Object(values) => values.values().any(|value| names(value, directory, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_name_paths_relative_to_the_directory_or_absolute() {
        let directory = Path::new("/shop");
        let names = |arguments: Value| names(&arguments, directory, "src/main.rs");
        assert!(names(json!({"path": "src/main.rs"})));
        assert!(names(json!({"file_path": "/shop/src/main.rs", "content": ""})));
        assert!(names(json!({"paths": ["a", "src//main.rs"]})));
        assert!(!names(json!({"command": "touch src/main.rs"})));
        assert!(!names(json!({"path": "/other/src/main.rs"})));
        assert!(!names(json!({"path": "main.rs"})));
    }
}
