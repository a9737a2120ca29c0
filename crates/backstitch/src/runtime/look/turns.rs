//! The turns of agents that answer with programs.

use backstitch_runtime::RuntimeError;

use super::request::build_to_look;
use super::session::SessionAt;
use crate::agent_file::recorded_definition;
use crate::machine::MachineError;
use crate::message::Large;
use crate::ports::fetch_large;
use crate::repl::{LispMachinery, Turn};
use crate::view::Evaluation;

/// The turns of one evaluation.
pub struct EvaluationTurns {
    /// The turns that have ended.
    pub turns: Vec<Turn>,
    /// The program of a turn that has not ended.
    pub unfinished: Option<OpenProgram>,
}

/// A program that has not ended.
pub struct OpenProgram {
    /// The turn.
    pub turn: u64,
    /// The text of the program.
    pub source: String,
    /// Whether the evaluation has ended, so that the program never will.
    pub is_over: bool,
}

impl SessionAt {
    /// Loads the turns of all evaluations. Those of agents that answer with text and calls are empty.
    pub async fn turns(&self) -> Result<Vec<EvaluationTurns>, RuntimeError> {
        let mut all = Vec::new();
        for evaluation in self.view.evaluations() {
            let mut turns = Vec::new();
            for finished in &evaluation.finished_turns {
                let mut finished = finished.clone();
                fetch_large(&*self.runtime.store.store, &mut finished).await?;
                let data = finished.data.inline().cloned().unwrap_or_default();
                let damaged = |error: serde_json::Error| MachineError::Damaged {
                    evaluation: evaluation.evaluation_id,
                    what: format!("turn {}", finished.turn),
                    reason: error.to_string(),
                };
                turns.push(serde_json::from_value(data).map_err(damaged)?);
            }
            all.push(EvaluationTurns { turns, unfinished: self.open_program_of(evaluation).await? });
        }
        Ok(all)
    }

    /// Builds the machinery that computes the full results of turns which hold a sample; `None` if the agent cannot be
    /// built here.
    pub async fn machinery(&self) -> Option<LispMachinery> {
        let definition = recorded_definition(&*self.runtime.store.store, &self.view, None).await.ok()?;
        let built = build_to_look(&definition).ok()?;
        let tools = built.agent.tools.iter().map(|tool| tool.spec.clone());
        LispMachinery::new(built.lisp?.with_tools(tools)).ok()
    }

    async fn open_program_of(&self, evaluation: &Evaluation) -> Result<Option<OpenProgram>, RuntimeError> {
        let done = evaluation.finished_turns.last().map_or(0, |turn| turn.turn);
        let latest = evaluation.programs.last().filter(|program| program.turn > done);
        let Some(mut program) = latest.cloned() else { return Ok(None) };
        fetch_large(&*self.runtime.store.store, &mut program).await?;
        let source = program.source.as_ref().and_then(Large::inline).map(ToString::to_string);
        let (source, is_over) = (source.unwrap_or_default(), evaluation.finished.is_some());
        Ok(Some(OpenProgram { turn: program.turn, source, is_over }))
    }
}
