//! Services of the runtime for a running tool.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::budget::Limits;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{RecordBody, StepFinished, TurnFinished, Wait};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{BoxFuture, ProcessError, ProcessOutcome, ProcessSpec};
use backstitch_core::secrets::Secrets;
use backstitch_core::session::BoxError;
use backstitch_core::tool::{Progress, ToolHost};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::attempt::PersonTime;
use super::start::Intent;
use super::wait::WaitSlot;
use crate::error::RuntimeError;
use crate::events::LiveKind;
use crate::live::LiveSession;
use crate::process::{Directories, Processes, Sink};

/// The runtime's side of one call.
pub(super) struct Host {
    pub(super) live: Arc<LiveSession>,
    pub(super) intent: Arc<Intent>,
    pub(super) processes: Arc<Processes>,
    pub(super) stop: CancellationToken,
    pub(super) secrets: Secrets,
    pub(super) person_time: Arc<PersonTime>,
    /// Where waits of the call are noted; `None` if it cannot wait.
    pub(super) wait: Option<Arc<WaitSlot>>,
}

impl Host {
    /// Appends a record. The append runs in a task of its own, so that stopping the handler does not leave it
    /// half done.
    pub(super) async fn append(&self, body: RecordBody) -> Result<(), BoxError> {
        let (live, intent) = (self.live.clone(), self.intent.clone());
        let appended = self.processes.finish(async move { intent.append(&live, [body]).await }).await;
        appended.unwrap_or(Err(RuntimeError::ShuttingDown)).map_err(Into::into)
    }
}

impl ToolHost for Host {
    fn directory(&self) -> Option<PathBuf> {
        self.live.workspace()?.host_directory()
    }

    fn holds_session(&self) -> bool {
        self.live.check_lease().is_ok()
    }

    fn recall_step(&self, call: CallId, name: String) -> BoxFuture<'_, Result<Option<Value>, BoxError>> {
        Box::pin(async move {
            let state = self.live.state().await;
            Ok(state
                .view
                .call(call)
                .and_then(|call| call.steps.get(name.as_str()))
                .map(|value| Value::clone(value)))
        })
    }

    fn record_step(&self, call: CallId, name: String, value: Value) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            // A value that cannot be stored and read again would make the step run twice.
            backstitch_core::storable::check(&value)?;
            self.append(StepFinished::new(call, name, value).into()).await
        })
    }

    fn wait(
        &self,
        call: CallId,
        step: String,
        wait: Wait,
        has_acted: bool,
    ) -> BoxFuture<'_, Result<Option<Value>, BoxError>> {
        Box::pin(self.end_wait(call, step, wait, has_acted))
    }

    fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    fn progress(&self, call: CallId, mut progress: Progress) {
        progress.message = self.secrets.redact(&progress.message).into_owned();
        self.live.channel.publish(LiveKind::Progress { call, progress });
    }

    fn output(&self, call: CallId, text: &str) {
        let text = self.secrets.redact(text).into_owned();
        self.live.channel.publish(LiveKind::Output { call, text });
    }

    fn set_waiting_for_person(&self, _: CallId, is_waiting: bool) {
        self.person_time.set_waiting(is_waiting);
    }

    fn budget_left(&self, evaluation: EvaluationId) -> BoxFuture<'_, Option<Limits>> {
        Box::pin(async move {
            let state = self.live.state().await;
            state.view.budget_left(state.view.evaluation(evaluation)?)
        })
    }

    fn object(&self, id: ObjectId) -> BoxFuture<'_, Result<Option<Object>, BoxError>> {
        Box::pin(async move {
            self.live.object(id).await.map_err(|error| match error {
                RuntimeError::Store(error) => error.into(),
                error => error.into(),
            })
        })
    }

    fn finished_turns(
        &self,
        evaluation: EvaluationId,
    ) -> BoxFuture<'_, Result<Vec<Arc<TurnFinished>>, BoxError>> {
        Box::pin(async move {
            let known = self.live.view().await.evaluation(evaluation).cloned();
            let mut turns: Vec<_> = known.into_iter().flat_map(|known| known.finished_turns).collect();
            for turn in &mut turns {
                self.live.fetch_large(turn).await?;
            }
            Ok(turns)
        })
    }

    fn followed_evaluations(&self, evaluation: EvaluationId) -> BoxFuture<'_, Vec<EvaluationId>> {
        Box::pin(async move { self.live.view().await.followed(evaluation) })
    }

    fn run_process(
        &self,
        call: CallId,
        spec: ProcessSpec,
    ) -> BoxFuture<'_, Result<ProcessOutcome, ProcessError>> {
        Box::pin(async move {
            let workspace = self.live.workspace();
            let directories = Directories {
                root: workspace.and_then(|workspace| workspace.host_directory()),
                own: workspace.and_then(|workspace| workspace.own_directory()),
                times: self.live.times_of_attempt(&self.intent.record),
            };
            let gap = self.live.unprotected_note(&spec.sandbox, &directories);
            let notes = gap.into_iter().chain(self.live.unsupervised_note().await);
            let (live, intent) = (self.live.clone(), self.intent.clone());
            let record = |started: backstitch_core::journal::ProcessStarted| async move {
                let records = notes.map(RecordBody::from).chain([started.into()]);
                let recorded = intent.append(&live, records).await;
                if recorded.is_ok() {
                    // The ends of earlier calls are durable with this.
                    live.remove_call_times().await;
                }
                recorded.map_err(Into::into)
            };
            let (publisher, secrets) = (self.live.clone(), self.secrets.clone());
            let live: Sink = Arc::new(move |text| {
                let text = secrets.redact(text).into_owned();
                publisher.channel.publish(LiveKind::Output { call, text });
            });
            self.processes.run(call, spec, directories, record, live).await
        })
    }

    fn cancelled(&self, _: CallId) -> BoxFuture<'_, ()> {
        Box::pin(self.stop.cancelled())
    }
}
