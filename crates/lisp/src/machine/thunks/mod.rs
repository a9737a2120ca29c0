//! Running the thunk of a lazy cell.
//!
//! If the function is known to be pure, a chunk of items is computed at once. A program cannot observe this,
//! because an error of a later item is deferred. Otherwise each cell has one item.

mod turn;

use std::sync::Arc;

use turn::{Arguments, Current, Turn};

use super::natives::call_in_place;
use super::work::{Host, Step, Work};
use crate::error::{Error, Result};
use crate::library::Effects;
use crate::value::{Cursor, Each, LazyCell, List, Sequence, Thunk, Value, Vector};

/// The number of items in a chunk.
const CHUNK: usize = 64;

/// Returns the frame that runs a thunk.
pub(super) fn run(cell: Arc<LazyCell>, thunk: Box<Thunk>, foreign: bool) -> Box<dyn Work> {
    let room = room(&thunk);
    let items = Vec::with_capacity(room.min(thunk.left()));
    Box::new(RunThunk {
        cell,
        others: Vec::new(),
        thunk: Some(thunk),
        foreign,
        room,
        items,
        current: Current::None,
    })
}

/// Returns the most items that the cell of a thunk may get at once.
fn room(thunk: &Thunk) -> usize {
    let chunked = match thunk {
        Thunk::Each { function, .. } | Thunk::MapMany { function, .. } => is_pure(function),
        // These call nothing: they take ready items and stop before a pending cell.
        Thunk::Take { .. } | Thunk::Concat { .. } | Thunk::Repeat { .. } | Thunk::Cycle { .. } => true,
        Thunk::Call(_) | Thunk::Iterate { .. } => false,
    };
    if chunked { CHUNK } else { 1 }
}

/// Returns whether calling a value is known to be pure.
pub(super) fn is_pure(function: &Value) -> bool {
    match function {
        Value::Closure(closure) => closure.function().is_pure(),
        Value::Native(native) => native.effects == Effects::Pure,
        Value::Keyword(_) | Value::Map(_) | Value::Set(_) | Value::Vector(_) | Value::Symbol(_) => true,
        _ => false,
    }
}

struct RunThunk {
    cell: Arc<LazyCell>,
    /// Cells whose function returned this cell, and which will get the same contents.
    others: Vec<Arc<LazyCell>>,
    /// The rest of the work; `None` once the cell is realised.
    thunk: Option<Box<Thunk>>,
    foreign: bool,
    /// The most items that go into this cell.
    room: usize,
    items: Vec<Value>,
    /// The item whose predicate or function is being called.
    current: Current,
}

impl RunThunk {
    /// Realises the cell with the items so far and a rest.
    fn finish(&mut self, host: &mut Host<'_>, rest: Value) -> Step {
        if self.foreign {
            host.strand.foreign -= 1;
            self.foreign = false;
        }
        let items = std::mem::take(&mut self.items);
        self.realise(sequence(items, rest));
        self.thunk = None;
        Step::Retry
    }

    /// Takes items as long as they are ready and the function needs no frame for them. It charges what the same
    /// turns cost; returns what to do instead of the next one, if that is known.
    fn take_ready_items(&mut self, host: &mut Host<'_>) -> Result<Option<Step>> {
        let Some(Thunk::Each { each, function, source }) = self.thunk.as_deref_mut() else { return Ok(None) };
        if matches!(each, Each::MapIndexed(_) | Each::TakeWhile) {
            return Ok(None);
        }
        while let Some(item) = source.peek(0) {
            host.shared.meter.work(1)?;
            let Some(result) = call_in_place(function, std::slice::from_ref(item), host) else {
                self.current = Current::Next;
                return Ok(Some(host.call_one(item.clone())));
            };
            let result = result?;
            host.shared.meter.work(1)?;
            let kept = match each {
                Each::Filter(wanted) => (result.is_truthy() == *wanted).then(|| item.clone()),
                Each::Keep if result.is_nil() => None,
                _ => Some(result),
            };
            source.advance();
            if let Some(kept) = kept {
                host.shared.meter.note(48);
                self.items.push(kept);
                if self.items.len() >= self.room {
                    return Ok(Some(self.finish_with_rest(host)));
                }
            }
        }
        Ok(None)
    }

    fn realise(&mut self, value: Value) {
        for other in self.others.drain(..) {
            other.realise(value.clone());
        }
        self.cell.realise(value);
    }

    /// Continues with the thunk of a cell that this one is to become, so that a long chain of them needs no
    /// stack.
    fn take_over(&mut self, cell: Arc<LazyCell>, host: &mut Host<'_>) -> Result<()> {
        let Some(thunk) = cell.take_thunk() else {
            return Err(Error::argument("a lazy sequence depends on itself"));
        };
        if !self.foreign && host.strand.ancestors.contains(&cell.creator()) {
            host.strand.foreign += 1;
            self.foreign = true;
        }
        let before = std::mem::replace(&mut self.cell, cell);
        // A cell without another owner needs no contents.
        if Arc::strong_count(&before) > 1 {
            host.shared.meter.note(16);
            self.others.push(before);
        }
        self.room = room(&thunk);
        self.thunk = Some(thunk);
        self.current = Current::None;
        Ok(())
    }

