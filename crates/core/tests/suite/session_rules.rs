//! The rules of a session in a few lines, over plain vectors. `session_model` compares real sessions with
//! them.
//!
//! One event depends on other slices, fails in some states and logs the state that it saw, so that reducing
//! it again makes a difference. Numbers are few, so that equal ones occur.

/// An event, or a change that bypasses reducers.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Note(u32),
    Deed(u32),
    Total(u32),
    Line(u32),
    Knock(u32),
    SeedNotes(Vec<u32>),
    ClearNotes,
    ClearNotesWhere(u32),
    ClearLines,
}

/// The content of all slices.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Slices {
    pub(crate) notes: Vec<u32>,
    pub(crate) deeds: Vec<u32>,
    pub(crate) totals: Vec<u32>,
    pub(crate) lines: Vec<u32>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    Reducer,
    JournalOnlyGrows,
    Conflict,
    Mismatch,
}

#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) act: Act,
    pub(crate) notes_before: Vec<u32>,
    pub(crate) logged: Vec<u32>,
}

#[derive(Default)]
pub(crate) struct ModelDraft {
    pub(crate) base: Slices,
    pub(crate) slices: Slices,
    pub(crate) done: Vec<Done>,
}

#[derive(Clone)]
pub(crate) struct ModelSnapshot {
    pub(crate) slices: Slices,
    pub(crate) all: bool,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) slices: Slices,
}

impl Model {
    /// Applies an act to slices, and returns its log entries.
    pub(crate) fn act(slices: &mut Slices, act: &Act) -> Result<Vec<u32>, Refused> {
        let mut logged = Vec::new();
        match act {
            Act::Note(key) => {
                slices.notes.retain(|other| other % 10 != key % 10);
                slices.notes.push(*key);
            }
            Act::Deed(number) => logged.push(*number),
            Act::Total(number) => slices.totals.push(*number),
            Act::Line(number) => slices.lines.push(*number),
            Act::Knock(times) => {
                if *times == 0 && slices.lines.len() % 2 == 1 {
                    return Err(Refused::Reducer);
                }
                slices.notes.push(100 * times + slices.lines.len() as u32);
                logged.push(slices.notes.len() as u32);
            }
            Act::SeedNotes(keys) => slices.notes.clone_from(keys),
            Act::ClearNotes => slices.notes.clear(),
            Act::ClearNotesWhere(modulus) => slices.notes.retain(|key| key % modulus != 0),
            Act::ClearLines => return Err(Refused::JournalOnlyGrows),
        }
        slices.deeds.extend(&logged);
        Ok(logged)
    }

    /// Applies all changes, or none on failure.
    pub(crate) fn atomically(
        &mut self,
        act: impl FnOnce(&mut Slices) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut slices = self.slices.clone();
        act(&mut slices)?;
        self.slices = slices;
        Ok(())
    }

    pub(crate) fn commit(&mut self, draft: &ModelDraft) -> Result<(), Refused> {
        let changed = self.slices.notes != draft.base.notes;
        self.atomically(|slices| {
            for done in &draft.done {
                let stands = match &done.act {
                    Act::SeedNotes(_) | Act::ClearNotes => !changed,
                    // Even if it removed nothing in the draft: there may be something to remove now.
                    Act::ClearNotesWhere(_) => !changed && slices.notes == done.notes_before,
                    _ => true,
                };
                if !stands {
                    return Err(Refused::Conflict);
                }
                Self::act(slices, &done.act)?;
            }
            Ok(())
        })
    }

    pub(crate) fn go_back(&mut self, to: &ModelSnapshot, logs: bool, rewind: bool) -> Result<(), Refused> {
        let (now, then) = (&self.slices.lines, &to.slices.lines);
        let length = if rewind { then.len().min(now.len()) } else { then.len() };
        if (logs && !to.all) || (!now.is_empty() && now.get(..length) != then.get(..length)) {
            return Err(Refused::Mismatch);
        }
        let slices = &mut self.slices;
        slices.notes.clone_from(&to.slices.notes);
        slices.totals = if to.all { to.slices.totals.clone() } else { Vec::new() };
        if logs {
            slices.deeds.clone_from(&to.slices.deeds);
        }
        if rewind || slices.lines.is_empty() {
            slices.lines.clone_from(&to.slices.lines);
        }
        Ok(())
    }
}
