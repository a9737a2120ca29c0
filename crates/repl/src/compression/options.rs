//! The options of the strategies.
//!
//! In a configuration they are on one level, without nesting; each has a default.

use backstitch_lisp::Truncation;
use serde::{Deserialize, Deserializer, Serialize};

/// Display options of all strategies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisplayOptions {
    /// The maximum number of `println` calls, of which the latest are shown.
    pub println_limit: usize,
    /// The maximum number of characters of each print.
    pub println_characters: usize,
    /// The maximum number of tool calls, of which the latest are shown.
    pub tool_call_limit: usize,
    /// When results are shown with the calls.
    pub tool_results: ToolResults,
    /// The maximum number of items of a collection in a sample.
    pub sample_items: usize,
    /// The maximum number of characters of a string in a sample.
    pub sample_characters: usize,
    /// The maximum number of items of a collection in the arguments of a call.
    pub argument_items: usize,
    /// The maximum number of characters of a string in the arguments of a call.
    pub argument_characters: usize,
    /// The maximum number of characters of a docstring.
    pub doc_characters: usize,
    /// The maximum size of the definitions in bytes. The newest are shown, and the number of the others.
    pub user_budget: usize,
    /// When printed text is fenced, so that it cannot be taken for a section.
    #[serde(deserialize_with = "fence")]
    pub fence: FenceMode,
    /// Whether the text contains the numbers of prints and calls that are not shown.
    pub note_dropped: bool,
    /// Whether labels name all fields of records. The specification has samples only.
    pub fields: bool,
    /// Whether the text says by number which turn succeeded, failed or printed something, and shows the value of a
    /// program that neither defined nor printed anything. The specification has none of this.
    pub turn_notes: bool,
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
            fields: true,
            turn_notes: true,
        }
    }
}

impl DisplayOptions {
    /// The options that give the forms of the specification.
    pub fn specified() -> Self {
        Self { fields: false, turn_notes: false, ..Self::default() }
    }

    /// The truncation of samples.
    pub fn sample(&self) -> Truncation {
        Truncation { items: self.sample_items, characters: self.sample_characters, fields: self.fields }
    }

    /// The truncation of arguments.
    pub fn arguments(&self) -> Truncation {
        Truncation { items: self.argument_items, characters: self.argument_characters, fields: self.fields }
    }
}

/// When results are shown with the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResults {
    /// When the turn of the call printed nothing.
    #[default]
    WhenSilent,
    /// Never: programs define or print what they need.
    Never,
}

/// Which failed turns are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Errors {
    /// All of them, as the specification has it.
    Keep,
    /// The last one.
    Last,
    /// Those after the last successful turn: an error that was recovered from is not the last word.
    #[default]
    UntilRecovered,
}

/// When definitions show samples of their values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Samples {
    /// Unless the turn of the latest definition printed something.
    #[default]
    UnlessPrinted,
    /// Unless any printed text is shown.
    UnlessOutput,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// When printed text is fenced. Configurations may also use `true` for always and `false` for never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FenceMode {
    /// When one of its lines could be taken for one of ours.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

fn fence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FenceMode, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a fence is auto, always, never, true or false")]
    enum Given {
        Flag(bool),
        Word(FenceMode),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::Flag(true) => FenceMode::Always,
        Given::Flag(false) => FenceMode::Never,
        Given::Word(mode) => mode,
    })
}

/// The options of [`SingleUserCoalesced`](super::SingleUserCoalesced).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoalescedOptions {
    /// Which failed turns are shown.
    pub errors: Errors,
    /// When definitions show samples of their values.
    pub samples: Samples,
    /// Display options.
    #[serde(flatten)]
    pub display: DisplayOptions,
}

impl CoalescedOptions {
    /// The options that give the forms of the specification: all errors stay, and nothing is added.
    pub fn specified() -> Self {
        Self { errors: Errors::Keep, samples: Samples::default(), display: DisplayOptions::specified() }
    }
}

/// The options of [`Trim`](super::Trim). The stricter of the two limits applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrimOptions {
    /// The maximum number of turns.
    pub turns: usize,
    /// The maximum number of tokens of the turns, by an estimate. The last turn is always shown.
    pub tokens: Option<u64>,
    /// Display options.
    #[serde(flatten)]
    pub display: DisplayOptions,
}

impl Default for TrimOptions {
    fn default() -> Self {
        Self { turns: 20, tokens: None, display: DisplayOptions::default() }
    }
}

/// The options of [`NoCompression`](super::NoCompression).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FullOptions {
    /// Display options.
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
