//! One turn of a thunk: it requests a call, yields an item, or ends.

use std::sync::Arc;

use crate::error::Result;
use crate::value::{Cursor, CursorStep, Each, LazyCell, List, Thunk, Value};

/// Arguments of a call.
pub(super) enum Arguments {
    None,
    One(Value),
    Two(Value, Value),
    Many(Vec<Value>),
}

impl Arguments {
    /// Pushes the arguments on the stack and returns their number.
    pub(super) fn push(self, stack: &mut Vec<Value>) -> usize {
        let before = stack.len();
        match self {
            Arguments::None => {}
            Arguments::One(a) => stack.push(a),
            Arguments::Two(a, b) => stack.extend([a, b]),
            Arguments::Many(arguments) => stack.extend(arguments),
        }
        stack.len() - before
    }
}

/// The result of a turn.
pub(super) enum Turn {
    Call(Arguments),
    Realise(Arc<LazyCell>),
    /// An item is ready, and there may be more.
    Item(Value),
    /// The sequence ends here.
    End,
    /// The cell becomes this sequence.
    Become(Value),
    /// No item yet.
    Again,
}

impl From<CursorStep> for Turn {
    fn from(step: CursorStep) -> Self {
        match step {
            CursorStep::Item(item) => Turn::Item(item),
            CursorStep::End => Turn::End,
            CursorStep::Blocked(cell) => Turn::Realise(cell),
        }
    }
}

/// The item whose function is being called. It is needed when the function keeps it or fails.
#[derive(Default)]
pub(super) enum Current {
    #[default]
    None,
    Held(Value),
    /// The next item of the cursor, which moves past it after the call.
    Next,
}

impl Current {
    /// Returns the next item of a cursor, and where it is during the call.
    pub(super) fn begin(source: &mut Cursor) -> std::result::Result<(Value, Self), CursorStep> {
        match source.peek(0) {
            Some(item) => Ok((item.clone(), Current::Next)),
            None => match source.next() {
                CursorStep::Item(item) => Ok((item.clone(), Current::Held(item))),
                step => Err(step),
            },
        }
    }

    /// The item itself.
    #[inline]
    pub(super) fn item(&self, source: &Cursor) -> Value {
        match self {
            Current::None => Value::Nil,
            Current::Held(item) => item.clone(),
            Current::Next => source.peek(0).cloned().unwrap_or_default(),
        }
    }
}

/// Returns an item to the front of a cursor.
fn return_item(current: Current, source: &mut Cursor) {
    match current {
        Current::None | Current::Next => {}
        Current::Held(item) => {
            let rest = std::mem::replace(source, Cursor::End).into_value();
            *source = Cursor::List(List::cons(item, rest));
        }
    }
}

impl Thunk {
    /// Returns whether no more items can follow, known without reading a cell.
    pub(super) fn is_spent(&self) -> bool {
        match self {
            Thunk::Each { source, .. } => source.left() == Some(0),
            Thunk::Take { count, source } => *count == 0 || source.left() == Some(0),
            Thunk::Repeat { count, .. } => *count == 0,
            Thunk::Concat { current, sources } => current.left() == Some(0) && sources.left() == Some(0),
            _ => false,
        }
    }

