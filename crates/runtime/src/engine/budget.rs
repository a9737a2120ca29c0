//! What an engine may still spend.

use backstitch_core::budget::Amounts;
use backstitch_core::id::EvaluationId;
use backstitch_core::view::JournalView;

/// What a call is charged with.
pub(super) const ONE_CALL: Amounts = Amounts { calls: 1, ..Amounts::ZERO };

/// Returns the limit that another request would exceed.
pub(super) fn exceeded(view: &JournalView, evaluation: EvaluationId) -> Option<String> {
    exceeded_by(view, evaluation, Amounts { input_tokens: 1, ..Amounts::ONE_TURN })
}

/// Returns the limit that more of something would exceed.
pub(super) fn exceeded_by(view: &JournalView, evaluation: EvaluationId, more: Amounts) -> Option<String> {
    let known = view.evaluation(evaluation)?;
    known.budget?.check(view.spent_by(known).plus(more)).err().map(|exceeded| exceeded.to_string())
}

/// Returns why a limit of money cannot be kept.
pub(super) fn unknown_price(provider: &str, model: &str) -> String {
    format!("the price of {provider}:{model} is unknown, so its money cannot be limited; set the price")
}

/// Returns the money that is left, in millionths.
pub(super) fn money_left(view: &JournalView, evaluation: EvaluationId) -> Option<u64> {
    let known = view.evaluation(evaluation)?;
    let limit = known.budget?.money_micros?;
    Some(limit.saturating_sub(view.spent_by(known).money_micros))
}
