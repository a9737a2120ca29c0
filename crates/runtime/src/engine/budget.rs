//! What an engine may still spend.

use backstitch_core::budget::Amounts;
use backstitch_core::id::EvaluationId;
use backstitch_core::view::JournalView;

/// Returns the limit that another request would exceed.
pub(super) fn exceeded(view: &JournalView, evaluation: EvaluationId) -> Option<String> {
    let known = view.evaluation(evaluation)?;
    let least = Amounts { input_tokens: 1, ..Amounts::ONE_TURN };
    known.budget?.check(view.spent_by(known).plus(least)).err().map(|exceeded| exceeded.to_string())
}

/// Returns the money that is left, in millionths.
pub(super) fn money_left(view: &JournalView, evaluation: EvaluationId) -> Option<u64> {
    let known = view.evaluation(evaluation)?;
    let limit = known.budget?.money_micros?;
    Some(limit.saturating_sub(view.spent_by(known).money_micros))
}
