//! The table that describes a provider.

use backstitch_core::ports::PolicyAnswer;
use serde_json::Value;

use crate::answer::{FinishMeaning, StreamReader, UsageFields};
use crate::error::{Classify, ProviderError};
use crate::provider::ModelTarget;
use crate::request::{
    InputMessage, MediaRules, OptionProblem, OutputSchema, PlannedTurn, RawCalls, RenderError, RenderState,
    RequestInput, RequestLimits, RequestOptions,
};
use crate::rules::Rule;

/// All particulars of a provider.
pub(crate) struct Dialect {
    /// Addresses and authorisation of requests.
    pub(crate) address: Address,
    /// The limits of one request. Where a provider documents several limits, the safe one counts.
    pub(crate) limits: RequestLimits,
    /// The accepted media.
    pub(crate) media: &'static MediaRules,
    /// Finds an option that the provider does not support.
    pub(crate) refused_option: fn(&RequestOptions) -> Option<OptionProblem>,
    /// Adapts the schema of an answer to what a target supports. The flag says whether the request has tools.
    /// `None` when the provider cannot enforce the schema.
    pub(crate) output_schema: fn(&Value, &ModelTarget, bool) -> Option<OutputSchema>,
    /// The field of a request that lists the messages.
    pub(crate) messages: &'static str,
    /// Finds the calls in the payload of an answer.
    pub(crate) raw_calls: RawCalls,
    /// Renders a message to the model.
    pub(crate) render_input:
        fn(&InputMessage<'_>, &RequestInput<'_>, &mut RenderState) -> Result<(), RenderError>,
    /// Renders an answer and the results of its calls.
    pub(crate) render_turn:
        fn(PlannedTurn<'_>, &RequestInput<'_>, &mut RenderState) -> Result<(), RenderError>,
    /// Renders the body of a request with the messages, in which it completes them.
    pub(crate) render_body: fn(&RequestInput<'_>, &mut RenderState) -> Result<Value, RenderError>,
    /// Parses an answer that was not streamed.
    pub(crate) parse: fn(&str, &ModelTarget) -> Result<PolicyAnswer, ProviderError>,
    /// Creates a reader for a streamed answer.
    pub(crate) stream_reader: fn(ModelTarget) -> Box<dyn StreamReader>,
    /// The fields of the usage of an answer.
    pub(crate) usage: &'static UsageFields,
    pub(crate) finish_reasons: &'static [(&'static str, FinishMeaning)],
    /// Classifies an error.
    pub(crate) classify: Classify,
    /// The requests that the provider refuses. Shares no code with `render`.
    pub(crate) rules: &'static [Rule],
}

/// Addresses and authorisation of requests.
pub(crate) struct Address {
    /// The address of the provider, without a path.
    pub(crate) base: &'static str,
    /// The path below the address, for a target and whether the answer is streamed.
    pub(crate) path: fn(&ModelTarget, bool) -> String,
    /// The path of the list of models below the address.
    pub(crate) models: &'static str,
    /// Headers besides those of every request.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The header that holds the key, and the prefix of the key in it.
    pub(crate) key_header: (&'static str, &'static str),
    /// The environment variables that may hold the key, in order of precedence.
    pub(crate) key_variables: &'static [&'static str],
}
