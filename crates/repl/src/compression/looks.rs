//! Counts the accesses of a render to a history.
//!
//! The cost of a render depends on what it shows, and not on the length of the history. Time measurements
//! would not prove that, so tests count accesses: every read of a history calls [`count_access`]. Outside of tests it
//! does nothing.

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts an access to a turn or to a position.
pub(super) fn count_access() {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstitch_core::id::CallId;
    use serde_json::json;

    use super::*;
    use crate::compression::{
        CoalescedOptions, Compression, Errors, History, NoCompression, RenderContext, RenderedHistory,
        Samples, SingleUserCoalesced, Trim, TrimOptions,
    };
    use crate::turn::{
        DefinedAs, Excerpt, MemoryChange, Turn, TurnCall, TurnCallOutcome, TurnDefinition, TurnError,
    };

    /// A turn with one item of every kind. All have the same length, and one in ten failed.
    fn turn(number: usize) -> Arc<Turn> {
        let success = number % 10 != 3;
        let value = DefinedAs::Value { label: "integer".into(), sample: Some(format!("{number:06}")) };
        let defined = vec![TurnDefinition { name: format!("v{number:06}"), doc: None, defined_as: value }];
        let result = Excerpt::Whole(json!(format!("{number:06}")));
        Arc::new(Turn {
            number: number as u64 + 1,
            answer: format!("(def v{number:06} (tool/look))"),
            success,
            error: (!success).then(|| TurnError { kind: "any".into(), message: "no".into() }),
            prints: vec![format!("seen {number:06}")],
            tool_calls: vec![TurnCall {
                call_id: CallId::of_program("01900000-0000-7000-8000-000000000001".parse().unwrap(), "0"),
                path: None,
                name: "look".into(),
                arguments: Excerpt::Whole(json!({})),
                outcome: TurnCallOutcome::Result(result),
            }],
            memory: if success {
                MemoryChange { defined, ..MemoryChange::default() }
            } else {
                MemoryChange::default()
            },
            ..Turn::default()
        })
    }

    fn looks_of(strategy: &dyn Compression, turns: usize) -> (usize, RenderedHistory) {
        let history: History = (0..turns).map(turn).collect();
        LOOKS.set(0);
        let rendered = strategy.render(&history, &RenderContext::new("M").max_turns(None));
        (LOOKS.get(), rendered)
    }

    #[test]
    fn a_render_looks_at_what_it_shows_however_much_there_is() {
        let coalesced = |errors| {
            let samples = Samples::Always;
            SingleUserCoalesced::new(CoalescedOptions { errors, samples, ..CoalescedOptions::default() })
        };
        let strategies: [Box<dyn Compression>; 3] = [
            Box::new(coalesced(Errors::UntilRecovered)),
            Box::new(coalesced(Errors::Last)),
            Box::new(Trim::new(TrimOptions { turns: 20, ..TrimOptions::default() })),
        ];
        for strategy in strategies {
            let (few, shown) = looks_of(&*strategy, 500);
            let (many, also_shown) = looks_of(&*strategy, 20_000);
            assert_eq!(few, many, "{strategy:?}");
            // Both histories are long, and the same amount of each is shown.
            let (few, many) = (shown.statistics, also_shown.statistics);
            assert!(
                few.definitions.dropped() > 0 && few.prints.dropped() > 0 && few.tool_calls.dropped() > 0
            );
            assert_eq!(few.definitions.shown, many.definitions.shown);
            assert_eq!((few.prints.shown, few.tool_calls.shown), (many.prints.shown, many.tool_calls.shown));
        }
        // A strategy that shows more reads more.
        let all = NoCompression::default();
        assert!(looks_of(&all, 500).0 > 500 && looks_of(&all, 1_000).0 > 1_000);
    }

    #[test]
    fn a_press_of_tokens_looks_at_few_turns_as_well() {
        let strategy =
            Trim::new(TrimOptions { tokens: Some(200), turns: usize::MAX, ..TrimOptions::default() });
        let looks = looks_of(&strategy, 20_000).0;
        assert!(looks < 1_000, "{looks}");
    }
}
