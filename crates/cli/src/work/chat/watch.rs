//! Watching a turn: its events are printed, Ctrl-C interrupts it, and a person is asked about calls that wait.

use std::future::Future;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::host::{AskedCalls, one_line};
use backstitch::id::SessionId;
use backstitch::journal::{InboxKind, StopReason};
use backstitch::ports::Workspace;
use backstitch::{ResumeOptions, Run, SessionOptions};
use tokio::signal::unix::SignalKind;

use super::conversation::{Conversation, Flow};
use super::typing::{TypingReader, TypingStep};
use crate::open::Signals;
use crate::people::in_place::server_questions::{self, ServerQuestion};
use crate::people::in_place::{
    Decisions, Interrupts, TerminalPerson, WaitingSession, ask_person, ask_while_driven,
};
use crate::terminal::{Role, Text};
use crate::work::driving::DriveReport;
use crate::work::driving::is_approval;
use crate::work::ending::print_answer;
use crate::work::live::Screen;

/// How many times an answer that reached its limit is continued without a question.
const MOST_CONTINUED: usize = 8;

/// What follows a question that was left open.
const LEFT_OPEN: &str = "left waiting; `/resume` asks again, a message ends the turn and asks something else";

/// The most characters of a queued line that are shown.
const SHOWN: usize = 60;

impl Conversation {
    /// Drives a run to its end. If it waits for approvals, asks the person, and continues. Lines that wait for the end of the turn run
    /// only after an answer. After any other end they begin the next message: the person typed them before it.
    pub(super) async fn drive(&self, run: Run, mut signals: Signals) -> anyhow::Result<Flow> {
        let (place, session) = (self.place()?, run.session());
        let screen = Screen::new(false);
        screen.use_files(&place.runtime);
        let (mut driven, mut flow) = self.watch(&screen, run, &mut signals).await;
        let mut is_interrupted = driven.interrupted;
        let (runtime, agent, mut continued) = (&place.runtime, &self.built.agent, 0);
        while flow == Flow::Continue {
            let run = if driven.is_cut_off() && continued < MOST_CONTINUED {
                continued += 1;
                screen.status("the answer reached its limit; the model continues it");
                runtime.resume(session, agent).await?
            } else if let Some(answer) = driven.answer()
                && self.has_messages(session).await
            {
                // They arrived after the last step.
                print_answer(&screen, &self.definition, answer);
                runtime.resume(session, agent).await?
            } else if driven.can_ask(&self.common) {
                let workspace = self.files().await?;
                let Decisions::Made(drift) = self.ask(&screen, workspace.clone(), &mut signals).await? else {
                    self.typed_ahead().hold_lines();
                    screen.status(LEFT_OPEN);
                    self.print_status(&place.view(session).await?);
                    return Ok(flow);
                };
                let options = SessionOptions { workspace, ..SessionOptions::default() };
                let resume = ResumeOptions { drift, ..ResumeOptions::default() };
                runtime.resume_with(session, agent, resume, options).await?
            } else {
                break;
            };
            (driven, flow) = self.watch(&screen, run, &mut signals).await;
            is_interrupted |= driven.interrupted;
        }
        if is_interrupted || driven.answer().is_none() {
            self.typed_ahead().hold_lines();
        }
        self.report(&screen, session, driven).await?;
        Ok(flow)
    }

    /// Whether messages wait that no turn has read.
    async fn has_messages(&self, session: SessionId) -> bool {
        let Ok(place) = self.place() else { return false };
        let waiting = place.store.inbox(session).await.unwrap_or_default();
        waiting.iter().any(|(_, item)| item.kind == InboxKind::Message)
    }

