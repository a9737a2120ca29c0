//! Sorting by a function of the program: a merge sort whose comparisons are calls.

use super::super::work::{Host, Step, Work};
use super::take;
use crate::error::Result;
use crate::library::{Arity, Effects, Native, Realise, items, type_error};
use crate::value::{Sequence, Value, number};

const VALUES: &[Realise] = &[Realise::Not, Realise::Spine];

pub(crate) const NATIVES: &[Native] = &[
    // The arguments are a comparator, the items, and their sort keys.
    Native::frame("sort-with*", Arity::exactly(3), VALUES, Effects::Calls, |host, a| {
        let [comparator, values, keys] = take(a);
        if !matches!(comparator, Value::Closure(_) | Value::Native(_) | Value::Tool(_) | Value::Var(_)) {
            return Err(type_error("sort", "a function as comparator", &comparator));
        }
        let mut context = super::super::execute::frame_context("sort", host);
        let values = items(&mut context, "sort", &values)?;
        let keys = items(&mut context, "sort", &keys)?;
        let items: Vec<(Value, Value)> = keys.into_iter().zip(values).collect();
        let target = Vec::with_capacity(items.len());
        let sort = Sort { comparator, items, target, width: 1, start: 0, left: 0, right: 0, asked: false };
        Ok(Step::Push(Box::new(sort)))
    }),
];

/// A bottom-up merge sort: runs of `width` are merged pairwise into `target`, then the width doubles.
struct Sort {
    comparator: Value,
    items: Vec<(Value, Value)>,
    target: Vec<(Value, Value)>,
    width: usize,
    /// The start of the current pair of runs, and the number of items taken from each.
    start: usize,
    left: usize,
    right: usize,
    /// True while a comparison is pending.
    asked: bool,
}

impl Sort {
    /// Returns the bounds of the current two runs.
    fn runs(&self) -> (usize, usize, usize) {
        let length = self.items.len();
        let middle = (self.start + self.width).min(length);
        let end = (self.start + 2 * self.width).min(length);
        (self.start, middle, end)
    }

    fn take_left(&mut self) {
        let (start, ..) = self.runs();
        self.target.push(std::mem::take(&mut self.items[start + self.left]));
        self.left += 1;
    }

    fn take_right(&mut self) {
        let (_, middle, _) = self.runs();
        self.target.push(std::mem::take(&mut self.items[middle + self.right]));
        self.right += 1;
    }
}

impl Work for Sort {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        if let (true, Some(answer)) = (self.asked, incoming) {
            // Decides if the right item comes first. A number decides by its sign; any other answer means
            // "the first is before the second" if it is truthy.
            let right_first = match &answer {
                Value::Boolean(before) => *before,
                value if number::is_number(value) => number::sign(value) == Some(-1),
                Value::Nil => false,
                other => return Err(type_error("sort", "a number or a boolean from the comparator", other)),
            };
            self.asked = false;
            if right_first {
                self.take_right();
            } else {
                self.take_left();
            }
        }
        loop {
            host.shared.meter.work(1)?;
            if self.width >= self.items.len() {
                let sorted = std::mem::take(&mut self.items).into_iter().map(|(_, value)| value).collect();
                return Ok(Step::Return(Sequence::realised(sorted)));
            }
            let (start, middle, end) = self.runs();
            let (left, right) = (start + self.left, middle + self.right);
            if left < middle && right < end {
                self.asked = true;
                host.begin_call();
                host.stack.extend([self.items[right].0.clone(), self.items[left].0.clone()]);
                return Ok(Step::Repeat(2));
            }
            if left < middle {
                self.take_left();
            } else if right < end {
                self.take_right();
            } else {
                // Both runs are merged.
                self.start = end;
                (self.left, self.right) = (0, 0);
                if self.start >= self.items.len() {
                    std::mem::swap(&mut self.items, &mut self.target);
                    self.target.clear();
                    self.start = 0;
                    self.width *= 2;
                }
            }
        }
    }

    fn function(&self) -> Option<&Value> {
        Some(&self.comparator)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.comparator);
        for (key, value) in self.items.iter().chain(&self.target) {
            visit(key);
            visit(value);
        }
    }
}
