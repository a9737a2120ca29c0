//! Unchanged turns: the model's answer, then the feedback to it.
//!
//! [`NoCompression`] shows all turns like this, without any compression. [`Trim`] shows the last turns, and
//! the definitions of earlier ones that still exist. It drops several turns at once rather than one with each
//! request, so that most requests share the beginning of the previous one, and can be cached.

use backstitch_core::journal::Role;

use super::fence::write_foreign;
use super::history::Live;
use super::lines::{described, one_line};
use super::sections::{Text, write_calls, write_output, write_user};
use super::{
    ConfiguredStrategy, DisplayOptions, FullOptions, History, RenderContext, RenderedHistory,
    RenderedMessage, ShownCount, Statistics, Strategy, TrimOptions, estimate_tokens,
};
use crate::turn::Turn;

/// No compression: all turns unchanged.
pub type NoCompression = ConfiguredStrategy<FullOptions>;

impl Strategy for FullOptions {
    const NAME: &'static str = "none";
    const VERSION: u32 = 3;
    type History<'a> = (&'a History, &'a RenderContext);
    type Rendered = RenderedHistory;

    fn render(&self, (history, scene): Self::History<'_>) -> RenderedHistory {
        render_from(Self::NAME, 0, history, scene, &self.display)
    }
}

/// The last turns, unchanged.
pub type Trim = ConfiguredStrategy<TrimOptions>;

impl TrimOptions {
    /// The number of dropped turns.
    fn cut(&self, history: &History) -> usize {
        let most = self.turns.max(1);
        let mut cut = crate::steps::rounded_cut(history.len(), history.len().saturating_sub(most), most);
        if let Some(tokens) = self.tokens {
            let fits = |from: usize| history.weight_of(from..history.len()).tokens <= tokens;
            let least = crate::steps::first(0..history.len(), fits);
            let kept = history.len() - least;
            cut = cut.max(crate::steps::rounded_cut(history.len(), least, kept));
        }
        cut
    }
}

impl Strategy for TrimOptions {
    const NAME: &'static str = "trim";
    const VERSION: u32 = 3;
    type History<'a> = (&'a History, &'a RenderContext);
    type Rendered = RenderedHistory;

    fn render(&self, (history, scene): Self::History<'_>) -> RenderedHistory {
        render_from(Self::NAME, self.cut(history), history, scene, &self.display)
    }
}

/// Renders all turns from index `cut`.
fn render_from(
    strategy: &'static str,
    cut: usize,
    history: &History,
    scene: &RenderContext,
    display: &DisplayOptions,
) -> RenderedHistory {
    let mut text = Text(scene.prefix().to_owned());
    let mut statistics = Statistics {
        turns_whole: history.len() - cut,
        turns_dropped: cut,
        tool_calls: ShownCount { total: history.calls(), shown: 0 },
        prints: ShownCount { total: history.prints(), shown: 0 },
        definitions: ShownCount { total: history.definitions(), shown: 0 },
        failed_turns: ShownCount { total: history.failed().len(), shown: 0 },
        ..Statistics::default()
    };
    if cut > 0 {
        let (older, count) = (history.newest_definitions(cut), history.definitions_before(cut));
        let shown = write_user(&mut text, older, count, |turn| turn.prints.is_empty(), display);
        statistics.definitions.shown += shown.shown;
        let turns = if cut == 1 { "Turn 1 is".to_owned() } else { format!("Turns 1 to {cut} are") };
        text.section(&format!(";; ({turns} not shown)"));
    }
    let mut messages = Messages::begin(scene, text.finish());
    for turn in (cut..history.len()).filter_map(|index| history.get(index)) {
        messages.add(Role::Assistant, answer(turn));
        if turn.success {
            messages.add(Role::User, feedback(turn, display, &mut statistics));
        } else {
            statistics.failed_turns.shown += 1;
            messages.add(Role::User, failure(turn, display));
        }
    }
    let definitions = &mut statistics.definitions;
    definitions.shown = definitions.shown.min(definitions.total);
    rendered(strategy, history, messages.end(scene.turns_line(history.len())), statistics)
}

/// The answer of a turn, as a message.
pub(super) fn answer(turn: &Turn) -> String {
    let answer = turn.answer.trim_end();
    match &turn.program {
        _ if !answer.trim_start().is_empty() => answer.to_owned(),
        Some(program) if !program.trim().is_empty() => program.trim_end().to_owned(),
        // Providers refuse messages without text.
        _ => "(no answer)".to_owned(),
    }
}

