//! Sorting in the order of `compare`.
//!
//! This is our own merge sort: `compare` may refuse a pair, which ends the sort, and it treats NaN as equal
//! to every number, which makes the standard library's sort panic. What is moved are the positions of the
//! keys, and integers, the most frequent keys, are moved with them and compared in place. The comparisons
//! that are made, and so the fuel, do not depend on that.

use std::cmp::Ordering;

use crate::effort::{self, ITEM, touch};
use crate::error::Result;
use crate::library::CallContext;
use crate::value::{Value, compare};

/// The most items that are sorted by insertion.
const SHORT: usize = 12;

/// Returns the positions of keys in the order of `compare`, those of equal keys as they are. Fails with the
/// first pair that does not compare.
pub(super) fn sort_positions(context: &mut CallContext<'_>, keys: &[Value]) -> Result<Vec<usize>> {
    context.work(keys.len())?;
    if let Some(integers) = integers(keys) {
        let mut pairs: Vec<(i64, usize)> = integers.into_iter().zip(0..).collect();
        merge_sort(&mut pairs, |(a, _), (b, _)| Ok(a > b))?;
        return Ok(pairs.into_iter().map(|(_, at)| at).collect());
    }
    let mut positions: Vec<usize> = (0..keys.len()).collect();
    merge_sort(&mut positions, |a, b| Ok(compare(&keys[*a], &keys[*b])? == Ordering::Greater))?;
    Ok(positions)
}

/// Returns the values if all of them are integers of 64 bits.
pub(super) fn integers(values: &[Value]) -> Option<Vec<i64>> {
    let integer = |value: &Value| match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    };
    values.iter().map(integer).collect()
}

/// Sorts stably. Fails with the first pair that does not compare.
fn merge_sort<T: Copy>(items: &mut Vec<T>, is_after: impl Fn(&T, &T) -> Result<bool>) -> Result<()> {
    let is_after = |a: &T, b: &T| -> Result<bool> {
        effort::check(touch(2 * ITEM))?;
        is_after(a, b)
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
                merged.push(items[*next]);
                *next += 1;
            }
            merged.extend_from_slice(&items[left..middle]);
            merged.extend_from_slice(&items[right..end]);
        }
        std::mem::swap(items, &mut merged);
        merged.clear();
        width *= 2;
    }
    Ok(())
}