    /// Realises the cell with the items so far and a lazy rest.
    fn finish_with_rest(&mut self, host: &mut Host<'_>) -> Step {
        let rest = match self.thunk.take() {
            Some(thunk) if !thunk.is_spent() => host.shared.cell(*thunk, self.cell.creator()),
            _ => Value::Nil,
        };
        self.finish(host, rest)
    }
}

fn sequence(mut items: Vec<Value>, rest: Value) -> Value {
    match items.len() {
        0 => rest,
        1 => Value::List(List::cons(items.remove(0), rest)),
        length => {
            if items.capacity() > 2 * length {
                items.shrink_to_fit();
            }
            Sequence::chunk(Vector::from(items), 0, rest).map_or(Value::Nil, Value::Sequence)
        }
    }
}

impl Work for RunThunk {
    fn step(&mut self, host: &mut Host<'_>, mut incoming: Option<Value>) -> Result<Step> {
        loop {
            if incoming.is_none()
                && let Some(step) = self.take_ready_items(host)?
            {
                return Ok(step);
            }
            let Some(thunk) = &mut self.thunk else { return Ok(Step::Retry) };
            host.shared.meter.work(1)?;
            let first = self.items.is_empty();
            match thunk.turn(&mut self.current, incoming.take())? {
                Turn::Call(arguments) => {
                    if let (Arguments::One(argument), Some(function)) = (&arguments, thunk.function())
                        && let Some(result) = call_in_place(function, std::slice::from_ref(argument), host)
                    {
                        incoming = Some(result?);
                        continue;
                    }
                    host.begin_call();
                    return Ok(Step::Repeat(arguments.push(host.stack)));
                }
                Turn::Realise(cell) if first => return Ok(Step::Realise(cell)),
                // The next item is not ready: it belongs to the next cell.
                Turn::Realise(_) => return Ok(self.finish_with_rest(host)),
                Turn::Item(item) => {
                    host.shared.meter.note(48);
                    self.items.push(item);
                    if self.items.len() >= self.room {
                        return Ok(self.finish_with_rest(host));
                    }
                }
                Turn::End => return Ok(self.finish(host, Value::Nil)),
                Turn::Become(Value::Lazy(cell)) => match cell.realised() {
                    Some(value) => return Ok(self.finish(host, value)),
                    None => self.take_over(cell, host)?,
                },
                Turn::Become(value) => return Ok(self.finish(host, value)),
                Turn::Again => {}
            }
        }
    }

    fn again(&mut self, host: &mut Host<'_>, result: &mut Value, wanted: usize) -> bool {
        /// A step, the turn that takes the result and the turn that takes the next item.
        const FUEL: u64 = 3;
        if wanted != 1 || !host.shared.meter.has_fuel(FUEL) {
            return false;
        }
        let Some(thunk) = &mut self.thunk else { return false };
        // A full cell, the end, and a cell that must be realised all require a step.
        let has_room = self.items.len() + 1 < self.room;
        let Thunk::Each { each, source, .. } = &mut **thunk else { return false };
        let (keeps, is_filter) = match *each {
            Each::Map => (true, false),
            Each::Filter(wanted) => (result.is_truthy() == wanted, true),
            Each::Keep => (!result.is_nil(), false),
            Each::MapIndexed(_) | Each::TakeWhile => return false,
        };
        if keeps && !has_room {
            return false;
        }
        let is_next = matches!(self.current, Current::Next);
        let begun = match source.peek(usize::from(is_next)) {
            Some(item) => Ok((item.clone(), Current::Next)),
            None if is_next => return false,
            None => Current::begin(source),
        };
        let Ok((item, next)) = begun else { return false };
        host.shared.meter.spend(FUEL);
        let current = std::mem::replace(&mut self.current, next);
        if keeps {
            host.shared.meter.note(48);
            self.items.push(if is_filter { current.item(source) } else { std::mem::take(result) });
        }
        if is_next {
            source.advance();
        }
        host.stack.push(item);
        true
    }

    fn recover(&mut self, error: &Error) -> bool {
        // The items before the failed one are valid; a reader of the failed one will get the error again.
        if !self.items.is_empty() && super::unwind::is_catchable(error) && self.room > 1 {
            let Some(thunk) = self.thunk.take() else { return false };
            let restored = thunk.with_current(std::mem::take(&mut self.current));
            let rest = Value::Lazy(LazyCell::new(restored, self.cell.creator()));
            let items = std::mem::take(&mut self.items);
            self.realise(sequence(items, rest));
            return true;
        }
        for other in self.others.drain(..) {
            let current = Cursor::Lazy(self.cell.clone());
            other.restore_thunk(Box::new(Thunk::Concat { current, sources: Cursor::End }));
        }
        if let Some(thunk) = self.thunk.take() {
            self.cell.restore_thunk(Box::new(thunk.with_current(std::mem::take(&mut self.current))));
        }
        false
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&Value::Lazy(self.cell.clone()));
        self.items.iter().for_each(&mut *visit);
        if let Current::Held(current) = &self.current {
            visit(current);
        }
        if let Some(thunk) = &self.thunk {
            thunk.each(visit);
        }
    }

    fn function(&self) -> Option<&Value> {
        self.thunk.as_ref().and_then(|thunk| thunk.function())
    }

    fn leaves_foreign(&self) -> bool {
        self.foreign
    }
}
