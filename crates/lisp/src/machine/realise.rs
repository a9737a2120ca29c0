//! Realising lazy cells before they are read.
//!
//! One frame per cell runs the thunk; other frames walk a sequence or a whole value and realise each pending
//! cell. All of them can be suspended, because the function of a cell may call a tool.

use std::sync::Arc;

use super::fiber::Strand;
use super::shared::SharedState;
use super::work::{Host, Step, Work};
use crate::error::{Error, Result};
use crate::library::Realise;
use crate::value::{Cursor, CursorStep, LazyCell, Value};

/// Returns the frame that realises a cell.
pub(super) fn start(cell: Arc<LazyCell>, strand: &mut Strand) -> Result<Box<dyn Work>> {
    // The effects of a cell from outside of this branch would happen in whichever branch comes first.
    let foreign = strand.ancestors.contains(&cell.creator());
    match cell.take_thunk() {
        Some(thunk) => {
            if foreign {
                strand.foreign += 1;
            }
            Ok(super::thunks::run(cell, thunk, foreign))
        }
        None if cell.is_realised() => Ok(Box::new(NoopFrame)),
        None => Err(Error::argument("a lazy sequence depends on itself")),
    }
}

/// A frame that has nothing to do.
struct NoopFrame;

impl Work for NoopFrame {
    fn step(&mut self, _: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        Ok(Step::Retry)
    }

    fn each(&self, _: &mut dyn FnMut(&Value)) {}
}

/// Returns the frame that realises values to the required extent, or `None` if they already are. With
/// `keys_only` only every other value counts.
pub(super) fn pending(
    values: &[Value],
    wanted: Realise,
    shared: &mut SharedState,
    keys_only: bool,
) -> Result<Option<Box<dyn Work>>> {
    let step = if keys_only { 2 } else { 1 };
    for value in values.iter().step_by(step) {
        if !value.may_hold_lazy() {
            continue;
        }
        match (wanted, value) {
            (Realise::Not | Realise::Element | Realise::Elements, _) => {}
            // A finite range has nothing to realise, and its length is known.
            (Realise::Spine | Realise::Deep, Value::Sequence(sequence)) if sequence.is_finite_range() => {
                shared.limits.check_collection(sequence.count().unwrap_or(usize::MAX))?;
            }
            (Realise::Next, Value::Lazy(cell)) => {
                if !cell.is_realised() {
                    return Ok(Some(Box::new(RealiseNext(cell.clone()))));
                }
            }
            (Realise::Next, _) => {}
            (Realise::Spine, Value::Lazy(_) | Value::List(_) | Value::Sequence(_)) => {
                let Some(cursor) = Cursor::new(value) else { continue };
                let mut walk = SpineWalk { cursor, count: 0 };
                if walk.advance(shared)?.is_some() {
                    return Ok(Some(Box::new(walk)));
                }
            }
            (Realise::Spine, _) => {}
            (Realise::Deep, value) => {
                let mut walk = DeepWalk::new(value, Functions::Opaque);
                if walk.advance(shared)?.is_some() {
                    return Ok(Some(Box::new(walk)));
                }
            }
        }
    }
    Ok(None)
}

struct RealiseNext(Arc<LazyCell>);

impl Work for RealiseNext {
    fn step(&mut self, _: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        Ok(if self.0.is_realised() { Step::Retry } else { Step::Realise(self.0.clone()) })
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&Value::Lazy(self.0.clone()));
    }
}

/// Moves a cursor past the remaining items of the vector that it is in, and counts them. Ready items need not be
/// visited one by one, except to find the one that exceeds the limit.
fn skip_block(cursor: &mut Cursor, count: &mut usize, shared: &mut SharedState) -> Result<()> {
    if let Cursor::Items(items, at, _) = cursor {
        let left = items.len().saturating_sub(*at);
        if *count + left <= shared.limits.collection_size {
            shared.meter.work(left as u64)?;
            *count += left;
            *at = items.len();
        }
    }
    Ok(())
}

/// A walk along a sequence.
struct SpineWalk {
    cursor: Cursor,
    count: usize,
}

impl SpineWalk {
    /// Advances to the next pending cell, if there is one.
    fn advance(&mut self, shared: &mut SharedState) -> Result<Option<Arc<LazyCell>>> {
        loop {
            skip_block(&mut self.cursor, &mut self.count, shared)?;
            match self.cursor.next() {
                CursorStep::Item(_) => {
                    self.count += 1;
                    shared.meter.work(1)?;
                    shared.limits.check_collection(self.count)?;
                }
                CursorStep::End => return Ok(None),
                CursorStep::Blocked(cell) => return Ok(Some(cell)),
            }
        }
    }
}

impl Work for SpineWalk {
    fn step(&mut self, host: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        Ok(self.advance(host.shared)?.map_or(Step::Retry, Step::Realise))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        self.cursor.each(visit);
    }
}

/// Selects if a walk visits the captured values of functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Functions {
    Opaque,
    Entered,
}

/// A walk over everything inside a value.
pub(super) struct DeepWalk {
    stack: Vec<Cursor>,
    functions: Functions,
    /// Visited items of the outermost sequence.
    count: usize,
}

impl DeepWalk {
    pub(super) fn new(value: &Value, functions: Functions) -> Self {
        let mut walk = Self { stack: Vec::new(), functions, count: 0 };
        walk.enter(value);
        walk
    }

    fn enter(&mut self, value: &Value) {
        match value {
            Value::Closure(closure) => {
                if self.functions == Functions::Entered {
                    let captured = crate::value::Vector::from(closure.captured().to_vec());
                    self.stack.push(Cursor::Items(captured, 0, Value::Nil));
                }
            }
            Value::Exception(exception) => {
                let parts = vec![exception.data().clone(), exception.cause().clone()];
                self.stack.push(Cursor::Items(crate::value::Vector::from(parts), 0, Value::Nil));
            }
            Value::Reduced(inner) => self.enter(inner),
            other => self.stack.extend(Cursor::new(other)),
        }
    }

    /// Advances to the next pending cell, if there is one.
    pub(super) fn advance(&mut self, shared: &mut SharedState) -> Result<Option<Arc<LazyCell>>> {
        loop {
            let depth = self.stack.len();
            let Some(cursor) = self.stack.last_mut() else { return Ok(None) };
            if depth == 1 && matches!(cursor, Cursor::Items(items, ..) if !items.shape().may_hold_lazy()) {
                skip_block(cursor, &mut self.count, shared)?;
            }
            match cursor.next() {
                CursorStep::Item(item) => {
                    shared.meter.work(1)?;
                    if depth == 1 {
                        self.count += 1;
                        shared.limits.check_collection(self.count)?;
                    }
                    if item.may_hold_lazy() {
                        // The entry of a map is a level of the walk but not of the value, so two levels count
                        // as one.
                        shared.limits.check_depth(u32::try_from(depth / 2).unwrap_or(u32::MAX))?;
                        self.enter(&item);
                    }
                }
                CursorStep::End => {
                    self.stack.pop();
                }
                CursorStep::Blocked(cell) => return Ok(Some(cell)),
            }
        }
    }
}

impl Work for DeepWalk {
    fn step(&mut self, host: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        Ok(self.advance(host.shared)?.map_or(Step::Retry, Step::Realise))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        self.stack.iter().for_each(|cursor| cursor.each(visit));
    }
}