    /// Returns an upper bound of the number of remaining items; 0 if none is known.
    pub(super) fn left(&self) -> usize {
        match self {
            Thunk::Each { each: Each::Map | Each::Filter(_), source, .. } => source.left().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the thunk with the failed item restored, so that it is retried.
    pub(super) fn with_current(mut self, current: Current) -> Thunk {
        if matches!(current, Current::None) {
            return self;
        }
        match &mut self {
            Thunk::Each { each, source, .. } => {
                if let Each::MapIndexed(index) = each {
                    *index -= 1;
                }
                return_item(current, source);
            }
            Thunk::MapMany { sources, .. } => {
                if let Current::Held(Value::Vector(items)) = current {
                    let items = items.into_items().into_iter();
                    items.zip(sources).for_each(|(item, source)| return_item(Current::Held(item), source));
                }
            }
            _ => {}
        }
        self
    }

    /// Takes one turn. `current` holds the item whose function is being called.
    pub(super) fn turn(&mut self, current: &mut Current, incoming: Option<Value>) -> Result<Turn> {
        Ok(match self {
            Thunk::Call(_) => match incoming {
                None => Turn::Call(Arguments::None),
                Some(value) => match to_sequence(value)? {
                    Some(value) => Turn::Become(value),
                    None => Turn::End,
                },
            },
            Thunk::Each { each, source, .. } => match incoming {
                Some(result) => {
                    let current = std::mem::take(current);
                    let kept = match *each {
                        Each::Map | Each::MapIndexed(_) => Some(result),
                        Each::Keep => Some(result).filter(|result| !result.is_nil()),
                        Each::TakeWhile if !result.is_truthy() => {
                            *source = Cursor::End;
                            return Ok(Turn::End);
                        }
                        Each::Filter(wanted) if result.is_truthy() != wanted => None,
                        Each::Filter(_) | Each::TakeWhile => Some(current.item(source)),
                    };
                    if matches!(current, Current::Next) {
                        source.advance();
                    }
                    kept.map_or(Turn::Again, Turn::Item)
                }
                None => match Current::begin(source) {
                    Ok((item, now)) => {
                        *current = now;
                        Turn::Call(match each {
                            Each::MapIndexed(index) => {
                                *index += 1;
                                Arguments::Two(Value::Integer(*index - 1), item)
                            }
                            _ => Arguments::One(item),
                        })
                    }
                    Err(step) => step.into(),
                },
            },
            Thunk::MapMany { sources, .. } => match incoming {
                Some(value) => {
                    *current = Current::None;
                    Turn::Item(value)
                }
                None => {
                    // All sources must have an item before any of them advances.
                    let mut moved = sources.clone();
                    let mut items = Vec::with_capacity(moved.len());
                    for source in &mut moved {
                        match source.next() {
                            CursorStep::Item(item) => items.push(item),
                            CursorStep::End => return Ok(Turn::End),
                            CursorStep::Blocked(cell) => return Ok(Turn::Realise(cell)),
                        }
                    }
                    *sources = moved;
                    *current = Current::Held(Value::vector(items.clone()));
                    Turn::Call(Arguments::Many(items))
                }
            },
            Thunk::Take { count, source } => {
                if *count == 0 {
                    return Ok(Turn::End);
                }
                let step = source.next();
                if matches!(step, CursorStep::Item(_)) {
                    *count -= 1;
                }
                step.into()
            }
            Thunk::Concat { current: cursor, sources } => match cursor.next() {
                CursorStep::End => match sources.next() {
                    CursorStep::Item(source) => match Cursor::new(&source) {
                        Some(next) => {
                            *cursor = next;
                            Turn::Again
                        }
                        None => return Err(crate::library::type_error("concat", "a sequence", &source)),
                    },
                    step => step.into(),
                },
                step => step.into(),
            },
            Thunk::Iterate { value, .. } => match incoming {
                // The first item is given; every other is the function applied to the previous one.
                None => Turn::Call(Arguments::One(value.clone())),
                Some(next) => {
                    *value = next.clone();
                    Turn::Item(next)
                }
            },
            Thunk::Repeat { value, count } => {
                if *count == 0 {
                    return Ok(Turn::End);
                }
                if *count != u64::MAX {
                    *count -= 1;
                }
                Turn::Item(value.clone())
            }
            Thunk::Cycle { all, source } => match source.next() {
                CursorStep::End => {
                    *source = Cursor::new(all).unwrap_or(Cursor::End);
                    source.next().into()
                }
                step => step.into(),
            },
        })
    }
}

/// Converts a value to the contents of a lazy cell: a sequence, or `None` if it is empty.
fn to_sequence(value: Value) -> Result<Option<Value>> {
    Ok(match value {
        Value::Nil => None,
        Value::Lazy(_) | Value::Sequence(_) => Some(value),
        Value::List(list) => (!list.is_empty()).then_some(Value::List(list)),
        other => match Cursor::new(&other) {
            Some(cursor) => Some(cursor.into_value()).filter(|value| !value.is_nil()),
            None => return Err(crate::library::type_error("lazy-seq", "a sequence", &other)),
        },
    })
}
