//! Cuts in steps.
//!
//! A request that drops one more turn than the previous one begins differently, and cannot be cached. So the
//! number of dropped turns is rounded up: after a cut, several requests drop the same turns.

use std::ops::Range;

/// The number of dropped items out of `total`, if at least `least` must be dropped and `kept` may stay: a
/// multiple of a quarter of `kept`, but never the last item.
pub(crate) fn rounded_cut(total: usize, least: usize, kept: usize) -> usize {
    let step = (kept / 4).max(1);
    least.div_ceil(step).saturating_mul(step).min(total.saturating_sub(1))
}

/// The number of old items out of `total`, if the last `kept` are not old: a multiple of a quarter of `kept`,
/// but never the last item.
pub(crate) fn rounded_old(total: usize, kept: usize) -> usize {
    let step = (kept / 4).max(1);
    (total.saturating_sub(kept) / step * step).min(total.saturating_sub(1))
}

/// The first number of a range for which a monotonic condition holds, or the end.
pub(crate) fn first(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) { end = middle } else { start = middle + 1 }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_stay_for_some_steps_and_spare_the_last() {
        let cuts: Vec<usize> =
            (1..=14).map(|total: usize| rounded_cut(total, total.saturating_sub(8), 8)).collect();
        assert_eq!(cuts, [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 4, 4, 6, 6]);
        assert_eq!(rounded_cut(3, 3, 0), 2);
        assert_eq!(rounded_cut(0, 0, 8), 0);
    }

    #[test]
    fn what_must_stay_stays() {
        let old: Vec<usize> = (6..=14).map(|total| rounded_old(total, 8)).collect();
        assert_eq!(old, [0, 0, 0, 0, 2, 2, 4, 4, 6]);
        assert_eq!(rounded_old(3, 0), 2);
    }

    #[test]
    fn the_first_that_holds() {
        assert_eq!(first(0..10, |at| at >= 7), 7);
        assert_eq!(first(0..10, |_| false), 10);
        assert_eq!(first(0..0, |_| true), 0);
    }
}
