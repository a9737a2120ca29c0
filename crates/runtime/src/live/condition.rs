//! The condition of a live session, apart from its journal: whether it can be written, where its files are, and
//! whether it is driven.
//!
//! All of it is one value behind one lock, and changes only by the transitions below. A transition that is not
//! listed for a state leaves it as it is, so none of them can fail.
//!
//! | of | state | meaning |
//! |---|---|---|
//! | [`Soundness`] | `Sound` | Memory agrees with the store, and the session can be written. |
//! | | `Appending` | An append is in progress. If the async runtime ends now, it is not known whether the store has the batch. |
//! | | `AheadOfStore` | Memory has records that the store may not have. The session has to be opened again. |
//! | | `Poisoned` | Files or resources have the wrong state. A person has to decide. |
//! | [`FilesState`] | `Settled` | The files and resources are those of the journal. |
//! | | `Owed` | They may have to be restored to the state in the journal. |
//! | | `Lent` | A child session has them, and nothing else may use them. It has them until its call has ended, even while it waits. A debt from before remains. |
//! | [`Activity`] | `Unasked` | All records are held until the first mission. Nothing of the session is in the store. |
//! | | `Idle` | No evaluation is driven. |
//! | | `Driven` | An evaluation is driven, or the future that drove it was dropped. |
//!
//! | transition | from | to |
//! |---|---|---|
//! | [`begin_append`](LiveCondition::begin_append) | `Sound` | `Appending` |
//! | [`end_append`](LiveCondition::end_append) | `Appending` | `Sound` |
//! | [`fail_append`](LiveCondition::fail_append) | `Appending` | `AheadOfStore` |
//! | [`cut_off`](LiveCondition::cut_off) | any | `AheadOfStore` |
//! | [`poison`](LiveCondition::poison) | any | `Poisoned` |
//! | [`repair`](LiveCondition::repair) | `Poisoned` | `Sound` |
//! | [`mark_for_restore`](LiveCondition::mark_for_restore) | any | `Owed`: a rewind withdraws the child session that has the files |
//! | [`settle_files`](LiveCondition::settle_files) | `Owed`, `Lent` with a debt | `Settled`, `Lent` without one |
//! | [`lend_files`](LiveCondition::lend_files) | `Settled`, `Owed` | `Lent` without a debt, with one |
//! | [`reclaim_files`](LiveCondition::reclaim_files) | `Lent` without a debt, with one | `Settled`, `Owed` |
//! | [`hold_until_asked`](LiveCondition::hold_until_asked) | any | `Unasked` |
//! | [`mark_asked`](LiveCondition::mark_asked) | `Unasked` | `Idle` |
//! | [`start_driving`](LiveCondition::start_driving) | `Idle` | `Driven` |
//! | [`stop_driving`](LiveCondition::stop_driving) | `Driven` | `Idle` |
//!
//! The three parts are independent of each other. An append that ends does not make a session sound that was
//! poisoned or cut off since it began.

use std::collections::BTreeSet;

use backstitch_core::id::SessionId;

use crate::error::{Result, RuntimeError};

/// Whether a session can be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Soundness {
    #[default]
    Sound,
    Appending,
    AheadOfStore,
    Poisoned {
        reason: String,
    },
}

/// Where files and snapshotable resources are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FilesState {
    #[default]
    Settled,
    Owed,
    Lent {
        /// True only if a rewind was dropped while the call of the child session waited for the files.
        is_owed: bool,
    },
}

/// Whether a session is driven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Activity {
    Unasked,
    #[default]
    Idle,
    Driven,
}

/// Protection that a process can lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MissingProtection {
    /// Its sandbox is not enforced completely.
    Sandbox,
    /// It has no supervisor.
    Supervisor,
}

/// The condition of a live session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveCondition {
    soundness: Soundness,
    files: FilesState,
    activity: Activity,
    /// What the notes of this session say already.
    noted: BTreeSet<MissingProtection>,
}

impl LiveCondition {
    /// Fails if the session cannot be written.
    pub(super) fn check_sound(&self, session: SessionId) -> Result<()> {
        match &self.soundness {
            Soundness::Sound => Ok(()),
            Soundness::Appending | Soundness::AheadOfStore => Err(RuntimeError::AheadOfStore { session }),
            Soundness::Poisoned { reason } => Err(RuntimeError::Poisoned { session, reason: reason.clone() }),
        }
    }

