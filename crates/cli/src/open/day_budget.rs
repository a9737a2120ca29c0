//! The budget of a day: what all sessions of this user may spend until midnight.
//!
//! It limits each evaluation when it starts and when it is resumed, to what is left of the day then. A session that would
//! spend more pauses like one with a budget of its own, and continues on the next day, or with `resume --budget`. Sessions
//! that run at the same time do not know of each other's spending before they start again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use backstitch::agent_file::AgentDefinition;
use backstitch::budget::{Amounts, Limits};
use backstitch::stores::{self, StoreAddress};
use backstitch::view::JournalView;

use super::place::OpenStore;
use crate::common::Common;

/// How long ago a store may have been written to be of today.
const DAY: Duration = Duration::from_secs(25 * 3600);

/// Returns the budget of an evaluation that starts: that of its agent, within what is left of the day.
pub(crate) async fn of_start(
    common: &Common,
    place: &OpenStore,
    definition: &AgentDefinition,
) -> anyhow::Result<Option<Limits>> {
    let own = definition.budget.limits();
    let Some(left) = left_today(common, place, definition).await? else { return Ok(own) };
    Ok(Some(own.unwrap_or_default().within(&left)))
}

/// Returns the budget of an evaluation that is resumed; `None` if it keeps the one that it has.
pub(crate) async fn of_resume(
    common: &Common,
    place: &OpenStore,
    definition: &AgentDefinition,
    view: &JournalView,
) -> anyhow::Result<Option<Limits>> {
    let open = view.latest_evaluation().filter(|latest| latest.finished.is_none());
    let Some(open) = open else { return Ok(None) };
    let Some(left) = left_today(common, place, definition).await? else { return Ok(None) };
    // What it has spent so far belongs to its own budget too.
    let own = definition.budget.limits().unwrap_or_default();
    Ok(Some(own.within(&beyond(left, view.spent_by(open)))))
}

/// Returns limits that leave so much after these amounts.
fn beyond(left: Limits, spent: Amounts) -> Limits {
    let plus = |limit: Option<u64>, spent: u64| limit.map(|limit| limit.saturating_add(spent));
    Limits {
        input_tokens: plus(left.input_tokens, spent.input_tokens),
        output_tokens: plus(left.output_tokens, spent.output_tokens),
        total_tokens: plus(left.total_tokens, spent.total_tokens()),
        money_micros: plus(left.money_micros, spent.money_micros),
        turns: plus(left.turns, spent.turns),
        ..Limits::default()
    }
}

/// Returns what is left of the day; `None` without a budget of the day.
async fn left_today(
    common: &Common,
    place: &OpenStore,
    definition: &AgentDefinition,
) -> anyhow::Result<Option<Limits>> {
    let Some(limits) = common.config.day_budget() else { return Ok(None) };
    let mut spent = place.runtime.spent_today().await?;
    let mut seen: BTreeSet<_> =
        place.address.path().and_then(|path| path.canonicalize().ok()).into_iter().collect();
    for known in stores::all()? {
        let Ok(path) = known.store().canonicalize() else { continue };
        if !is_of_today(&path) || !seen.insert(path.clone()) {
            continue;
        }
        match spending_of(&path).await {
            Ok(more) => spent = spent.plus(more),
            Err(error) => eprintln!("not counted in the budget of the day: {}: {error:#}", path.display()),
        }
    }
    let left = limits.left_after(spent);
    let is_used_up =
        [left.input_tokens, left.output_tokens, left.total_tokens, left.money_micros, left.turns];
    if is_used_up.contains(&Some(0)) && !common.quiet {
        eprintln!(
            "the budget of the day is used up; `resume --budget` allows more, and so does `day_budget` in the settings"
        );
    }
    if let Some(model) = definition.model.as_ref().filter(|_| limits.money_micros.is_some())
        && !definition.prices.contains_key(&model.to_string())
        && !common.quiet
    {
        eprintln!("the budget of the day does not count the money of {model}, whose price is not known");
    }
    Ok(Some(left))
}

async fn spending_of(path: &Path) -> anyhow::Result<Amounts> {
    let place = OpenStore::over(stores::open_read_only(&StoreAddress::File(path.to_owned()))?)?;
    Ok(place.runtime.spent_today().await?)
}

/// Whether a store or its log may have been written today.
fn is_of_today(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let written =
        [path, Path::new(&log)].into_iter().filter_map(|path| path.metadata().ok()?.modified().ok()).max();
    let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
    age.is_none_or(|age| age < DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_counts_from_what_was_spent() {
        let left = Limits { total_tokens: Some(10), money_micros: Some(0), ..Limits::default() };
        let spent = Amounts { input_tokens: 3, output_tokens: 4, money_micros: 5, turns: 2, ..Amounts::ZERO };
        let limits = beyond(left, spent);
        assert_eq!((limits.total_tokens, limits.money_micros, limits.turns), (Some(17), Some(5), None));
        assert_eq!(limits.left_after(spent), left);
    }
}
