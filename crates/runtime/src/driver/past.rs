//! What a machine is rebuilt from, with all of its content.

use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::machine::Past;

use super::content::Content;
use super::hydrate::Held;
use crate::error::RuntimeError;

impl Content {
    /// What the journal says of an evaluation. What is too large for records is fetched.
    pub(super) async fn past(&self, evaluation: EvaluationId) -> Result<Past, RuntimeError> {
        let mut past = Past::of(&self.live.state().await.view, evaluation)?;
        let before = past.followed.iter_mut().flat_map(|followed| &mut followed.messages);
        for message in before.chain(&mut past.messages) {
            *message = self.message(message).await?;
        }
        with_content(self.held(), past).await
    }
}

/// Fetches what is too large for the records of programs and of structured answers.
pub(super) async fn with_content(held: Held<'_>, mut past: Past) -> Result<Past, RuntimeError> {
    for program in &mut past.programs {
        if let Some(large) = program.source_object {
            let text = held.text(large).await?;
            let program = Arc::make_mut(program);
            (program.source, program.source_object) = (Some(text), None);
        }
    }
    for task in &mut past.tasks {
        if let Some(large) = task.value_object {
            let value = held.json(large).await?;
            let task = Arc::make_mut(task);
            (task.value, task.value_object) = (value, None);
        }
    }
    for turn in &mut past.turns {
        if let Some(large) = turn.data_object {
            let data = held.json(large).await?;
            let turn = Arc::make_mut(turn);
            (turn.data, turn.data_object) = (data, None);
        }
    }
    for finished in past.followed.iter_mut().filter_map(|followed| followed.finished.as_mut()) {
        if let Some(large) = finished.output_object {
            let output = held.json(large).await?;
            let finished = Arc::make_mut(finished);
            (finished.output, finished.output_object) = (Some(output), None);
        }
    }
    Ok(past)
}
