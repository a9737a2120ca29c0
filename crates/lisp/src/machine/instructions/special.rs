//! The instructions of some special forms: destructuring, `case`, `def`, `task`.

use std::sync::Arc;

use super::super::fiber::Fiber;
use super::super::request::TaskRecord;
use super::super::shared::SharedState;
use super::call::charge_keys;
use super::{FrameExit, InstructionResult, Stop, after};
use crate::compile::Case;
use crate::error::{Error, ErrorKind, Result};
use crate::library::Realise;
use crate::value::{Symbol, Value};

impl Fiber {
    /// Destructures the sequence on top.
    pub(super) fn spread(&mut self, count: usize, rest: bool, shared: &mut SharedState) -> InstructionResult {
        let top = self.stack.len() - 1;
        match super::super::invoke::spread(&self.stack[top], count, rest)? {
            Ok(items) => {
                self.stack.pop();
                self.stack.extend(items);
                shared.meter.pay()?;
                Ok(())
            }
            Err(cell) => after(Some(super::super::realise::start(cell, &mut self.strand)?)),
        }
    }

    /// Pops a value and returns the target of its `case` clause.
    pub(super) fn choose(&mut self, case: &Case, shared: &mut SharedState) -> InstructionResult<usize> {
        self.realise_top(shared)?;
        charge_keys(&self.stack[self.stack.len() - 1..], shared)?;
        let value = self.stack.pop().unwrap_or_default();
        shared.meter.pay()?;
        Ok(case.targets.get(&value).copied().unwrap_or(case.otherwise) as usize)
    }

    /// Defines a name with the value on top, and replaces the value by the var.
    pub(super) fn define(
        &mut self,
        global: u32,
        doc: Option<&Value>,
        shared: &mut SharedState,
    ) -> Result<()> {
        if self.strand.is_branch() {
            let message = "nothing can be defined inside pmap or pcalls";
            return Err(Error::new(ErrorKind::ForbiddenEffect, message)
                .hint("collect the results of pmap and define them afterwards"));
        }
        let value = self.stack.pop().unwrap_or_default();
        let doc = match doc {
            Some(Value::String(text)) => Some(Arc::from(text.as_str())),
            _ => None,
        };
        shared.meter.note(128);
        shared.memory.set(global, value, doc);
        shared.defined.push(global);
        let name = shared.memory.names.globals.name(global).cloned().unwrap_or_else(|| "".into());
        self.stack.push(Value::Var(Symbol::new(&*name)));
        Ok(())
    }

    /// Tests if the task whose id is on top is already recorded. If so, its value replaces the id.
    pub(super) fn begin_task(&mut self, shared: &mut SharedState) -> InstructionResult<bool> {
        self.realise_top(shared)?;
        let top = self.stack.len() - 1;
        let id = &self.stack[top];
        if !matches!(id, Value::String(_) | Value::Keyword(_)) {
            return Err(crate::library::type_error("task", "a string as its id", id).into());
        }
        let known = shared.journal.get_exact(id).cloned();
        let is_known = known.is_some();
        if let Some(known) = known {
            self.stack[top] = known;
        }
        Ok(is_known)
    }

    /// Requests that the value on top is recorded for the task whose id is below it.
    pub(super) fn end_task(&mut self, shared: &mut SharedState) -> InstructionResult {
        self.realise_top(shared)?;
        let top = self.stack.len() - 1;
        let value = super::super::finish::harden(&self.stack[top]);
        let id = self.stack[top - 1].clone();
        self.stack.truncate(top - 1);
        shared.journal.insert(id.clone(), value.clone());
        let record = TaskRecord { path: self.strand.path(), id, value: value.clone() };
        Err(Stop::Then(FrameExit::Record(Box::new(record), value)))
    }

    fn realise_top(&self, shared: &mut SharedState) -> InstructionResult {
        let top = self.stack.len() - 1;
        after(super::super::realise::pending(&self.stack[top..], Realise::Deep, shared, false)?)
    }
}
