//! Creating functions, lazy cells and collections from values on the stack.

use std::sync::Arc;

use super::super::fiber::{CodeFrame, Fiber};
use super::super::shared::SharedState;
use super::call::charge_keys;
use super::{InstructionResult, after};
use crate::compile::{Capture, Proto};
use crate::error::{Error, Result};
use crate::library::Realise;
use crate::value::{Closure, Map, Set, Thunk, Value, Vector};

impl Fiber {
    /// Pushes a function of the group that the running function belongs to.
    pub(super) fn push_sibling(&mut self, frame: &CodeFrame, member: u32, shared: &mut SharedState) {
        let closure = if member as usize == frame.closure.member() {
            frame.closure.clone()
        } else {
            shared.meter.note(96);
            Arc::new(frame.closure.sibling(member))
        };
        self.stack.push(Value::Closure(closure));
    }

    pub(super) fn make_closure(
        &mut self,
        frame: &CodeFrame,
        proto: &Proto,
        shared: &mut SharedState,
    ) -> Result<()> {
        let captured = capture(&mut self.stack, frame, &proto.captures);
        shared.meter.note(96 + 16 * captured.len());
        let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
        shared.limits.check_depth(closure.shape().depth())?;
        self.stack.push(Value::Closure(Arc::new(closure)));
        Ok(())
    }

    /// Creates functions that refer to each other and stores them in consecutive slots.
    pub(super) fn make_group(
        &mut self,
        frame: &CodeFrame,
        proto: &Proto,
        first: u16,
        shared: &mut SharedState,
    ) -> Result<()> {
        let captured = capture(&mut self.stack, frame, &proto.captures);
        let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
        shared.limits.check_depth(closure.shape().depth())?;
        for member in 0..proto.code.functions.len() {
            if member > 0 {
                self.strand.stamp();
            }
            shared.meter.note(96);
            let sibling = Arc::new(closure.sibling(member as u32));
            self.stack[frame.base + usize::from(first) + member] = Value::Closure(sibling);
        }
        Ok(())
    }

    pub(super) fn make_lazy(&mut self, frame: &CodeFrame, proto: &Proto, shared: &mut SharedState) {
        let captured = capture(&mut self.stack, frame, &proto.captures);
        shared.meter.note(96 + 16 * captured.len());
        let closure = Closure::new(proto.code.clone(), 0, captured, self.strand.stamp());
        let thunk = Thunk::Call(Value::Closure(Arc::new(closure)));
        self.stack.push(shared.cell(thunk, self.strand.id));
    }

    pub(super) fn make_vector(&mut self, count: usize, shared: &mut SharedState) -> Result<()> {
        let items = self.stack.split_off(self.stack.len() - count);
        shared.meter.note(64 + 16 * items.len());
        let vector = Vector::from(items);
        shared.limits.check_depth(vector.shape().depth())?;
        self.stack.push(Value::Vector(vector));
        Ok(())
    }

    pub(super) fn make_map(&mut self, count: usize, shared: &mut SharedState) -> InstructionResult {
        let floor = self.stack.len() - count;
        after(super::super::realise::pending(&self.stack[floor..], Realise::Deep, shared, true)?)?;
        charge_keys(&self.stack[floor..], shared)?;
        shared.meter.note(64 + 64 * count);
        let mut map = Map::new();
        let mut items = self.stack.drain(floor..);
        let mut duplicate = false;
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            duplicate |= map.get_exact(&key).is_some();
            map.insert(key, value);
        }
        drop(items);
        if duplicate {
            return Err(twice("map", "key").into());
        }
        shared.meter.pay()?;
        shared.limits.check_depth(map.shape().depth())?;
        self.stack.push(Value::Map(map));
        Ok(())
    }

    pub(super) fn make_set(&mut self, count: usize, shared: &mut SharedState) -> InstructionResult {
        let floor = self.stack.len() - count;
        after(super::super::realise::pending(&self.stack[floor..], Realise::Deep, shared, false)?)?;
        charge_keys(&self.stack[floor..], shared)?;
        shared.meter.note(64 + 32 * count);
        let mut set = Set::new();
        let mut duplicate = false;
        for item in self.stack.drain(floor..) {
            duplicate |= !set.insert(item);
        }
        if duplicate {
            return Err(twice("set", "item").into());
        }
        shared.meter.pay()?;
        shared.limits.check_depth(set.shape().depth())?;
        self.stack.push(Value::Set(set));
        Ok(())
    }
}

#[cold]
fn twice(literal: &str, part: &str) -> Error {
    Error::argument(format!("a {literal} literal has the same {part} twice"))
}

/// Collects the values that a closure captures.
fn capture(stack: &mut [Value], frame: &CodeFrame, captures: &[Capture]) -> Arc<[Value]> {
    captures
        .iter()
        .map(|capture| match *capture {
            Capture::Local(slot) => stack[frame.base + usize::from(slot)].clone(),
            Capture::TakeLocal(slot) => std::mem::take(&mut stack[frame.base + usize::from(slot)]),
            Capture::Captured(index) => frame.closure.captured()[usize::from(index)].clone(),
            Capture::Sibling(member) => Value::Closure(Arc::new(frame.closure.sibling(u32::from(member)))),
        })
        .collect()
}
