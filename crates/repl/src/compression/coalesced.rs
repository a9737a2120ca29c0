//! All turns in one message: the default strategy.
//!
//! A request is the system prompt, then one user message: the mission, the sections `tool/` and `data/`, and
//! a summary of all turns: the current definitions, the last calls, the last prints, and the number of turns
//! left. Each failed turn since the last success follows unchanged: the answer, then the error. So a request
//! grows with the knowledge of a session, not with its number of turns.
//!
//! No turn vanishes: the outcome of the last one is named by its number, with the value of a program that
//! neither defined nor printed anything, such as a call of a function of an earlier turn. Prints are under the
//! number of their turn.

use backstitch_core::journal::Role;

use super::lines::{described, one_line};
use super::pairs::{self, Messages, is_definition};
use super::sections::{Text, write_calls, write_output_by_turn, write_user};
use super::{
    CoalescedOptions, ConfiguredStrategy, Errors, History, RenderContext, RenderedHistory, Samples,
    ShownCount, Statistics, Strategy,
};
use crate::turn::Turn;

/// The strategy that summarises all turns in one message.
pub type SingleUserCoalesced = ConfiguredStrategy<CoalescedOptions>;

impl CoalescedOptions {
    /// The failed turns that are shown, by index, in order.
    fn shown_failures(&self, history: &History) -> Vec<usize> {
        let mut shown: Vec<usize> = match self.errors {
            Errors::Keep => history.failed().collect(),
            Errors::Last => history.failed().take(1).collect(),
            Errors::UntilRecovered => {
                let since_success = (0..history.len()).rev().zip(history.failed());
                since_success
                    .take_while(|(latest, failed)| latest == failed)
                    .map(|(_, failed)| failed)
                    .collect()
            }
        };
        shown.reverse();
        shown
    }

    /// Writes that the last turn succeeded, and its value if nothing else shows what it did.
    fn write_last_turn(&self, text: &mut Text, history: &History) {
        let Some(turn) = history.len().checked_sub(1).and_then(|last| history.get(last)) else { return };
        if !self.display.turn_notes || !turn.success {
            return;
        }
        let mut line = format!(";; Turn {} ran without an error.", turn.number);
        if turn.prints.is_empty()
            && turn.memory.defines_nothing()
            && let Some(result) = &turn.result
        {
            let result = described(result, self.display.sample());
            if !is_definition(&result) {
                line.push_str(" Its value (*1): ");
                line.push_str(&one_line(&result));
            }
        }
        text.section(&line);
    }

    fn with_sample(&self, turn: &Turn, any_output: bool) -> bool {
        match self.samples {
            Samples::UnlessPrinted => turn.prints.is_empty(),
            Samples::UnlessOutput => !any_output,
            Samples::Always => true,
            Samples::Never => false,
        }
    }
}

impl Strategy for CoalescedOptions {
    const NAME: &'static str = "single_user_coalesced";
    const VERSION: u32 = 4;
    type History<'a> = (&'a History, &'a RenderContext);
    type Rendered = RenderedHistory;

    fn render(&self, (history, scene): Self::History<'_>) -> RenderedHistory {
        let display = &self.display;
        let failures = self.shown_failures(history);
        let mut text = Text(scene.prefix().to_owned());
        let any_output = history.prints().min(display.println_limit) > 0;
        let definitions = write_user(
            &mut text,
            history.newest_definitions(history.len()),
            history.definitions(),
            |turn| self.with_sample(turn, any_output),
            display,
        );
        let tool_calls =
            write_calls(&mut text, history.last_calls(display.tool_call_limit), history.calls(), display);
        if history.calls() == 0 && (scene.has_tools() || !history.is_empty()) {
            text.section(";; No tool calls made");
        }
        let last_prints = history.last_prints(display.println_limit);
        let prints = write_output_by_turn(&mut text, last_prints, history.prints(), display);
        self.write_last_turn(&mut text, history);

        let mut messages = Messages::begin(scene, text.finish());
        for turn in failures.iter().filter_map(|index| history.get(*index)) {
            messages.add(Role::Assistant, pairs::answer(turn));
            messages.add(Role::User, pairs::failure(turn, display));
        }
        let messages = messages.end(scene.turns_line(history.len()));
        let failed = history.failed().len();
        let statistics = Statistics {
            turns_summarised: history.len() - failed,
            turns_whole: failures.len(),
            turns_dropped: failed - failures.len(),
            failed_turns: ShownCount { total: failed, shown: failures.len() },
            prints,
            tool_calls,
            definitions,
            ..Statistics::default()
        };
        pairs::rendered(Self::NAME, history, messages, statistics)
    }
}
