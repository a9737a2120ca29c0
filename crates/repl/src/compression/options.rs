//! The options of the strategies.
//!
//! In a configuration they stand side by side, without nesting; each has a default.

use backstitch_lisp::Truncation;
use serde::{Deserialize, Deserializer, Serialize};

/// How things are shown, whatever the strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisplayOptions {
    /// How many calls of `println` are shown, the latest of them.
    pub println_limit: usize,
    /// How many characters of each.
    pub println_characters: usize,
    /// How many calls of tools are shown, the latest of them.
    pub tool_call_limit: usize,
    /// When results are shown beside the calls.
    pub tool_results: ToolResults,
    /// How many items of a collection a sample shows.
    pub sample_items: usize,
    /// How many characters of a string a sample shows.
    pub sample_characters: usize,
    /// How many items of a collection are shown among the arguments of a call.
    pub argument_items: usize,
    /// How many characters of a string are shown among the arguments of a call.
    pub argument_characters: usize,
    /// How many characters of a docstring are shown.
    pub doc_characters: usize,
    /// How many bytes the definitions may take. The newest are shown, and the rest is counted.
    pub user_budget: usize,
    /// When what was printed is fenced, so that it cannot be taken for a section.
    pub fence: FenceMode,
    /// Whether the text says how many prints and calls are not shown.
    pub note_dropped: bool,
}

impl Default for DisplayOptions {
    fn default() -> Self {
        Self {
            println_limit: 15,
            println_characters: 2_000,
            tool_call_limit: 20,
            tool_results: ToolResults::WhenSilent,
            sample_items: Truncation::SAMPLE.items,
            sample_characters: Truncation::SAMPLE.characters,
            argument_items: Truncation::ARGUMENTS.items,
            argument_characters: Truncation::ARGUMENTS.characters,
            doc_characters: 200,
            user_budget: 8_000,
            fence: FenceMode::Auto,
            note_dropped: true,
        }
    }
}

impl DisplayOptions {
    /// How much of a value a sample shows.
    pub fn sample(&self) -> Truncation {
        Truncation { items: self.sample_items, characters: self.sample_characters }
    }

    /// How much of the arguments of a call is shown.
    pub fn arguments(&self) -> Truncation {
        Truncation { items: self.argument_items, characters: self.argument_characters }
    }
}

/// When results are shown beside the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResults {
    /// When the turn that made the call has printed nothing.
    #[default]
    WhenSilent,
    /// Never: what a program wants to know it defines or prints.
    Never,
}

/// Which failed turns are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Errors {
    /// All of them.
    #[default]
    Keep,
    /// The last one.
    Last,
    /// Those after the last turn that succeeded.
    UntilRecovered,
}

/// When definitions show samples of their values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Samples {
    /// Unless the turn that defined it last has printed something.
    #[default]
    UnlessPrinted,
    /// Unless anything that was printed is shown.
    UnlessOutput,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// When what was printed is fenced. Also `true`, which is always, and `false`, which is never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FenceMode {
    /// When a line of it could be taken for one of ours.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl<'de> Deserialize<'de> for FenceMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Word {
            Auto,
            Always,
            Never,
        }
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a fence is auto, always, never, true or false")]
        enum Given {
            Flag(bool),
            Word(Word),
        }
        Ok(match Given::deserialize(deserializer)? {
            Given::Word(Word::Auto) => Self::Auto,
            Given::Flag(true) | Given::Word(Word::Always) => Self::Always,
            Given::Flag(false) | Given::Word(Word::Never) => Self::Never,
        })
    }
}

/// The options of [`SingleUserCoalesced`](super::SingleUserCoalesced).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoalescedOptions {
    /// Which failed turns are shown.
    pub errors: Errors,
    /// When definitions show samples of their values.
    pub samples: Samples,
    /// How things are shown.
    #[serde(flatten)]
    pub display: DisplayOptions,
}

/// The options of [`Trim`](super::Trim). The stricter of the two pressures counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrimOptions {
    /// How many turns are kept at most.
    pub turns: usize,
    /// How many tokens the turns that are kept may have, by an estimate. The last turn is kept whatever it has.
    pub tokens: Option<u64>,
    /// How things are shown.
    #[serde(flatten)]
    pub display: DisplayOptions,
}

impl Default for TrimOptions {
    fn default() -> Self {
        Self { turns: 20, tokens: None, display: DisplayOptions::default() }
    }
}

/// The options of [`Full`](super::NoCompression).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FullOptions {
    /// How things are shown.
    #[serde(flatten)]
    pub display: DisplayOptions,
}

impl AsRef<DisplayOptions> for CoalescedOptions {
    fn as_ref(&self) -> &DisplayOptions {
        &self.display
    }
}

impl AsRef<DisplayOptions> for TrimOptions {
    fn as_ref(&self) -> &DisplayOptions {
        &self.display
    }
}

impl AsRef<DisplayOptions> for FullOptions {
    fn as_ref(&self) -> &DisplayOptions {
        &self.display
    }
}
