//! The limits of conversations in requests, and the strategies that keep them without a record.
//!
//! A conversation may take three quarters of the window of its model. One without a strategy of its own is
//! [cut](super::room) at that limit. A strategy that shortens it for each request anew, and requests of older
//! sessions, leave out the text of older results, then that of all but the last two answers, and then the oldest
//! answers. The newest answer and all messages of users stay.
//!
//! A request that the provider refused for its length sets a limit for its model too: three quarters of the
//! window that the refusal names, or half of its length. A long request that was refused for an unknown reason
//! is sent once more at half of its length, and the limit stays if that helped.
//!
//! All of this follows from the agent and the journal, so a request can be rendered again.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::{InnerMessage, RequestFailed};
use backstitch_core::machine::VisibleHistory;
use backstitch_core::session::Items;
use backstitch_core::view::{JournalView, Request};
use backstitch_repl::transcript::{
    Elide, ElideOptions, TranscriptCompression as _, Trim, TrimOptions, estimated_bytes, estimated_tokens,
};

use crate::agent::Agent;

/// The most requests of one turn that are sent again because the one before was too long.
pub(super) const MOST_SHORTENINGS: u32 = 2;

/// The most requests of one turn that are sent in place of a refused one.
pub(super) const MOST_CORRECTIONS: usize = 6;

/// The least length of a request, in bytes, that may be the unknown reason of a refusal.
const LONG_REQUEST: u64 = 16 * 1024;

/// Bytes of a request or a message for each token, by an estimate.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// Whether an error of a policy means that the request was too long.
pub(super) fn is_too_long(kind: &str) -> bool {
    kind == ErrorCode::ContextTooLong.as_str() || kind == ErrorCode::RequestTooLarge.as_str()
}

/// Whether a policy's error means that the server refused the request. Another request may be accepted.
pub(super) fn is_refused(kind: &str) -> bool {
    is_too_long(kind) || kind == ErrorCode::InvalidRequest.as_str()
}

/// Returns the number of tokens that the conversation may have in the next request. `None` if neither the
/// agent nor a refused request of its model sets a limit.
pub(super) fn limit(agent: &Agent, view: &JournalView) -> Option<u64> {
    let of_window = agent.window.map(usable);
    // This runs for each request, and most conversations have none that failed.
    if failed_requests(agent, view).next().is_none() {
        return of_window;
    }
    let of_model = is_of_model(agent);
    let requests: Vec<_> = requests_in(view).filter(|request| of_model(request)).collect();
    let refused = requests.iter().enumerate().filter_map(|(place, request)| {
        let before = place.checked_sub(1).map(|before| requests[before]);
        limit_after(request, before, requests.get(place + 1).copied())
    });
    of_window.into_iter().chain(refused).min()
}

/// Returns the texts with which earlier requests of the agent's model were refused, oldest first.
pub(super) fn refusals(agent: &Agent, view: &JournalView) -> Arc<[Arc<str>]> {
    let failures = failed_requests(agent, view).flat_map(|request| request.failures.iter());
    let refused = failures.filter(|failure| failure.record.kind == ErrorCode::InvalidRequest.as_str());
    refused.map(|failure| failure.record.message.as_str().into()).collect()
}

/// The requests of the agent's model of which an attempt failed, oldest first.
fn failed_requests<'a>(agent: &Agent, view: &'a JournalView) -> impl Iterator<Item = &'a Request> {
    // Comparing names takes longer than finding out that nothing failed.
    requests_in(view).filter(|request| !request.failures.is_empty()).filter(is_of_model(agent))
}

fn requests_in(view: &JournalView) -> impl Iterator<Item = &Request> {
    view.evaluations().flat_map(|evaluation| &evaluation.requests).map(|request| &**request)
}

fn is_of_model(agent: &Agent) -> impl Fn(&&Request) -> bool + use<> {
    let model = agent.policy.model();
    move |request| {
        let started = &request.started.record;
        model
            .as_ref()
            .is_none_or(|model| (&started.provider, &started.model) == (&model.provider, &model.model))
    }
}

/// The part of a window that a conversation may take.
fn usable(window: u64) -> u64 {
    window / 4 * 3
}

/// Returns the limit that follows from a request: from its refusal for its length, or for an unknown reason if
/// neither the request before it nor the shorter one after it was refused like that.
fn limit_after(request: &Request, before: Option<&Request>, after: Option<&Request>) -> Option<u64> {
    let started = &request.started.record;
    let length = started.length;
    // The estimate does not count the bytes of media.
    let tokens =
        started.reservation.map_or(length / BYTES_PER_TOKEN, |reserved| reserved.amounts.input_tokens);
    let failure = |is: fn(&RequestFailed) -> bool| {
        request.failures.iter().map(|failure| &*failure.record).rfind(|failed| is(failed))
    };
    if let Some(refused) = failure(|failed| is_too_long(&failed.kind)) {
        // The estimate may be too low for the window to be of use.
        let of_window = refused.window.map(usable).filter(|limit| *limit < tokens / 10 * 9);
        return Some(of_window.unwrap_or(tokens / 2));
    }
    // A summary is not sent again in a shorter form, so its refusal says nothing about lengths.
    let is_unexplained = |request: &Request| {
        !is_for_summary(request) && request.failures.iter().any(|failure| failure.record.unexplained)
    };
    let is_first = is_unexplained(request) && !before.is_some_and(is_unexplained);
    (is_first && length >= LONG_REQUEST && !after.is_some_and(is_unexplained)).then_some(tokens / 2)
}

/// Whether a request was shortened without a recorded cut, as by older versions.
pub(super) fn is_shortened_anew(renderer: Option<&str>) -> bool {
    renderer.is_some_and(|renderer| renderer.contains(&format!("{}/", Elide::NAME)))
}

/// Whether a request asked for a summary of the conversation.
fn is_for_summary(request: &Request) -> bool {
    request.started.record.renderer.as_deref().is_some_and(|renderer| renderer.starts_with("summarize/"))
}

/// Whether messages of an estimated number of bytes keep a limit in tokens.
pub(super) fn fits(bytes: u64, limit: u64) -> bool {
    bytes.div_ceil(BYTES_PER_TOKEN) <= limit
}

/// Shortens a conversation that exceeds a limit, and describes what it leaves out.
pub(super) fn fitted(shown: VisibleHistory, limit: Option<u64>) -> VisibleHistory {
    let Some(limit) = limit else { return shown };
    // Tools in the text of a message belong to an agent that answers with programs, which shows a summary.
    if shown.tools_in_text || fits(estimated_bytes(shown.messages.iter()), limit) {
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