/// The feedback to a failed turn.
pub(super) fn failure(turn: &Turn, display: &DisplayOptions) -> String {
    let mut text = Text(match turn.number {
        number if display.turn_notes && number > 0 => format!("Error in turn {number}: "),
        _ => "Error: ".to_owned(),
    });
    match &turn.error {
        Some(error) if error.message.contains(super::fence::LINE_BREAKS) => {
            let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
            text.0.push_str(&one_line(first));
            if !rest.is_empty() {
                text.0.push('\n');
                write_foreign(&mut text.0, rest, display.fence);
            }
        }
        Some(error) => text.0.push_str(&error.message),
        None => text.0.push_str("the turn failed"),
    }
    let last = turn.prints.len().saturating_sub(display.println_limit);
    let prints = turn.prints[last..].iter().map(String::as_str);
    write_output(&mut text, prints, turn.prints.len(), display);
    text.finish()
}

/// The feedback to a successful turn.
fn feedback(turn: &Turn, display: &DisplayOptions, statistics: &mut Statistics) -> String {
    let mut text = Text(String::new());
    let defined = turn.memory.defined.iter().enumerate().rev();
    let newest = defined.map(|(index, defined)| Live { first: index as u64, defined, turn });
    let silent = turn.prints.is_empty();
    let shown = write_user(&mut text, newest, turn.memory.defined.len(), |_| silent, display);
    statistics.definitions.shown += shown.shown;
    let last = turn.tool_calls.len().saturating_sub(display.tool_call_limit);
    let calls = turn.tool_calls[last..].iter().map(|call| (turn, call));
    statistics.tool_calls.shown += write_calls(&mut text, calls, turn.tool_calls.len(), display).shown;
    let last = turn.prints.len().saturating_sub(display.println_limit);
    let prints = turn.prints[last..].iter().map(String::as_str);
    statistics.prints.shown += write_output(&mut text, prints, turn.prints.len(), display).shown;
    if let Some(result) = turn.result.as_ref().filter(|_| silent) {
        let result = described(result, display.sample());
        if !is_definition(&result) {
            text.section(&format!(";; Result: {}", one_line(&result)));
        }
    }
    if text.0.is_empty() {
        text.section(";; The program ran. It defined, called and printed nothing.");
    }
    text.finish()
}

/// Whether a result is the name of a definition, which the request already contains.
pub(super) fn is_definition(result: &str) -> bool {
    result.trim_start_matches('"').starts_with("#'")
}

/// Collects the messages of a request.
pub(super) struct Messages(Vec<RenderedMessage>);

impl Messages {
    /// Starts with the system prompt and the first user message, which begins with the stable prefix.
    pub(super) fn begin(scene: &RenderContext, first: String) -> Self {
        let mut messages = Vec::new();
        if let Some(system) = scene.system_prompt() {
            let stable = system.len();
            messages.push(RenderedMessage { role: Role::System, text: system.to_owned(), stable });
        }
        let stable = scene.prefix().trim_end_matches('\n').len();
        messages.push(RenderedMessage { role: Role::User, text: first, stable });
        Self(messages)
    }

    pub(super) fn add(&mut self, role: Role, text: String) {
        self.0.push(RenderedMessage::new(role, text));
    }

    /// All messages, with a last line appended to the last one.
    pub(super) fn end(mut self, line: Option<String>) -> Vec<RenderedMessage> {
        if let (Some(line), Some(last)) = (line, self.0.last_mut()) {
            if !last.text.is_empty() {
                last.text.push_str("\n\n");
            }
            last.text.push_str(&line);
        }
        self.0
    }
}

/// Completes the statistics of a render.
pub(super) fn rendered(
    strategy: &'static str,
    history: &History,
    messages: Vec<RenderedMessage>,
    statistics: Statistics,
) -> RenderedHistory {
    let before = history.weight_of(0..history.len());
    let statistics = Statistics {
        strategy: strategy.to_owned(),
        turns: history.len(),
        bytes_before: before.bytes,
        tokens_before: before.tokens,
        bytes_after: messages.iter().map(|message| message.text.len() as u64).sum(),
        tokens_after: messages.iter().map(|message| estimate_tokens(&message.text)).sum(),
        ..statistics
    };
    RenderedHistory { messages, statistics }
}