    /// Prints the events of a run until it has ended. Ctrl-C and Esc interrupt it, and lines are sent to the agent.
    async fn watch(&self, screen: &Screen, run: Run, signals: &mut Signals) -> (DriveReport, Flow) {
        let (tick, mut run) = (screen.tick(), run.with_content());
        let (mut interrupts, mut flow) = (0, Flow::Continue);
        let mut typing = TypingReader::start(std::mem::take(&mut self.typed_ahead().draft));
        // The calls of an engine wait while it runs, so a person is asked meanwhile.
        let asks = self.built.agent.engine_name().is_some() && self.common.can_ask();
        let mut asked = AskedCalls::default();
        loop {
            tokio::select! {
                event = run.next() => match event {
                    Some(event) => {
                        screen.show(&self.common, run.session(), &event);
                        if asks && is_approval(&event) {
                            // What is typed from now on is an answer.
                            let draft = typing.take().map(TypingReader::finish).unwrap_or_default();
                            if !self.ask_meanwhile(screen, &mut asked, signals).await {
                                run.pause();
                            }
                            typing = TypingReader::start(draft);
                        }
                        typing.iter().for_each(|typing| typing.draw(screen.is_inside_line()));
                    }
                    None => break,
                },
                question = server_questions::next() => {
                    let draft = typing.take().map(TypingReader::finish).unwrap_or_default();
                    answer_server(screen, question, signals).await;
                    typing = TypingReader::start(draft);
                    typing.iter().for_each(|typing| typing.draw(screen.is_inside_line()));
                }
                steps = next_steps(&mut typing) => {
                    for step in steps {
                        match step {
                            TypingStep::Line(line) => self.steer(screen, run.session(), line).await,
                            TypingStep::Interrupt if interrupts > 0 => {}
                            TypingStep::Interrupt => {
                                interrupts = 1;
                                interrupt(screen, &run);
                            }
                        }
                    }
                    typing.iter().for_each(|typing| typing.draw(screen.is_inside_line()));
                }
                signal = signals.next() => if signal == SignalKind::interrupt() {
                    interrupts += 1;
                    match interrupts {
                        1 => interrupt(screen, &run),
                        2 => screen.status("still interrupting; Ctrl-C once more leaves at once"),
                        _ => {
                            drop(typing.take());
                            screen.quit()
                        }
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
        if let Some(typing) = typing {
            self.typed_ahead().draft = typing.finish();
        }
        tick.abort();
        (DriveReport { ended, interrupted: interrupts > 0 }, flow)
    }

    /// Sends a line to the agent, which reads it between two steps. What the prompt has to read waits for it: commands, and
    /// messages with files.
    async fn steer(&self, screen: &Screen, session: SessionId, line: String) {
        let shown = one_line(&line, SHOWN);
        let is_for_prompt = line.starts_with(['/', '!']) || line.contains('@');
        let place = self.place.as_ref().filter(|_| !is_for_prompt);
        let sent = match place {
            Some(place) => place.runtime.send(session, &line).await.map(|_| ()),
            None => Ok(()),
        };
        let queued = match (sent, is_for_prompt) {
            (Ok(()), false) => format!("queued: {shown} (the agent reads it at its next step)"),
            (Ok(()), true) => {
                self.typed_ahead().lines.push_back(line);
                format!("queued: {shown} (after this turn)")
            }
            (Err(error), _) => {
                self.typed_ahead().lines.push_back(line);
                format!("queued: {shown} (after this turn, because it cannot be sent now: {error})")
            }
        };
        screen.status_text(&Text::new().add(Role::Dim, queued));
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

/// Returns what is typed next. Without a terminal that is nothing.
async fn next_steps(typing: &mut Option<TypingReader>) -> Vec<TypingStep> {
    match typing {
        Some(typing) => typing.next().await,
        None => std::future::pending().await,
    }
}

fn interrupt(screen: &Screen, run: &Run) {
    screen.status("interrupting: running calls are rolled back");
    run.pause();
}

/// Asks the person what an MCP server asks. A signal cancels the question.
async fn answer_server(screen: &Screen, question: ServerQuestion, signals: &mut Signals) {
    screen.end_streamed_line();
    let interrupts = Arc::new(Interrupts::default());
    let _asking = interrupts.asking();
    let mut person = TerminalPerson::new(interrupts.clone());
    wait_for_decision(question.ask(&mut person), &interrupts, signals).await;
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
