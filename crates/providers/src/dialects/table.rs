//! The table that describes a provider.

use backstitch_core::ports::PolicyAnswer;
use serde_json::Value;

use crate::answer::{FinishMeaning, StreamReader, UsageFields};
use crate::error::{Classify, ProviderError};
use crate::provider::ModelTarget;
use crate::request::{
    MediaRules, OptionProblem, OutputSchema, RenderError, RenderReport, RequestInput, RequestLimits,
    RequestOptions,
};
use crate::rules::{Rule, Shape};

/// Everything that is particular to a provider.
pub(crate) struct Dialect {
    /// Where requests go, and what authorises them.
    pub(crate) address: Address,
    /// How much one request may hold. Where a provider names several limits, the safe one counts.
    pub(crate) limits: RequestLimits,
    /// Which media it takes.
    pub(crate) media: &'static MediaRules,
    /// Finds an option that it cannot honour.
    pub(crate) refused_option: fn(&RequestOptions) -> Option<OptionProblem>,
    /// Adapts the schema of an answer to what a target takes, given whether the request has tools; none when the model cannot be
    /// held to it.
    pub(crate) output_schema: fn(&Value, &ModelTarget, bool) -> Option<OutputSchema>,
    /// Renders the body of a request.
    pub(crate) render: fn(&RequestInput<'_>, &mut RenderReport) -> Result<Value, RenderError>,
    /// Reads an answer that came in one piece.
    pub(crate) parse: fn(&str, &ModelTarget) -> Result<PolicyAnswer, ProviderError>,
    /// Makes a reader for an answer that comes piece by piece.
    pub(crate) stream_reader: fn(ModelTarget) -> Box<dyn StreamReader>,
    /// Where an answer reports what it used.
    pub(crate) usage: &'static UsageFields,
    /// The documented finish reasons.
    pub(crate) finish_reasons: &'static [(&'static str, FinishMeaning)],
    /// Classifies an error.
    pub(crate) classify: Classify,
    /// What it refuses. Shares no code with `render`.
    pub(crate) rules: &'static [Rule],
    /// The published form of a request. Shares no code with `render`.
    pub(crate) form: &'static Shape,
}

/// Where requests go, and what authorises them.
pub(crate) struct Address {
    /// The address of the provider itself, without a path.
    pub(crate) base: &'static str,
    /// The path below the address, for a target and whether the answer is to be streamed.
    pub(crate) path: fn(&ModelTarget, bool) -> String,
    /// Headers beside those that every request has.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The header that carries the key, and what stands before the key in it.
    pub(crate) key_header: (&'static str, &'static str),
    /// The variables of the environment that may hold the key, in the order in which they are looked at.
    pub(crate) key_variables: &'static [&'static str],
}