    /// Marks the start of an append.
    pub(super) fn begin_append(&mut self) {
        if self.soundness == Soundness::Sound {
            self.soundness = Soundness::Appending;
        }
    }

    /// Marks the end of an append after which memory agrees with the store.
    pub(super) fn end_append(&mut self) {
        if self.soundness == Soundness::Appending {
            self.soundness = Soundness::Sound;
        }
    }

    /// Marks the failure of an append of records that were applied before.
    pub(super) fn fail_append(&mut self) {
        if self.soundness == Soundness::Appending {
            self.soundness = Soundness::AheadOfStore;
        }
    }

    /// Marks the end of the async runtime during a call, of which only the journal knows what it has left.
    pub(super) fn cut_off(&mut self) {
        self.soundness = Soundness::AheadOfStore;
    }

    /// Keeps the session from being written until a person decides.
    pub(super) fn poison(&mut self, reason: String) {
        self.soundness = Soundness::Poisoned { reason };
    }

    /// Ends a poisoning, by the decision of a person. Returns whether the session was poisoned.
    pub(crate) fn repair(&mut self) -> bool {
        let is_poisoned = matches!(self.soundness, Soundness::Poisoned { .. });
        if is_poisoned {
            self.soundness = Soundness::Sound;
        }
        is_poisoned
    }

    /// True if files and resources may have to be restored.
    pub(super) fn needs_restore(&self) -> bool {
        matches!(self.files, FilesState::Owed | FilesState::Lent { is_owed: true })
    }

    /// True if a child session has the files.
    pub(crate) fn has_lent_files(&self) -> bool {
        matches!(self.files, FilesState::Lent { .. })
    }

    /// Marks files and resources as those of another state than the journal's.
    pub(super) fn mark_for_restore(&mut self) {
        self.files = FilesState::Owed;
    }

    /// Marks files and resources as equal to the state in the journal.
    pub(crate) fn settle_files(&mut self) {
        self.files = match self.files {
            FilesState::Settled | FilesState::Owed => FilesState::Settled,
            FilesState::Lent { .. } => FilesState::Lent { is_owed: false },
        };
    }

    /// Gives the files to a child session.
    pub(crate) fn lend_files(&mut self) {
        self.files = FilesState::Lent { is_owed: self.needs_restore() };
    }

    /// Ends the use of the files by a child session.
    pub(crate) fn reclaim_files(&mut self) {
        self.files = if self.needs_restore() { FilesState::Owed } else { FilesState::Settled };
    }

    /// True if all records are held until the first mission.
    pub(super) fn is_unasked(&self) -> bool {
        self.activity == Activity::Unasked
    }

    /// Holds all records until the first mission.
    pub(super) fn hold_until_asked(&mut self) {
        self.activity = Activity::Unasked;
    }

    /// Ends the holding of records: the next commit contains the mission.
    pub(crate) fn mark_asked(&mut self) {
        if self.activity == Activity::Unasked {
            self.activity = Activity::Idle;
        }
    }

    /// Marks an evaluation as driven.
    pub(crate) fn start_driving(&mut self) {
        if self.activity == Activity::Idle {
            self.activity = Activity::Driven;
        }
    }

    /// Marks the session as not driven any more. Returns whether it was driven.
    pub(crate) fn stop_driving(&mut self) -> bool {
        let is_driven = self.activity == Activity::Driven;
        if is_driven {
            self.activity = Activity::Idle;
        }
        is_driven
    }

