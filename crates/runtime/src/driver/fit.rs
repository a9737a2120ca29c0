//! Fitting a conversation into the context window of a model.
//!
//! A conversation that is estimated to take more than three quarters of the window is shown without the text
//! of its older results, then without those of all but the last two answers, and then without its oldest
//! answers. The newest answer and all messages of users stay.
//!
//! A request that the provider refused for its length sets a limit for its model too: those after it are at most
//! half as long. All of this follows from the agent and the journal, so a request can be rendered again.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::{InnerMessage, RequestStarted};
use backstitch_core::machine::VisibleHistory;
use backstitch_core::session::Items;
use backstitch_core::view::JournalView;
use backstitch_repl::transcript::{
    Elide, ElideOptions, TranscriptCompression as _, Trim, TrimOptions, estimated_bytes, estimated_tokens,
};

use crate::agent::Agent;

/// The most requests of one turn that are sent again because the one before was too long.
pub(super) const MOST_SHORTENINGS: u32 = 2;

/// Bytes of a request or a message for each token, by an estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Whether an error of a policy means that the request was too long.
pub(super) fn is_too_long(kind: &str) -> bool {
    kind == ErrorCode::ContextTooLong.as_str() || kind == ErrorCode::RequestTooLarge.as_str()
}

/// Returns the number of tokens that the conversation may have in the next request. `None` if neither the
/// agent nor a refused request of its model sets a limit.
pub(super) fn limit(agent: &Agent, view: &JournalView) -> Option<u64> {
    let of_window = agent.window.map(|window| window / 4 * 3);
    let model = agent.policy.model();
    let of_model = |started: &RequestStarted| {
        model
            .as_ref()
            .is_none_or(|model| (&started.provider, &started.model) == (&model.provider, &model.model))
    };
    let requests = view.evaluations().flat_map(|evaluation| evaluation.requests.iter());
    let refused = requests
        .filter(|request| request.failures.iter().any(|failure| is_too_long(&failure.record.kind)))
        .filter(|request| of_model(&request.started.record))
        .map(|request| request.started.record.length / BYTES_PER_TOKEN / 2);
    of_window.into_iter().chain(refused).min()
}

/// Shortens a conversation that exceeds a limit, and describes what it leaves out. `bytes` is the estimated size of its
/// messages, if that is known already.
pub(super) fn fitted(shown: VisibleHistory, bytes: Option<u64>, limit: Option<u64>) -> VisibleHistory {
    let Some(limit) = limit else { return shown };
    let fits =
        || bytes.unwrap_or_else(|| estimated_bytes(shown.messages.iter())).div_ceil(BYTES_PER_TOKEN) <= limit;
    // Tools in the text of a message belong to an agent that answers with programs, which shows a summary.
    if shown.tools_in_text || fits() {
        return shown;
    }
    let (messages, renderer) = shortened(&shown.messages, limit);
    let mut left_out = shown.left_out;
    let (before, after) = (shown.messages.len(), messages.len());
    if after < before {
        left_out.push(format!("{} older messages of answers, calls and results", before - after));
    }
    let known: HashSet<_> = shown.messages.iter().map(Arc::as_ptr).collect();
    let elided = messages.iter().filter(|message| message.message.option_result().is_some());
    let elided = elided.filter(|message| !known.contains(&Arc::as_ptr(message))).count();
    if elided > 0 {
        left_out.push(format!("the text of {elided} older results"));
    }
    let renderer = shown.renderer.into_iter().chain([renderer]).collect::<Vec<_>>().join(" + ");
    VisibleHistory {
        messages: messages.into_iter().collect::<Items<_>>(),
        renderer: Some(renderer),
        left_out,
        tools_in_text: false,
    }
}

/// Returns the shortest change that makes the messages fit, with the name of its renderer.
fn shortened(messages: &Items<InnerMessage>, limit: u64) -> (Vec<Arc<InnerMessage>>, String) {
    let all: Vec<_> = messages.iter().cloned().collect();
    let mut last = (all.clone(), String::new());
    for keep_turns in [ElideOptions::default().keep_turns, 2] {
        let elide = Elide::new(ElideOptions { keep_turns, tokens: Some(limit), ..ElideOptions::default() });
        let rendered = elide.render_messages(&all).messages;
        let fits = estimated_tokens(rendered.iter()) <= limit;
        last = (rendered, elide.renderer());
        if fits {
            return last;
        }
    }
    let (elided, renderer) = last;
    let trim = Trim::new(TrimOptions { turns: None, tokens: Some(limit), note: true });
    (trim.render_messages(&elided).messages, format!("{renderer} + {}", trim.renderer()))
}
