//! Watching a turn: its events are printed, Ctrl-C interrupts it, and a person is asked about calls that wait.

use std::future::Future;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::journal::StopReason;
use backstitch::ports::Workspace;
use backstitch::{ResumeOptions, Run, SessionOptions};
use tokio::signal::unix::SignalKind;

use super::conversation::{Conversation, Flow};
use crate::open::Signals;
use crate::people::in_place::{
    AskedCalls, Decisions, Interrupts, TerminalPerson, WaitingSession, ask_person, ask_while_driven,
};
use crate::work::driving::DriveReport;
use crate::work::driving::is_approval;
use crate::work::live::Screen;

impl Conversation {
    /// Drives a run to its end. If it waits for approvals, asks the person, and continues.
    pub(super) async fn drive(&self, run: Run, mut signals: Signals) -> anyhow::Result<Flow> {
        let (place, session) = (self.place()?, run.session());
        let screen = Screen::new(false);
        let (mut driven, mut flow) = self.watch(&screen, run, &mut signals).await;
        while flow == Flow::Continue && driven.can_ask(&self.common) {
            let workspace = self.files().await?;
            let Decisions::Made(drift) = self.ask(&screen, workspace.clone(), &mut signals).await? else {
                break;
            };
            let options = SessionOptions { workspace, ..SessionOptions::default() };
            let resume = ResumeOptions { drift, ..ResumeOptions::default() };
            let run = place.runtime.resume_with(session, &self.built.agent, resume, options).await?;
            (driven, flow) = self.watch(&screen, run, &mut signals).await;
        }
        self.report(&screen, session, driven).await?;
        Ok(flow)
    }

    /// Prints the events of a run until it has ended. Ctrl-C interrupts it.
    async fn watch(&self, screen: &Screen, run: Run, signals: &mut Signals) -> (DriveReport, Flow) {
        let (tick, mut run) = (screen.tick(), run.with_content());
        let (mut interrupts, mut flow) = (0, Flow::Continue);
        // The calls of an engine wait while it runs, so a person is asked meanwhile.
        let asks = self.built.agent.engine_name().is_some() && self.common.can_ask();
        let mut asked = AskedCalls::new();
        loop {
            tokio::select! {
                event = run.next() => match event {
                    Some(event) => {
                        screen.show(&self.common, run.session(), &event);
                        if asks && is_approval(&event) && !self.ask_meanwhile(screen, &mut asked, signals).await {
                            run.pause();
                        }
                    }
                    None => break,
                },
                signal = signals.next() => if signal == SignalKind::interrupt() {
                    interrupts += 1;
                    match interrupts {
                        1 => {
                            screen.status("interrupting: running calls are rolled back");
                            run.pause();
                        }
                        2 => screen.status("still interrupting; Ctrl-C once more leaves at once"),
                        _ => screen.quit(),
                    }
                } else {
                    flow = Flow::Stopped;
                    if let Some(place) = &self.place {
                        place.runtime.stop(StopReason::Signal);
                    }
                },
            }
        }
        let ended = run.outcome().await;
        tick.abort();
        (DriveReport { ended, interrupted: interrupts > 0 }, flow)
    }

    /// Asks about all calls that wait for approval.
    async fn ask(
        &self,
        screen: &Screen,
        workspace: Option<Arc<dyn Workspace>>,
        signals: &mut Signals,
    ) -> anyhow::Result<Decisions> {
        screen.end_streamed_line();
        let waiting = self.waiting(workspace)?;
        let interrupts = Arc::new(Interrupts::default());
        let _asking = interrupts.asking();
        let mut person = TerminalPerson::new(interrupts.clone());
        wait_for_decision(ask_person(&waiting, &mut person), &interrupts, signals).await
    }

    /// Asks about the calls of an engine that wait while it runs. Returns false if a question was left open.
    async fn ask_meanwhile(&self, screen: &Screen, asked: &mut AskedCalls, signals: &mut Signals) -> bool {
        screen.end_streamed_line();
        let decided = async {
            let waiting = self.waiting(None)?;
            let interrupts = Arc::new(Interrupts::default());
            let _asking = interrupts.asking();
            let mut person = TerminalPerson::new(interrupts.clone());
            wait_for_decision(ask_while_driven(&waiting, asked, &mut person), &interrupts, signals).await
        };
        decided.await.unwrap_or_else(|error| {
            eprintln!("{error:#}");
            false
        })
    }

    fn waiting(&self, workspace: Option<Arc<dyn Workspace>>) -> anyhow::Result<WaitingSession<'_>> {
        let (place, session) = (self.place()?, self.session.context("the conversation has no session yet")?);
        let agent = &self.built.agent;
        Ok(WaitingSession { place, session, workspace, tools: &agent.tools, rules: &agent.approval_rules })
    }
}

/// Waits for the decisions of a person. A signal leaves the question open.
async fn wait_for_decision<T>(
    asking: impl Future<Output = T>,
    interrupts: &Interrupts,
    signals: &mut Signals,
) -> T {
    let mut asking = std::pin::pin!(asking);
    loop {
        tokio::select! {
            decided = &mut asking => return decided,
            _ = signals.next() => {
                interrupts.take();
            }
        }
    }
}
