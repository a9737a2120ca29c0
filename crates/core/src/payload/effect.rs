//! Effect classes of calls, and the consequences of each.
//!
//! The classes differ only in the rows of one table. Code that decides by the class of a call asks the methods below, which
//! read that table, so a further class is a variant and a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect class of a call: its possible effect on the world outside of the session, and the recovery
/// after a crash. The classes are ordered by what they may change.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only reads. Runs again after a crash.
    Pure,
    /// Changes only session state and files of the workspace. After a crash both are restored and the call
    /// runs again.
    Workspace,
    /// Changes the world, but idempotently under one key. Runs again with the same key.
    Idempotent,
    /// Changes the world. Never runs again without a decision. This is the default.
    #[default]
    External,
}

/// The recovery of a call that may have run and has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// It runs again.
    Repeat,
    /// State and files are restored, and it runs again.
    RestoreAndRepeat,
    /// It runs again with the key of its first attempt.
    RepeatWithKey,
    /// Its `reconcile` hook or a person decides.
    Decide,
}

/// The widest change that a call may make.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Nothing,
    Session,
    World,
}

/// A row of the table.
struct Consequences {
    name: &'static str,
    reach: Reach,
    recovery: Recovery,
    description: &'static str,
}

impl Effect {
    /// Every class, from the weakest to the strongest.
    pub const ALL: [Self; 4] = [Self::Pure, Self::Workspace, Self::Idempotent, Self::External];

    #[rustfmt::skip]
    const fn consequences(self) -> Consequences {
        let (name, reach, recovery, description) = match self {
            Self::Pure => ("pure", Reach::Nothing, Recovery::Repeat, "it only reads"),
            Self::Workspace => ("workspace", Reach::Session, Recovery::RestoreAndRepeat, "it changes only state and files, which can be undone"),
            Self::Idempotent => ("idempotent", Reach::World, Recovery::RepeatWithKey, "it changes the world, at most once for its key"),
            Self::External => ("external", Reach::World, Recovery::Decide, "it may change the world"),
        };
        Consequences { name, reach, recovery, description }
    }

    /// The name of the class, as it is written in records and agent files.
    pub const fn as_str(self) -> &'static str {
        self.consequences().name
    }

    /// The recovery of an interrupted call.
    pub const fn recovery(self) -> Recovery {
        self.consequences().recovery
    }

    /// Whether a call may change the world outside of the session and its files.
    pub const fn acts_outside(self) -> bool {
        matches!(self.consequences().reach, Reach::World)
    }

    /// Whether a call changes nothing at all.
    pub const fn only_reads(self) -> bool {
        matches!(self.consequences().reach, Reach::Nothing)
    }

    /// Whether an interrupted call runs again without a decision.
    pub const fn is_repeatable(self) -> bool {
        !matches!(self.consequences().recovery, Recovery::Decide)
    }

    /// What a call of this class may do, in a few words.
    pub const fn description(self) -> &'static str {
        self.consequences().description
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_class_never_promises_more() {
        for pair in Effect::ALL.windows(2) {
            let [weak, strong] = pair else { unreachable!() };
            assert!(weak < strong);
            assert!(strong.acts_outside() >= weak.acts_outside());
            assert!(strong.only_reads() <= weak.only_reads());
            assert!(strong.is_repeatable() <= weak.is_repeatable());
        }
    }

    #[test]
    fn the_table_has_the_names_of_the_stored_form() {
        for effect in Effect::ALL {
            assert_eq!(serde_json::to_value(effect).unwrap(), effect.as_str());
        }
    }
}
