//! Machines whose history is rendered by a strategy.
//!
//! The inner machine drives the evaluation unchanged. All messages that it receives are also folded into a
//! history, so that the cost of a request depends on what it shows and not on the length of the evaluation.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backstitch_core::machine::{
    EvaluationHistory, Machine, MachineAction, MachineError, MachineEvent, MachineFactory, VisibleHistory,
};

use super::{RenderedTranscript, TranscriptCompression, TranscriptHistory};

/// Wraps the machines of another factory, and renders their histories by a strategy.
#[derive(Clone)]
pub struct CompressedMachines {
    machinery: Arc<dyn MachineFactory>,
    strategy: Arc<dyn TranscriptCompression>,
}

impl CompressedMachines {
    /// Wraps a factory with a strategy.
    pub fn new(machinery: Arc<dyn MachineFactory>, strategy: Arc<dyn TranscriptCompression>) -> Self {
        Self { machinery, strategy }
    }
}

impl MachineFactory for CompressedMachines {
    fn rebuild(&self, past: &EvaluationHistory) -> Result<Box<dyn Machine>, MachineError> {
        let machine = self.machinery.rebuild(past)?;
        let history = past.conversation().into_iter().collect();
        Ok(Box::new(CompressedMachine { machine, history, strategy: self.strategy.clone() }))
    }

    fn continues_answers(&self) -> bool {
        self.machinery.continues_answers()
    }
}

struct CompressedMachine {
    machine: Box<dyn Machine>,
    history: TranscriptHistory,
    strategy: Arc<dyn TranscriptCompression>,
}

impl Machine for CompressedMachine {
    fn handle(&mut self, event: MachineEvent) {
        match &event {
            MachineEvent::MessageAdded(message) => self.history.push(message.clone()),
            MachineEvent::Answered { messages, .. } => self.history.extend(messages.iter().cloned()),
            MachineEvent::CallEnded { result, .. } => self.history.push(result.clone()),
        }
        self.machine.handle(event);
    }

    fn next(&mut self) -> MachineAction {
        self.machine.next()
    }

    fn next_unless(&mut self, stop: &Arc<AtomicBool>) -> Option<MachineAction> {
        self.machine.next_unless(stop)
    }

    fn takes_long(&self) -> bool {
        self.machine.takes_long()
    }

    fn show(&self, answers_left: Option<u64>) -> Option<VisibleHistory> {
        // A machine that renders its own history takes precedence.
        let own = self.machine.show(answers_left);
        own.or_else(|| Some(shown(self.strategy.render(&self.history), self.strategy.renderer())))
    }
}

fn shown(rendered: RenderedTranscript, renderer: String) -> VisibleHistory {
    let statistics = rendered.statistics;
    let dropped = [
        ("answers", statistics.turns.dropped()),
        ("calls", statistics.tool_calls.dropped()),
        ("results", statistics.results_elided),
    ];
    let dropped = dropped.into_iter().filter(|(_, count)| *count > 0);
    VisibleHistory {
        messages: rendered.messages.into_iter().collect(),
        renderer: Some(renderer),
        left_out: dropped.map(|(what, count)| format!("{count} {what}")).collect(),
        ..VisibleHistory::default()
    }
}
