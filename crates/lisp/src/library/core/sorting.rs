//! Sorting in the order of `compare`.
//!
//! This is our own merge sort: `compare` may refuse a pair, which ends the sort, and it treats NaN as equal
//! to every number, which makes the standard library's sort panic.

use std::cmp::Ordering;

use crate::effort::{self, ITEM, touch};
use crate::error::Result;
use crate::library::CallContext;
use crate::value::{Value, compare};

/// The most items that are sorted by insertion.
const SHORT: usize = 12;

/// Sorts stably in the order of `compare`. Fails with the first pair that does not compare.
pub(super) fn sort_values<T: Default>(
    context: &mut CallContext<'_>,
    items: &mut Vec<T>,
    key: impl Fn(&T) -> &Value,
) -> Result<()> {
    context.work(items.len())?;
    let is_after = |a: &T, b: &T| -> Result<bool> {
        effort::check(touch(2 * ITEM))?;
        Ok(compare(key(a), key(b))? == Ordering::Greater)
    };
    let length = items.len();
    for start in (0..length).step_by(SHORT) {
        let run = &mut items[start..length.min(start + SHORT)];
        for end in 1..run.len() {
            let mut at = end;
            while at > 0 && is_after(&run[at - 1], &run[at])? {
                run.swap(at - 1, at);
                at -= 1;
            }
        }
    }
    let mut width = SHORT;
    let mut merged = Vec::with_capacity(if width < length { length } else { 0 });
    while width < length {
        for start in (0..length).step_by(2 * width) {
            let (middle, end) = (length.min(start + width), length.min(start + 2 * width));
            let (mut left, mut right) = (start, middle);
            // Runs that are already in order, as in a sorted list, need no further comparison.
            let in_order = middle == end || !is_after(&items[middle - 1], &items[middle])?;
            while left < middle && right < end && !in_order {
                let next = if is_after(&items[left], &items[right])? { &mut right } else { &mut left };
                merged.push(std::mem::take(&mut items[*next]));
                *next += 1;
            }
            merged.extend(items[left..middle].iter_mut().map(std::mem::take));
            merged.extend(items[right..end].iter_mut().map(std::mem::take));
        }
        std::mem::swap(items, &mut merged);
        merged.clear();
        width *= 2;
    }
    Ok(())
}