    /// Returns true the first time that a process of the session lacks this protection.
    pub(super) fn note_once(&mut self, missing: MissingProtection) -> bool {
        self.noted.insert(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Transition = (&'static str, fn(&mut LiveCondition));

    /// Applies each transition to each state of a part, and compares the results with the rows, which have
    /// one column per state. Nothing but that part may change.
    fn assert_table<S: Clone + PartialEq + std::fmt::Debug, const STATES: usize>(
        states: [S; STATES],
        part: fn(&mut LiveCondition) -> &mut S,
        rows: &[(Transition, [S; STATES])],
    ) {
        for ((name, transition), expected) in rows {
            for (from, to) in states.iter().zip(expected) {
                let mut condition = LiveCondition::default();
                *part(&mut condition) = from.clone();
                transition(&mut condition);
                assert_eq!(*part(&mut condition), *to, "{name} from {from:?}");
                *part(&mut condition) = part(&mut LiveCondition::default()).clone();
                assert_eq!(condition, LiveCondition::default(), "{name} from {from:?} changed another part");
            }
        }
    }

    #[test]
    fn only_a_sound_session_can_be_written_and_only_a_person_ends_a_poisoning() {
        use Soundness::{AheadOfStore as Ahead, Appending, Poisoned, Sound};
        let poisoned = || Poisoned { reason: "old".to_owned() };
        let again = || Poisoned { reason: "new".to_owned() };
        assert_table(
            [Sound, Appending, Ahead, poisoned()],
            |condition| &mut condition.soundness,
            &[
                (("begin", LiveCondition::begin_append), [Appending, Appending, Ahead, poisoned()]),
                (("end", LiveCondition::end_append), [Sound, Sound, Ahead, poisoned()]),
                (("fail", LiveCondition::fail_append), [Sound, Ahead, Ahead, poisoned()]),
                (("cut off", LiveCondition::cut_off), [Ahead, Ahead, Ahead, Ahead]),
                (("poison", |one| one.poison("new".to_owned())), [again(), again(), again(), again()]),
                (("repair", |one| _ = one.repair()), [Sound, Appending, Ahead, Sound]),
            ],
        );
        let session = "019b76da-a800-7000-8000-000000000001".parse().unwrap();
        let checked = |soundness: Soundness| {
            LiveCondition { soundness, ..LiveCondition::default() }.check_sound(session)
        };
        assert!(checked(Sound).is_ok());
        assert!(matches!(checked(Appending), Err(RuntimeError::AheadOfStore { .. })));
        assert!(matches!(checked(Ahead), Err(RuntimeError::AheadOfStore { .. })));
        assert!(matches!(checked(again()), Err(RuntimeError::Poisoned { reason, .. }) if reason == "new"));
        assert!(LiveCondition { soundness: poisoned(), ..LiveCondition::default() }.repair());
        assert!(!LiveCondition { soundness: Ahead, ..LiveCondition::default() }.repair());
    }

    #[test]
    fn a_debt_outlasts_a_loan_and_a_rewind_ends_the_loan() {
        use FilesState::{Lent, Owed, Settled};
        const LENT: FilesState = Lent { is_owed: false };
        const BOTH: FilesState = Lent { is_owed: true };
        assert_table(
            [Settled, Owed, LENT, BOTH],
            |condition| &mut condition.files,
            &[
                (("owe", LiveCondition::mark_for_restore), [Owed, Owed, Owed, Owed]),
                (("settle", LiveCondition::settle_files), [Settled, Settled, LENT, LENT]),
                (("lend", LiveCondition::lend_files), [LENT, BOTH, LENT, BOTH]),
                (("reclaim", LiveCondition::reclaim_files), [Settled, Owed, Settled, Owed]),
            ],
        );
        let questions = [Settled, Owed, LENT, BOTH].map(|files| {
            let condition = LiveCondition { files, ..LiveCondition::default() };
            (condition.needs_restore(), condition.has_lent_files())
        });
        assert_eq!(questions, [(false, false), (true, false), (false, true), (true, true)]);
    }

    #[test]
    fn a_session_that_was_not_asked_is_not_driven() {
        use Activity::{Driven, Idle, Unasked};
        assert_table(
            [Unasked, Idle, Driven],
            |condition| &mut condition.activity,
            &[
                (("hold", LiveCondition::hold_until_asked), [Unasked, Unasked, Unasked]),
                (("ask", LiveCondition::mark_asked), [Idle, Idle, Driven]),
                (("start", LiveCondition::start_driving), [Unasked, Driven, Driven]),
                (("stop", |one| _ = one.stop_driving()), [Unasked, Idle, Idle]),
            ],
        );
        let mut condition = LiveCondition::default();
        condition.start_driving();
        assert!(condition.stop_driving() && !condition.stop_driving());
    }

    #[test]
    fn each_gap_is_noted_once() {
        let mut condition = LiveCondition::default();
        assert!(condition.note_once(MissingProtection::Sandbox));
        assert!(condition.note_once(MissingProtection::Supervisor));
        assert!(!condition.note_once(MissingProtection::Sandbox));
        assert!(!condition.note_once(MissingProtection::Supervisor));
    }
}
