//! An evaluation that an engine works on, from its prompt to its answer.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{Note, PauseReason};
use backstitch_core::machine::EvaluationResult;
use backstitch_core::ports::BoxFuture;
use backstitch_core::view::Call;
use tokio::time::Instant;

use super::calls::{exceeded, money_left};
use super::origin::{self, EngineTask, with_history};
use super::work::EngineWork;
use super::{Engine, EngineEnd, EngineEvent, EngineRun, EngineStart};
use crate::agent::AgentEngine;
use crate::driver::{Driver, ForeignLoop, StopRequest};
use crate::engine_error::EngineError;
use crate::error::{Result, RuntimeError};
use crate::live::Durable;
use crate::outcome::DriveOutcome;
use crate::outside::OutsideCalls;

/// How often decisions about waiting calls are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long a program may take to stop after it was interrupted.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gives evaluations to an engine.
pub(crate) struct EngineLoop {
    engine: Arc<dyn Engine>,
    settings: AgentEngine,
}

/// How the work of a program ended.
enum WorkEnd {
    Answered(Option<String>),
    Stopped(StopRequest),
    /// A limit was reached.
    Budget(String),
    Failed(EngineError),
}

impl EngineLoop {
    pub(crate) fn new(engine: Arc<dyn Engine>, settings: AgentEngine) -> Self {
        Self { engine, settings }
    }

    async fn drive_to_end(&self, driver: &Driver, evaluation: EvaluationId) -> Result<DriveOutcome> {
        let live = driver.session().clone();
        origin::end_left(&live).await?;
        let directory = live.workspace().and_then(|workspace| workspace.host_directory());
        let title = || self.engine.title().to_owned();
        let directory = directory.ok_or_else(|| EngineError::NoDirectory { title: title() })?;
        if let Some(stop_request) = driver.waiting_stop(evaluation).await? {
            return self.end_stopped(driver, evaluation, stop_request).await;
        }
        let EngineTask { prompt_id, mut prompt, mut resume, history } =
            origin::task(driver, evaluation).await?;
        if resume.is_none() {
            prompt = with_history(&history, &prompt);
        }
        loop {
            let view = live.view().await;
            if let Some(exceeded) = exceeded(&view, evaluation) {
                return driver.pause_engine(evaluation, PauseReason::Budget, exceeded).await;
            }
            let has_tools = driver.agent().tools.iter().next().is_some();
            let tools = if has_tools { Some(OutsideCalls::beside(driver.beside()).await?) } else { None };
            let start = EngineStart {
                session: live.id(),
                evaluation,
                mark: CallId::of_foreign(live.id(), "engine"),
                directory: directory.clone(),
                prompt_id: prompt_id.clone(),
                prompt: prompt.clone(),
                model: self.settings.model.clone(),
                system: driver.agent().system.clone(),
                tools: tools.clone(),
                resume: resume.clone(),
                money_micros: money_left(&view, evaluation),
                sandbox: self.settings.sandbox.clone(),
            };
            let mut work = EngineWork::new(driver, &*self.engine, &self.settings, evaluation);
            let _watched = live.watch_call().await;
            let end = match self.engine.start(start).await {
                Ok(mut run) => {
                    let followed = self.follow(&mut work, &mut *run, tools.as_deref()).await;
                    // Ends the program with all of its descendants.
                    run.end().await;
                    followed
                }
                Err(error) => Ok(WorkEnd::Failed(error)),
            };
            if let Some(tools) = &tools {
                if !matches!(end, Ok(WorkEnd::Answered(_))) {
                    tools.stop();
                }
                tools.drain().await;
            }
            let end = end?;
            if matches!(&end, WorkEnd::Failed(EngineError::SessionGone { .. })) && resume.is_some() {
                let text =
                    format!("{} does not have the conversation any more; it gets the record of it", title());
                live.record_when(vec![Note::new("engine", text).into()], Durable::WithNext).await?;
                resume = None;
                prompt = with_history(&history, &prompt);
                continue;
            }
            return self.conclude(driver, evaluation, work, end).await;
        }
    }

    /// Records how the work ended.
    async fn conclude(
        &self,
        driver: &Driver,
        evaluation: EvaluationId,
        work: EngineWork<'_>,
        end: WorkEnd,
    ) -> Result<DriveOutcome> {
        if let WorkEnd::Answered(text) = end {
            work.record_end(text).await?;
            return driver.finish(evaluation, EvaluationResult::completed(None)).await;
        }
        driver.end_engine_calls(origin::without_end_at_stop, false).await?;
        match end {
            WorkEnd::Answered(_) => {
                Err(RuntimeError::Internal { reason: "an answer was not recorded".to_owned() })
            }
            WorkEnd::Stopped(stop_request) => self.end_stopped(driver, evaluation, stop_request).await,
            WorkEnd::Budget(exceeded) => driver.pause_engine(evaluation, PauseReason::Budget, exceeded).await,
            WorkEnd::Failed(error) => Err(error.into()),
        }
    }

