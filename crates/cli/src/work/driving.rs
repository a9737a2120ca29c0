//! Starting a session, and driving it to its end with approvals in place: one loop for `run`, `resume` and `ask`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, BuiltAgent};
use backstitch::host::{AskedCalls, Fidelity, OpenedWorkspace};
use backstitch::id::SessionId;
use backstitch::journal::{PauseReason, RecordBody, SessionName, StopReason};
use backstitch::ports::Workspace;
use backstitch::{
    Agent, DriveOutcome, FinalAnswer, Mission, ResumeOptions, Runtime, RuntimeError, SessionEvent,
    SessionOptions,
};
use serde_json::json;
use tokio::task::JoinHandle;

use super::live::{AnnouncedRun, Screen};
use crate::common::Common;
use crate::open::{OpenStore, Signals, short, uncovered};
use crate::people::in_place::{
    Decisions, Interrupts, TerminalPerson, WaitingSession, ask_person, ask_while_driven, server_questions,
};

/// A session that this process drives, and everything that is needed to continue it after a decision.
pub(crate) struct DrivenSession {
    pub(crate) common: Common,
    pub(crate) place: OpenStore,
    pub(crate) definition: AgentDefinition,
    pub(crate) built: BuiltAgent,
    pub(crate) live: Screen,
    pub(crate) stopper: Stopper,
    pub(crate) session: SessionId,
    pub(crate) workspace: Option<Arc<dyn Workspace>>,
    pub(crate) fidelity: Fidelity,
}

impl DrivenSession {
    /// Prints the first event.
    pub(crate) fn announce(&self, event: &str) -> AnnouncedRun {
        let model = self.definition.answerer();
        self.live.begin(json!({"v": 1, "event": event, "session": self.session, "model": model}))
    }

    pub(crate) fn options(&self, take_over: bool) -> SessionOptions {
        SessionOptions { workspace: self.workspace.clone(), take_over, ..SessionOptions::default() }
    }

    /// Drives a run. If the session waits for decisions and a person is there, asks, and continues.
    pub(crate) async fn drive(&self, run: backstitch::Run) -> anyhow::Result<DriveReport> {
        let mut driven = self.follow_run(run).await?;
        while driven.can_ask(&self.common) {
            let Decisions::Made(drift) = self.ask().await? else { break };
            let resume = ResumeOptions { fidelity: self.fidelity, drift, ..ResumeOptions::default() };
            let (runtime, agent) = (&self.place.runtime, &self.built.agent);
            let run = runtime.resume_with(self.session, agent, resume, self.options(false)).await?;
            driven = self.follow_run(run).await?;
        }
        Ok(driven)
    }

    /// Follows a run to its end. The calls of an engine, and those of MCP servers that ask, wait while it runs, so a person is asked meanwhile.
    async fn follow_run(&self, run: backstitch::Run) -> anyhow::Result<DriveReport> {
        self.live.use_files(&self.place.runtime);
        let (tick, mut asked, mut run) = (self.live.tick(), AskedCalls::default(), run.with_content());
        let has_engine = self.built.agent.engine_name().is_some();
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                question = server_questions::next() => {
                    let interrupts = &self.stopper.interrupts;
                    let _asking = interrupts.asking();
                    self.live.end_streamed_line();
                    question.ask(&mut TerminalPerson::new(interrupts.clone())).await;
                    continue;
                }
            };
            let Some(event) = event else { break };
            self.live.show(&self.common, run.session(), &event);
            if !has_engine || !is_approval(&event) {
                continue;
            }
            if !self.common.can_ask() {
                let hint = self.common.hint(format_args!("approve {}", short(self.session)));
                self.live.status_text(
                    &format!("the call waits; `{hint}` approves it, from another terminal").into(),
                );
                continue;
            }
            let interrupts = &self.stopper.interrupts;
            let _asking = interrupts.asking();
            self.live.end_streamed_line();
            let mut person = TerminalPerson::new(interrupts.clone());
            if !ask_while_driven(&self.waiting(), &mut asked, &mut person).await? {
                run.pause();
            }
        }
        let ended = run.outcome().await;
        tick.abort();
        Ok(DriveReport { ended, interrupted: self.stopper.interrupted.load(Ordering::SeqCst) })
    }

    fn waiting(&self) -> WaitingSession<'_> {
        let agent = &self.built.agent;
        WaitingSession {
            place: &self.place,
            session: self.session,
            workspace: self.workspace.clone(),
            tools: &agent.tools,
            rules: &agent.approval_rules,
        }
    }

    async fn ask(&self) -> anyhow::Result<Decisions> {
        let interrupts = &self.stopper.interrupts;
        let _asking = interrupts.asking();
        self.live.end_streamed_line();
        ask_person(&self.waiting(), &mut TerminalPerson::new(interrupts.clone())).await
    }
}

