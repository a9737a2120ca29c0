//! The machine of an evaluation that is shown by a strategy.
//!
//! Whatever makes the evaluation goes on as it did. The messages that it is told of are folded on the way, so that a request
//! costs as much as it shows, however long the evaluation has become.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backstitch_core::machine::{
    EvaluationHistory, Machine, MachineAction, MachineError, MachineEvent, MachineFactory, VisibleHistory,
};

use super::{RenderedTranscript, TranscriptCompression, TranscriptHistory};

/// Makes evaluations as another machinery does, and shows them by a strategy.
#[derive(Clone)]
pub struct CompressedMachines {
    machinery: Arc<dyn MachineFactory>,
    strategy: Arc<dyn TranscriptCompression>,
}

impl CompressedMachines {
    /// The evaluations of a machinery, shown by a strategy.
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
    fn take_in(&mut self, event: MachineEvent) {
        match &event {
            MachineEvent::Said(message) => self.history.push(message.clone()),
            MachineEvent::Answered { messages, .. } => self.history.extend(messages.iter().cloned()),
            MachineEvent::CallEnded { result, .. } => self.history.push(result.clone()),
        }
        self.machine.take_in(event);
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
        // A machine that knows itself what to show knows better.
        let own = self.machine.show(answers_left);
        own.or_else(|| Some(shown(self.strategy.render(&self.history), self.strategy.renderer())))
    }
}

fn shown(rendered: RenderedTranscript, renderer: String) -> VisibleHistory {
    let told = rendered.statistics;
    let dropped = [
        ("answers", told.turns.dropped()),
        ("calls", told.tool_calls.dropped()),
        ("results", told.results_elided),
    ];
    let dropped = dropped.into_iter().filter(|(_, count)| *count > 0);
    VisibleHistory {
        messages: rendered.messages.into_iter().collect(),
        renderer: Some(renderer),
        left_out: dropped.map(|(what, count)| format!("{count} {what}")).collect(),
        ..VisibleHistory::default()
    }
}
