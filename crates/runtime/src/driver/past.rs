//! What a machine is rebuilt from, with all of its content.

use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::machine::{Followed, Past};
use backstitch_core::object::ObjectRef;
use backstitch_core::ports::{Store, StoreError};
use backstitch_core::view::Transcript;

use super::content::Content;
use crate::error::RuntimeError;
use crate::live::fetch_json;

impl Content {
    /// What the journal says of an evaluation. What is too large for records is fetched.
    pub(super) async fn past(&self, evaluation: EvaluationId) -> Result<Past, RuntimeError> {
        let mut past = {
            let state = self.live.state().await;
            let past = Past::of(&state.view, evaluation)?;
            // What is held is not stored yet, and so the session has the content of large messages where the view has names.
            let transcript = Transcript::of(&state.execution.session)?;
            let messages = transcript.inner_messages(evaluation);
            Past { messages, followed: Followed::all(&state.view, &transcript, evaluation), ..past }
        };
        let store = &**self.live.store();
        let before = past.followed.iter_mut().flat_map(|followed| &mut followed.messages);
        for message in before.chain(&mut past.messages) {
            *message = self.message(message).await?;
        }
        if is_large(&past) {
            // What is named may be held, and not be stored yet.
            self.live.flush().await?;
        }
        with_content(store, past).await
    }
}

fn is_large(past: &Past) -> bool {
    past.programs.iter().any(|program| program.source_object.is_some())
        || past.tasks.iter().any(|task| task.value_object.is_some())
        || past.turns.iter().any(|turn| turn.data_object.is_some())
        || past.followed.iter().any(|followed| {
            followed.finished.as_ref().is_some_and(|finished| finished.output_object.is_some())
        })
}

/// Fetches what is too large for the records of programs and of structured answers.
pub(super) async fn with_content(store: &dyn Store, mut past: Past) -> Result<Past, RuntimeError> {
    for program in &mut past.programs {
        if let Some(large) = program.source_object {
            let text = fetch_text(store, large).await?;
            let program = Arc::make_mut(program);
            (program.source, program.source_object) = (Some(text), None);
        }
    }
    for task in &mut past.tasks {
        if let Some(large) = task.value_object {
            let value = fetch_json(store, large).await?;
            let task = Arc::make_mut(task);
            (task.value, task.value_object) = (value, None);
        }
    }
    for turn in &mut past.turns {
        if let Some(large) = turn.data_object {
            let data = fetch_json(store, large).await?;
            let turn = Arc::make_mut(turn);
            (turn.data, turn.data_object) = (data, None);
        }
    }
    for finished in past.followed.iter_mut().filter_map(|followed| followed.finished.as_mut()) {
        if let Some(large) = finished.output_object {
            let output = fetch_json(store, large).await?;
            let finished = Arc::make_mut(finished);
            (finished.output, finished.output_object) = (Some(output), None);
        }
    }
    Ok(past)
}

/// A text that was too large for its record.
async fn fetch_text(store: &dyn Store, large: ObjectRef) -> Result<String, RuntimeError> {
    let missing = RuntimeError::Store(StoreError::MissingObject { object: large.object });
    let object = store.object(large.object).await.map_err(RuntimeError::Store)?.ok_or(missing)?;
    String::from_utf8(object.bytes().to_vec()).map_err(|error| {
        let reason = format!("it is no text: {error}");
        RuntimeError::Store(StoreError::DamagedObject { object: large.object, reason })
    })
}
