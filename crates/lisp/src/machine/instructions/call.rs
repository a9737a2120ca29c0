//! Calls of data, library functions and tools.

use super::super::execute::{context, unrealised};
use super::super::fiber::Fiber;
use super::super::frames::prelude;
use super::super::shared::SharedState;
use super::super::work::{Host, Step};
use super::{FrameExit, InstructionResult, Stop, after, put};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Native, Run};
use crate::value::Value;

impl Fiber {
    /// Calls the keyword, map or set at a stack position with the arguments above it.
    pub(super) fn call_data(&mut self, floor: usize, shared: &mut SharedState) -> Result<()> {
        charge_keys(&self.stack[floor + 1..], shared)?;
        let value = super::super::invoke::call_data(&self.stack[floor..], &mut self.strand.missed)?;
        shared.meter.pay()?;
        self.stack.truncate(floor);
        self.stack.push(value);
        Ok(())
    }

    /// Replaces the value on top by the result of a keyword lookup in it: two instructions in one, the
    /// keyword and the call.
    #[inline]
    pub(super) fn look_up(&mut self, key: &Value, shared: &mut SharedState) -> Result<()> {
        shared.meter.work(1)?;
        let Some(place) = self.stack.last_mut() else { return Ok(()) };
        let value = match &*place {
            Value::Map(map) => match map.get(key) {
                Some(Value::Integer(value)) => Value::Integer(*value),
                Some(value) => value.clone(),
                None => {
                    self.strand.missed.note(map, key);
                    Value::Nil
                }
            },
            other => {
                charge_keys(std::slice::from_ref(other), shared)?;
                super::super::invoke::lookup(other, key).unwrap_or_default()
            }
        };
        put(place, value);
        shared.meter.pay()
    }

    /// Calls a function of the library with the arguments on top.
    #[inline]
    pub(super) fn call_native(
        &mut self,
        native: &'static Native,
        count: usize,
        shared: &mut SharedState,
    ) -> InstructionResult {
        let floor = self.stack.len() - count;
        if !native.arity.accepts(count) {
            return Err(native.arity.mismatch(native.name, count).into());
        }
        after(unrealised(native, &self.stack[floor..], shared)?)?;
        if let Some(name) = native.replacement(&self.stack[floor..]) {
            let arguments = self.stack.split_off(floor);
            let step = prelude(shared, name, arguments)?;
            return Err(Stop::Then(FrameExit::Step(Box::new(step))));
        }
        let (name, strand) = (native.name, &mut self.strand);
        let result = match native.run {
            Run::Leaf(run) => run(&mut context(name, shared, strand), &self.stack[floor..]),
            Run::Taking(run) => run(&mut context(name, shared, strand), &mut self.stack[floor..]),
            Run::Frame(enter) => {
                if shared.meter.is_pressed() {
                    return Err(Stop::Retry(FrameExit::Collect));
                }
                let arguments = self.stack.split_off(floor);
                let mut host = Host { shared, strand: &mut self.strand, stack: &mut self.stack };
                let step = enter(&mut host, arguments);
                shared.meter.pay()?;
                match step? {
                    Step::Return(value) => Ok(value),
                    step => return Err(Stop::Then(FrameExit::Step(Box::new(step)))),
                }
            }
        };
        shared.meter.pay()?;
        match result {
            Ok(value) => {
                shared.limits.check_depth(value.depth())?;
                self.stack.truncate(floor);
                self.stack.push(value);
                Ok(())
            }
            Err(error) if is_pressure(&error, shared) => Err(Stop::Retry(FrameExit::Collect)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the frame that calls a tool with the arguments on top.
    #[cold]
    pub(super) fn call_tool(&mut self, name: &Value, count: usize) -> FrameExit {
        let arguments = self.stack.split_off(self.stack.len() - count);
        let name = match name {
            Value::String(name) => name.as_str(),
            _ => "",
        };
        FrameExit::Work(Box::new(super::super::tools::CallTool::new(name, arguments)))
    }
}

/// Charges for values that are about to be compared with keys.
#[inline]
pub(in super::super) fn charge_keys(values: &[Value], shared: &mut SharedState) -> Result<()> {
    for value in values {
        match value {
            Value::Map(_) | Value::Keyword(_) | Value::Integer(_) | Value::Nil => {}
            other => shared.meter.work(other.shape().weight() / 8)?,
        }
    }
    Ok(())
}

/// Returns whether an error only means that the meter requests a count of live memory.
#[inline]
fn is_pressure(error: &Error, shared: &SharedState) -> bool {
    error.kind() == ErrorKind::MemoryExceeded && shared.meter.was_refused()
}
