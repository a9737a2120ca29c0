//! What a paused session waits for, and the commands that end the pause.
//!
//! A person who decides about a call sees all of its arguments, unchanged: they are printed as JSON, and
//! parsing the JSON returns the same arguments. The printed commands can be executed unchanged.

use backstitch::budget::{Amounts, Limits};
use backstitch::journal::PauseReason;
use backstitch::view::JournalView;
use serde_json::Value;

use crate::common::{Common, quoted};
use crate::open::short;
use crate::terminal::{exact_json, exact_text};

pub(crate) use backstitch::host::pending_decisions as waiting;
pub(crate) use backstitch::report::PendingDecision;

/// Maximum number of files that are listed.
const MOST_FILES: usize = 20;

/// Formats the call that a decision is about with all of its arguments, indented; `None` if it is about the whole session.
pub(crate) fn call_text(decision: &PendingDecision, indent: &str) -> Option<String> {
    let PendingDecision { call, name, arguments, .. } = decision;
    let (call, name) = call.as_ref().zip(name.as_ref())?;
    let arguments = exact_json(arguments.as_ref().unwrap_or(&Value::Null));
    let shown = format!("{name} {arguments}  [{}]", short(call));
    Some(shown.lines().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n"))
}

/// Formats what a session waits for, and the commands that end the pause.
pub(crate) fn explain(common: &Common, view: &JournalView, all: &[PendingDecision]) -> Vec<String> {
    let root = short(view.session_id());
    let resume = |more: &str| common.hint(format_args!("resume {root}{more}"));
    let indented = |command: String| format!("  {}", common.hint(command));
    let mut lines = Vec::new();
    let mut then = resume("");
    for one in all {
        let PendingDecision { reason, detail, .. } = one;
        let (id, call) = (short(one.session), one.call.map(short));
        match (reason, call) {
            (PauseReason::Approval, Some(call)) => {
                // It may name files.
                lines.push(format!("paused: {}", exact_text(detail)));
                lines.extend(call_text(one, "  "));
                let edit = common.hint(format_args!("resolve {id} {call} edit --arguments JSON"));
                lines.push(format!("approve or deny it (`--all` decides about all calls, `deny --reason TEXT` gives the model a reason, `{edit}` approves it with other arguments):"));
                lines.extend(["approve", "deny"].map(|what| indented(format!("{what} {root} {call}"))));
            }
            (PauseReason::EffectUnknown, Some(call)) => {
                lines.push("paused: it is unknown whether this call has happened:".to_owned());
                lines.extend(call_text(one, "  "));
                // A reason may follow the name of the tool.
                if let Some((_, reason)) = detail.split_once(": ") {
                    lines.push(format!("  {reason}"));
                }
                lines.push("it happened (the files are kept), run it again, or let it fail (the files are restored):".to_owned());
                let happened = if one.has_offer { "happened" } else { "happened --result done" };
                let all = [happened, "retry", "fail"];
                lines.extend(all.map(|what| indented(format!("resolve {id} {call} {what}"))));
            }
            (PauseReason::Poisoned, _) => {
                lines.push(format!("paused: {detail}"));
                lines.push("repair the files first. Then continue with the files as they are:".to_owned());
                lines.push(indented(format!("resolve {id} - continue")));
                then = resume(" --files keep");
            }
            (PauseReason::Budget, _) => {
                let latest = view.latest_evaluation();
                let limits = latest.and_then(|evaluation| evaluation.budget);
                // What a used up day leaves.
                let is_used_up = limits.is_some_and(|most| {
                    [most.total_tokens, most.input_tokens, most.output_tokens, most.money_micros, most.turns]
                        .contains(&Some(0))
                });
                let detail = if is_used_up { "nothing is left of the budget" } else { detail.as_str() };
                lines.push(format!("paused: {detail}. Continue with more, for instance:"));
                let spent = latest.map_or(Amounts::ZERO, |evaluation| view.spent_by(evaluation));
                let more = limits.map(|limits| format!(" --budget {}", twice(&limits, spent)));
                then = resume(&more.unwrap_or_default());
            }
            (PauseReason::Asked, _) if one.files_changed => {
                lines.push(format!("paused: {detail}"));
                lines.push("keep them as they are, or undo the changes with `--files restore`:".to_owned());
                then = resume(" --files keep");
            }
            (PauseReason::Files, _) => {
                lines.push(
                    "paused: it is unknown whether the interrupted call or others changed these files:"
                        .to_owned(),
                );
                lines.extend(one.files.iter().take(MOST_FILES).map(|file| format!("  {}", exact_text(file))));
                if let more @ 1.. = one.files.len().saturating_sub(MOST_FILES) {
                    lines.push(format!("  and {more} more"));
                }
                lines.push("restore them, and the call runs again; or restore nothing with `--files keep`, and the call fails:".to_owned());
                then = resume(" --files restore");
            }
            (PauseReason::Truncated, _) => {
                lines.push(format!("paused: {detail}, so it is not complete. `--accept` accepts it as it is; without it, the model continues:"));
            }
            (PauseReason::Wait, _) => {
                lines.push(format!("paused: {detail}"));
                let mut pauses = view.pauses().filter(|pause| pause.call_id == one.call);
                if let Some(signal) = pauses.find_map(|pause| pause.wait.as_ref()?.signal_name()) {
                    lines.push(indented(format!("signal {root} {}", quoted(&exact_text(signal)))));
                }
                lines.push("a worker continues it then if it is in the queue, and so does:".to_owned());
            }
            (PauseReason::Deadline, _) => {
                lines.push(format!("paused: {detail}. Continue with more time, for instance:"));
                then = resume(" --deadline 10m");
            }
            _ => lines.push(format!("paused: {detail}")),
        }
    }
    if all
        .iter()
        .any(|one| one.call.is_some() && !matches!(one.reason, PauseReason::Asked | PauseReason::Wait))
    {
        lines.push("then continue:".to_owned());
    }
    lines.push(format!("  {then}"));
    lines
}

/// Formats limits of double the size for `--budget`, or of double what was spent where that is more: what a call costs is known when it
/// has ended. A day whose budget is used up leaves none, which has no double.
fn twice(limits: &Limits, spent: Amounts) -> String {
    let double = |most: u64, spent: u64, least: u64| {
        let least = if most == 0 { least } else { 0 };
        most.max(spent).saturating_mul(2).max(least)
    };
    let money = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let seconds = |millis: u64| format!("{}s", millis.div_ceil(1_000));
    let all = [
        ("tokens", limits.total_tokens.map(|most| double(most, spent.total_tokens(), 100_000).to_string())),
        (
            "input_tokens",
            limits.input_tokens.map(|most| double(most, spent.input_tokens, 100_000).to_string()),
        ),
        (
            "output_tokens",
            limits.output_tokens.map(|most| double(most, spent.output_tokens, 10_000).to_string()),
        ),
        ("money", limits.money_micros.map(|most| money(double(most, spent.money_micros, 1_000_000)))),
        ("turns", limits.turns.map(|most| double(most, spent.turns, 20).to_string())),
        ("calls", limits.calls.map(|most| double(most, spent.calls, 20).to_string())),
        ("time", limits.millis.map(|most| seconds(double(most, spent.millis, 0)))),
    ];
    let given = all.into_iter().filter_map(|(name, most)| Some(format!("{name}={}", most?)));
    given.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_budget_is_larger_than_what_was_spent() {
        let limits = Limits { turns: Some(2), calls: Some(0), millis: Some(1), ..Limits::default() };
        let spent = Amounts { turns: 2, millis: 1_400, input_tokens: 9, ..Amounts::ZERO };
        assert_eq!(twice(&limits, spent), "turns=4,calls=20,time=3s");
        assert_eq!(twice(&limits, Amounts::ZERO), "turns=4,calls=20,time=1s");
        let tokens = Limits { total_tokens: Some(100), money_micros: Some(1_000_000), ..Limits::default() };
        let spent = Amounts { input_tokens: 90, output_tokens: 60, money_micros: 400_000, ..Amounts::ZERO };
        assert_eq!(twice(&tokens, spent), "tokens=300,money=2.000000");
    }
}
