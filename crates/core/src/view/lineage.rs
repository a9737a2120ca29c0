//! Visibility of records.
//!
//! After a rewind to a cut, the records that were visible at the cut are visible, and a new branch starts.
//! Nothing is deleted: the records between the cut and the rewind remain in the journal, and a later rewind
//! past it makes them visible again.

use std::ops::Range;

use crate::journal::{Branch, Position};
use crate::pack::packed_structs;

/// The rewinds of a journal, which determine the visibility of all records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// Position and target of each rewind, in the order of the journal.
    rewinds: Vec<(Position, Position)>,
}

packed_structs! {
    Lineage { rewinds }
}

impl FromIterator<(Position, Position)> for Lineage {
    /// Creates the lineage of a journal with these rewinds, in its order: the position of each, and its target.
    fn from_iter<I: IntoIterator<Item = (Position, Position)>>(rewinds: I) -> Self {
        Self { rewinds: rewinds.into_iter().collect() }
    }
}

impl Lineage {
    pub(super) fn add(&mut self, at: Position, to: Position) {
        self.rewinds.push((at, to));
    }

    /// Returns whether a journal of length `head` can have these rewinds.
    pub(super) fn fits(&self, head: Position) -> bool {
        let in_order = self.rewinds.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let possible = |(at, to): &(Position, Position)| Position::START < *to && to <= at && *at < head;
        in_order && self.rewinds.iter().all(possible)
    }

    /// Position and target of each rewind, in the order of the journal.
    pub fn rewinds(&self) -> &[(Position, Position)] {
        &self.rewinds
    }

    /// Returns the branch of the record at `position`. A rewind is the first record of its branch.
    pub fn branch_of(&self, position: Position) -> Branch {
        Branch(self.rewinds.partition_point(|(at, _)| *at <= position) as u64)
    }

    /// Returns the ranges of records that are visible at the cut `at`, in the order of the journal. A rewind
    /// is itself visible on the branch that it starts.
    pub fn visible(&self, at: Position) -> Vec<Range<Position>> {
        let (mut end, mut ranges) = (at, Vec::new());
        let mut rewinds = &self.rewinds[..];
        loop {
            rewinds = &rewinds[..rewinds.partition_point(|(rewind, _)| *rewind < end)];
            let Some((start, to)) = rewinds.last().copied() else { break };
            ranges.push(start..end);
            end = to;
        }
        ranges.push(Position::START..end);
        ranges.reverse();
        ranges.retain(|range| !range.is_empty());
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(lineage: &Lineage, at: u64) -> Vec<(u64, u64)> {
        let ranges = lineage.visible(Position::new(at));
        ranges.iter().map(|range| (range.start.number(), range.end.number())).collect()
    }

    fn lineage(rewinds: &[(u64, u64)]) -> Lineage {
        let mut lineage = Lineage::default();
        for &(at, to) in rewinds {
            lineage.add(Position::new(at), Position::new(to));
        }
        lineage
    }

    #[test]
    fn without_rewinds_all_is_visible() {
        assert_eq!(visible(&lineage(&[]), 7), [(0, 7)]);
        assert_eq!(visible(&lineage(&[]), 0), []);
    }

    #[test]
    fn a_rewind_hides_what_it_leaves_and_undoing_it_shows_it_again() {
        let lineage = lineage(&[(10, 5), (14, 10)]);
        assert_eq!(visible(&lineage, 10), [(0, 10)]);
        assert_eq!(visible(&lineage, 12), [(0, 5), (10, 12)]);
        assert_eq!(visible(&lineage, 16), [(0, 10), (14, 16)]);
        assert_eq!(lineage.branch_of(Position::new(9)), Branch(0));
        assert_eq!(lineage.branch_of(Position::new(10)), Branch(1));
        assert_eq!(lineage.branch_of(Position::new(15)), Branch(2));
    }

    #[test]
    fn rewinds_into_older_branches_follow_what_was_visible_there() {
        // To 3; then from there to 12, which is on the branch that started at 10.
        let lineage = lineage(&[(10, 3), (20, 12)]);
        assert_eq!(visible(&lineage, 25), [(0, 3), (10, 12), (20, 25)]);
    }
}