    /// Ends or pauses an evaluation that nothing works on any more.
    async fn end_stopped(
        &self,
        driver: &Driver,
        evaluation: EvaluationId,
        stop_request: StopRequest,
    ) -> Result<DriveOutcome> {
        let pause = |reason, detail: &str| driver.pause_engine(evaluation, reason, detail.to_owned());
        match stop_request {
            StopRequest::Cancel => driver.finish(evaluation, EvaluationResult::cancelled()).await,
            StopRequest::Pause => pause(PauseReason::Asked, "pause requested").await,
            StopRequest::OutOfTime => pause(PauseReason::Deadline, "the evaluation is out of time").await,
        }
    }

    /// Follows a program to its end.
    async fn follow(
        &self,
        work: &mut EngineWork<'_>,
        run: &mut dyn EngineRun,
        tools: Option<&OutsideCalls>,
    ) -> Result<WorkEnd> {
        let (driver, evaluation) = (work.driver, work.evaluation);
        if let Some(process) = run.process() {
            origin::note_process(driver.session(), self.engine.title(), &process).await?;
        }
        let mut stop_request = Box::pin(driver.wait_for_stop_request(evaluation, true));
        let mut stopping: Option<(WorkEnd, Instant)> = None;
        loop {
            let until = stopping.as_ref().map_or_else(Instant::now, |(_, until)| *until);
            let was_waiting = !work.waiting.is_empty();
            tokio::select! {
                biased;
                wanted = &mut stop_request, if stopping.is_none() => {
                    interrupt(work, run, tools).await;
                    stopping = Some((WorkEnd::Stopped(wanted), Instant::now() + PATIENCE));
                }
                () = tokio::time::sleep_until(until), if stopping.is_some() => {
                    return Ok(stopping.map_or(WorkEnd::Answered(None), |(end, _)| end));
                }
                () = tokio::time::sleep(POLL_INTERVAL), if was_waiting => work.apply_decisions().await?,
                event = run.next() => match (event, stopping.take()) {
                    (Ok(EngineEvent::Ended(_)) | Err(_), Some((end, _))) => return Ok(end),
                    (Err(error), None) => return Ok(WorkEnd::Failed(error)),
                    (Ok(EngineEvent::Ended(end)), None) => return Ok(self.work_end(end)),
                    (Ok(event), is_stopping) => {
                        stopping = is_stopping;
                        let exceeded = work.take(event, stopping.is_some()).await?;
                        if let (Some(exceeded), true) = (exceeded, stopping.is_none()) {
                            interrupt(work, run, tools).await;
                            stopping = Some((WorkEnd::Budget(exceeded), Instant::now() + PATIENCE));
                        }
                        // The program continues after the event.
                        work.held = None;
                    }
                },
            }
            if was_waiting == work.waiting.is_empty() {
                // Time in which a person is asked does not count.
                if was_waiting {
                    driver.set_deadline(evaluation).await;
                }
                stop_request = Box::pin(driver.wait_for_stop_request(evaluation, was_waiting));
            }
        }
    }

    fn work_end(&self, end: EngineEnd) -> WorkEnd {
        let title = self.engine.title().to_owned();
        match end {
            EngineEnd::Answered(text) => WorkEnd::Answered(text),
            EngineEnd::Interrupted => WorkEnd::Stopped(StopRequest::Pause),
            EngineEnd::Limit(limit) => WorkEnd::Budget(limit),
            EngineEnd::Failed(message) => WorkEnd::Failed(EngineError::Failed { title, message }),
        }
    }
}

/// Interrupts a program, and the calls of the agent's tools that it has made. No further call begins.
async fn interrupt(work: &mut EngineWork<'_>, run: &mut dyn EngineRun, tools: Option<&OutsideCalls>) {
    // Denies the calls that wait for a person.
    work.waiting.clear();
    if let Some(tools) = tools {
        tools.refuse_more();
        tools.stop();
    }
    if let Err(error) = run.interrupt().await {
        tracing::debug!(%error, "an engine could not be interrupted");
    }
}

impl ForeignLoop for EngineLoop {
    fn drive<'a>(
        &'a self,
        driver: &'a Driver,
        evaluation: EvaluationId,
    ) -> BoxFuture<'a, Result<DriveOutcome>> {
        Box::pin(self.drive_to_end(driver, evaluation))
    }

    fn end_survivors<'a>(&'a self, driver: &'a Driver) -> BoxFuture<'a, Result<()>> {
        Box::pin(origin::end_left(driver.session()))
    }

    fn without_end(&self, call: &Call) -> &'static str {
        origin::without_end(call)
    }
}