/// How driving a session ended.
pub(crate) struct DriveReport {
    pub(crate) ended: Result<DriveOutcome, RuntimeError>,
    /// Whether a signal stopped the run.
    pub(crate) interrupted: bool,
}

impl DriveReport {
    /// Whether the session waits for a decision that a person can make now.
    pub(crate) fn can_ask(&self, common: &Common) -> bool {
        let waits = matches!(&self.ended, Ok(DriveOutcome::Paused { reason, .. }) if reason.is_askable());
        waits && !self.interrupted && common.can_ask()
    }

    /// Returns the answer that the turn ended with.
    pub(crate) fn answer(&self) -> Option<&FinalAnswer> {
        match &self.ended {
            Ok(DriveOutcome::Completed(answer)) => Some(answer),
            _ => None,
        }
    }

    /// Whether the answer reached its limit of tokens, and nothing else is in its way.
    pub(crate) fn is_cut_off(&self) -> bool {
        let is_cut = matches!(&self.ended, Ok(DriveOutcome::Paused { reason: PauseReason::Truncated, .. }));
        is_cut && !self.interrupted
    }
}

/// Whether a call begins to wait for approval.
pub(crate) fn is_approval(event: &SessionEvent) -> bool {
    let SessionEvent::Record(record) = event else { return false };
    matches!(&record.body, RecordBody::Paused(paused) if paused.reason == PauseReason::Approval)
}

/// Stops a run cleanly on a signal, such as Ctrl-C, a closed terminal or `kill`: running calls are rolled
/// back, and the session pauses. A second signal ends the process at once, and so does one before the session
/// was announced.
pub(crate) struct Stopper {
    listener: JoinHandle<()>,
    interrupted: Arc<AtomicBool>,
    /// Signals while a person is asked.
    interrupts: Arc<Interrupts>,
}

impl Stopper {
    /// Starts to listen for signals.
    pub(crate) fn start(runtime: &Runtime, live: &Screen) -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let interrupts = Arc::new(Interrupts::default());
        let (runtime, live, flag) = (runtime.clone(), live.clone(), interrupted.clone());
        let asking = interrupts.clone();
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        let listener = tokio::spawn(async move {
            loop {
                signals.next().await;
                // At a question, nothing runs that would have to be stopped.
                if asking.take() {
                    continue;
                }
                // The next resume recovers from this as from any crash.
                if flag.swap(true, Ordering::SeqCst) || !live.is_announced() {
                    live.quit();
                }
                // Before anything is printed: the output may be stopped.
                runtime.stop(StopReason::Signal);
                live.status("stopping: running calls are rolled back");
            }
        });
        Ok(Self { listener, interrupted, interrupts })
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// A session that is not stored yet.
pub(crate) struct NewSession {
    pub(crate) place: OpenStore,
    /// The id, so that an error about a directory in use names the session that holds it.
    pub(crate) id: SessionId,
}

/// A session that was started, with its files.
pub(crate) struct StartedSession {
    pub(crate) run: backstitch::Run,
    pub(crate) files: Option<OpenedWorkspace>,
}

impl NewSession {
    /// Opens the store of the directory that an agent works in, or creates one.
    pub(crate) fn open(common: &Common, definition: &AgentDefinition) -> anyhow::Result<Self> {
        let here = std::env::current_dir()?;
        let files = definition.workspace.path.as_deref();
        let place = OpenStore::existing_or_new_for(common, files.unwrap_or(&here), files)?;
        let id = place.runtime.new_id()?;
        Ok(Self { place, id })
    }

    /// Starts the session. Its mission is durable once this returns, so an announced session can be resumed.
    pub(crate) async fn start(
        &self,
        agent: &Agent,
        mission: impl Into<Mission>,
        tags: BTreeMap<String, String>,
        name: Option<&SessionName>,
    ) -> anyhow::Result<StartedSession> {
        let runtime = &self.place.runtime;
        if let Some(name) = name {
            // Before anything is stored.
            runtime.check_name(name, None).await?;
        }
        let files = self.place.open_files(agent, self.id).await?;
        let options = SessionOptions {
            workspace: files.as_ref().map(|files| files.workspace.clone()),
            isolation: files.as_ref().and_then(|files| files.isolation.clone()),
            id: Some(self.id),
            tags,
            name: name.cloned(),
            ..SessionOptions::default()
        };
        let run = runtime.start_with(agent, mission, options).await?;
        Ok(StartedSession { run, files })
    }
}

impl StartedSession {
    pub(crate) fn workspace(&self) -> Option<Arc<dyn Workspace>> {
        self.files.as_ref().map(|files| files.workspace.clone())
    }

    /// Says which paths are not covered; `None` if all are.
    pub(crate) fn uncovered_line(&self) -> Option<String> {
        let paths = uncovered(&*self.files.as_ref()?.workspace)?;
        Some(format!("not covered, so neither captured nor restored: {paths}"))
    }
}
