//! The mode `full`, in which nothing is asked and nothing is confined. A person confirms it once for a project.

use std::path::Path;

use backstitch::stores::Project;

use super::TrustError;
use super::ledger::Ledger;
use crate::common::Common;
use crate::project;
use crate::terminal;

/// Fails unless the mode `full` was confirmed for the project of a directory. Asks on a terminal, and remembers the answer.
pub(crate) fn confirm(common: &Common, directory: &Path) -> Result<(), TrustError> {
    // A workspace may not exist yet.
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let root = project::root(&directory);
    let now = Project::at(&root).ok();
    let is_confirmed = |ledger: &Ledger| {
        let is_same = |known: &Project| now.as_ref().is_some_and(|now| known.is_same(now));
        ledger.full.iter().any(is_same)
    };
    if common.trust || is_confirmed(&Ledger::read()?) {
        return Ok(());
    }
    let shown = root.display();
    if common.can_ask() {
        eprintln!(
            "In the mode full, the agent runs every command as you, with your keys and the network, and asks nothing."
        );
        let question = format!("Use it in {shown} from now on? [y/N] ");
        if terminal::confirm(&question).map_err(TrustError::NoAnswer)? {
            return Ledger::change(|ledger| ledger.full.extend(now));
        }
    }
    let message = format!("the mode full is not confirmed for {shown}");
    let hint = "on a terminal, `--mode full` asks once for a project; `--trust` confirms it for one command";
    Err(TrustError::Refused { message, hint: hint.to_owned() })
}
