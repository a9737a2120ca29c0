//! The end of driving a session: what is printed, and the exit code.
//!
//! With `--json`, the last line of an announced run is always the event `ended`, with `outcome`, `kind` and
//! `message`: after an answer, a pause, an error, a signal or a panic. Only after SIGKILL it is missing.

use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, AnswerMode};
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::journal::PauseReason;
use backstitch::{DriveOutcome, FinalAnswer, RuntimeError};
use serde_json::{Value, json};

use super::driving::{DriveReport, DrivenSession};
use super::live::{INTERRUPTED, Screen, ended_event};
use crate::error::explain_hint;
use crate::look::waiting::{PendingDecision, explain, waiting};
use crate::open::short;

/// Prints how driving a session ended, and returns the exit code.
pub(crate) async fn finish(session: &DrivenSession, driven: DriveReport) -> anyhow::Result<ExitCode> {
    let DrivenSession { common, live, place, definition, session: id, .. } = session;
    let id = *id;
    let view = place.view(id).await;
    if let Ok(view) = &view {
        live.set_spent(view);
    }
    let continues = format!("`{}` continues", common.hint(format_args!("resume {}", short(id))));
    let ended = match driven.ended {
        Err(error) if driven.interrupted => {
            live.status(&format!("interrupted: {error}; {continues}"));
            live.end(line(id, "interrupted", ErrorCode::Signal.as_str(), error.to_string()));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) if matches!(error.cause(), RuntimeError::Poisoned { .. }) => {
            let view = view?;
            let waits = waiting(&*place.store, &view).await?;
            explain(common, &view, &waits).iter().for_each(|line| live.status(line));
            return Err(error.into());
        }
        ended => ended.with_context(|| format!("session {id} stopped; {continues}"))?,
    };
    let view = view?;
    let waits = waiting(&*place.store, &view).await?;
    live.end(as_json(id, &ended, &waits));
    if driven.interrupted && matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }) {
        live.status(&format!("paused; {continues}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    match &ended {
        DriveOutcome::Completed(answered) => print_answer(live, definition, answered),
        DriveOutcome::Paused { partial, .. } => {
            if let Some(partial) = partial {
                live.half_answer(partial);
            }
            explain(common, &view, &waits).iter().for_each(|line| live.status(line))
        }
        DriveOutcome::Failed { failure, .. } => {
            live.status(&ended.to_string());
            live.status(&explain_hint(failure.code()));
        }
        other => live.status(&other.to_string()),
    }
    if matches!(ended, DriveOutcome::Completed(_)) {
        live.close(&view);
    }
    Ok(match ended {
        DriveOutcome::Completed(_) => ExitCode::SUCCESS,
        DriveOutcome::Paused { .. } => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    })
}

/// Prints an answer. A structured one is printed as data, without the text around it.
pub(crate) fn print_answer(live: &Screen, definition: &AgentDefinition, answer: &FinalAnswer) {
    match &answer.output {
        Some(output) if definition.output.is_some() || definition.answers == AnswerMode::Lisp => {
            live.answer(&format!("{output:#}"), false);
        }
        _ => live.answer(&answer.text, true),
    }
}

fn as_json(session: SessionId, ended: &DriveOutcome, waits: &[PendingDecision]) -> Value {
    match ended {
        DriveOutcome::Completed(answered) => {
            let mut line = line(session, "completed", Value::Null, Value::Null);
            (line["text"], line["output"]) = (json!(answered.text), json!(answered.output));
            line
        }
        DriveOutcome::Paused { reason, call, detail, session: below, partial, .. } => {
            let mut line = line(session, "paused", json!(reason), detail.as_str());
            (line["reason"], line["call"], line["detail"]) = (json!(reason), json!(call), json!(detail));
            (line["waits"], line["waiting"]) = (json!(below), json!(waits));
            if let Some(partial) = partial {
                line["partial"] = json!(partial);
            }
            line
        }
        DriveOutcome::Failed { failure, .. } => {
            line(session, "failed", failure.kind.as_str(), failure.message.as_str())
        }
        DriveOutcome::Cancelled { .. } => {
            line(session, "cancelled", ErrorCode::Cancelled.as_str(), ended.to_string())
        }
        other => line(session, "superseded", ErrorCode::Superseded.as_str(), other.to_string()),
    }
}

fn line(session: SessionId, outcome: &str, kind: impl Into<Value>, message: impl Into<Value>) -> Value {
    ended_event(&json!(session), outcome, kind, message)
}
