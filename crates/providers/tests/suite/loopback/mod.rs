//! The suite that every provider passes, against a real HTTP server that fails in realistic ways.
//!
//! Each case defines the behaviour of the server and the expected outcome: an answer, or an error of the
//! taxonomy. All cases hold for all providers; the support module renders each case in the format of each
//! provider.

mod answers;
mod driven;
mod failures;
mod refusals;

use std::sync::{Arc, LazyLock, Mutex};

use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Delta, Deltas, Policy, PolicyAnswer, PolicyError};
use backstitch_providers::{ApiKey, Http, ModelPolicy, ModelTarget, Provider, RequestOptions};
use tokio::runtime::Runtime;

use super::support::server::{Served, Server};
use super::support::{MODEL, Talk};

/// It has the length of real keys.
pub(crate) const KEY: &str = "sk-hunter2-0123456789";

/// Shared by all tests: connections belong to the runtime that opened them.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});
static HTTP: LazyLock<Arc<Http>> = LazyLock::new(|| Arc::new(Http::new().unwrap()));

/// A model at an address.
pub(crate) fn model(provider: Provider, address: &str) -> ModelPolicy {
    let target = ModelTarget::new(provider, MODEL).at(address);
    ModelPolicy::new(PolicyName::new("model").unwrap(), target, Some(ApiKey::new(KEY)), HTTP.clone())
}

/// Asks a model, and returns the emitted deltas too.
pub(crate) fn ask(policy: &ModelPolicy) -> (Result<PolicyAnswer, PolicyError>, Vec<Delta>) {
    let heard: Arc<Mutex<Vec<Delta>>> = Arc::default();
    let told = heard.clone();
    let mut question = Talk::new().system("Be brief.").user("How is the weather?").question();
    question.deltas = Deltas::new(move |delta| told.lock().unwrap().push(delta));
    let described = policy.describe(&question);
    let answer = RUNTIME.block_on(policy.decide(question, described));
    let heard = heard.lock().unwrap().clone();
    (answer, heard)
}

/// Asks a server for a streamed answer.
fn streamed(provider: Provider, served: Served) -> (Result<PolicyAnswer, PolicyError>, Vec<Delta>) {
    let server = Server::with(vec![served]);
    ask(&model(provider, server.address()))
}

/// Asks a server for an answer without streaming.
fn whole(provider: Provider, served: Served) -> Result<PolicyAnswer, PolicyError> {
    let server = Server::with(vec![served]);
    let options = RequestOptions { stream: false, ..RequestOptions::default() };
    ask(&model(provider, server.address()).with_options(options)).0
}

fn words(deltas: &[Delta]) -> String {
    let texts = deltas.iter().filter_map(|delta| match delta {
        Delta::Text(text) => Some(text.as_str()),
        Delta::Reasoning(_) | Delta::Call(_) => None,
    });
    texts.collect()
}

#[track_caller]
fn fails(result: Result<PolicyAnswer, PolicyError>, kind: &str, retryable: bool, what: &str) -> PolicyError {
    let error = result.expect_err(what);
    assert_eq!((error.kind.as_str(), error.retryable), (kind, retryable), "{what}: {error}");
    error
}
